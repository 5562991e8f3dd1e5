//! LAG and LEAD whose offset or default differs from row to row.
//!
//! DataFusion takes constants only. Over others the whole partition is seen at once.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::compute::{cast, interleave};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion_common::Result;
use datafusion_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF,
    WindowUDFImpl,
};
use datafusion_functions_window::lead_lag::{lag_udwf, lead_udwf};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Literal;

/// Both functions.
pub(super) fn functions() -> [Arc<WindowUDF>; 2] {
    [function(false), function(true)]
}

fn function(is_lead: bool) -> Arc<WindowUDF> {
    let constant = if is_lead { lead_udwf() } else { lag_udwf() };
    Arc::new(WindowUDF::from(Neighbour { constant, is_lead }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Neighbour {
    /// DataFusion's.
    constant: Arc<WindowUDF>,
    is_lead: bool,
}

/// Whether all but the value is constant.
fn is_constant(arguments: &[Arc<dyn PhysicalExpr>]) -> bool {
    arguments.iter().skip(1).all(|argument| argument.downcast_ref::<Literal>().is_some())
}

impl WindowUDFImpl for Neighbour {
    fn name(&self) -> &str {
        self.constant.name()
    }

    fn signature(&self) -> &Signature {
        self.constant.signature()
    }

    fn expressions(&self, arguments: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        match is_constant(arguments.input_exprs()) {
            true => self.constant.expressions(arguments),
            false => arguments.input_exprs().to_vec(),
        }
    }

    fn partition_evaluator(
        &self,
        arguments: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        if is_constant(arguments.input_exprs()) {
            return self.constant.partition_evaluator_factory(arguments);
        }
        Ok(Box::new(Neighbours {
            is_ahead: self.is_lead != arguments.is_reversed(),
            ignore_nulls: arguments.ignore_nulls(),
        }))
    }

    fn field(&self, arguments: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.constant.field(arguments)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        ReversedUDWF::Reversed(function(self.is_lead))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.constant.documentation()
    }

    fn limit_effect(&self, arguments: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        match is_constant(arguments) {
            true => self.constant.inner().limit_effect(arguments),
            false => LimitEffect::Unknown,
        }
    }
}

/// Evaluates a partition.
#[derive(Debug)]
struct Neighbours {
    /// Whether offsets are counted towards the end.
    is_ahead: bool,
    ignore_nulls: bool,
}

impl Neighbours {
    /// The row that is `offset` rows from `row`, if there is one among `rows`.
    fn place(
        &self,
        row: usize,
        offset: i64,
        rows: usize,
        values: Option<&[usize]>,
    ) -> Option<usize> {
        let ahead = if self.is_ahead { offset } else { offset.checked_neg()? };
        let Some(values) = values.filter(|_| ahead != 0) else {
            return row.checked_add_signed(isize::try_from(ahead).ok()?).filter(|&row| row < rows);
        };
        // The rows before this one that have a value, and those up to it.
        let before = values.partition_point(|&other| other < row);
        let up_to = before + usize::from(values.get(before) == Some(&row));
        let steps = usize::try_from(ahead.unsigned_abs()).ok()?;
        let place =
            if ahead > 0 { up_to.checked_add(steps - 1) } else { before.checked_sub(steps) };
        values.get(place?).copied()
    }
}

impl PartitionEvaluator for Neighbours {
    fn evaluate_all(&mut self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let values = &columns[0];
        let kind = values.data_type();
        let offsets = match columns.get(1) {
            Some(offsets) => Some(cast(offsets, &DataType::Int64)?),
            None => None,
        };
        let offsets = offsets.as_ref().map(|offsets| offsets.as_primitive::<Int64Type>());
        let (nothing, defaults) = (new_null_array(kind, 1), columns.get(2));
        let defaults = match defaults {
            Some(defaults) => cast(defaults, kind)?,
            None => new_null_array(kind, rows),
        };
        let present: Option<Vec<usize>> =
            self.ignore_nulls.then(|| (0..rows).filter(|&row| values.is_valid(row)).collect());
        let places: Vec<(usize, usize)> = (0..rows)
            .map(|row| {
                let offset = match offsets {
                    None => 1,
                    Some(offsets) if offsets.is_valid(row) => offsets.value(row),
                    // As in PostgreSQL.
                    Some(_) => return (2, 0),
                };
                match self.place(row, offset, rows, present.as_deref()) {
                    Some(place) => (0, place),
                    None => (1, row),
                }
            })
            .collect();
        Ok(interleave(&[values.as_ref(), defaults.as_ref(), nothing.as_ref()], &places)?)
    }
}
