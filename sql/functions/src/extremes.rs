//! MIN and MAX of lists and structs, and of floats in groups.
//!
//! DataFusion compares the elements of lists one level deep. Here values are in the order of their keys, as ORDER BY and
//! views have them. In groups, DataFusion takes the last NaN for the smallest and largest number, and no infinity. All else
//! is DataFusion's.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue, not_impl_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};
use datafusion_functions_aggregate::min_max::{max_udaf, min_udaf};

use super::arg_extremes::First;
use super::totals::{FloatExtreme, Groups};

/// Both functions.
pub(super) fn functions() -> [Arc<AggregateUDF>; 2] {
    [(min_udaf(), false), (max_udaf(), true)]
        .map(|(others, descending)| Arc::new(AggregateUDF::from(Extreme { others, descending })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    /// DataFusion's, for all types that are not nested.
    others: Arc<AggregateUDF>,
    descending: bool,
}

impl Extreme {
    fn nested(&self, arguments: &AccumulatorArgs<'_>) -> Result<Option<NestedExtreme>> {
        let kind = arguments.return_type();
        if !kind.is_nested() {
            return Ok(None);
        }
        let first = First::new(self.others.name(), kind, kind, self.descending)?;
        Ok(Some(NestedExtreme { first }))
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.others.name()
    }

    fn signature(&self) -> &Signature {
        self.others.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.others.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.others.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        self.others.return_field(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        // One value of the type of the result, in groups too.
        self.others.state_fields(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match self.nested(&arguments)? {
            Some(extreme) => Ok(Box::new(extreme)),
            None => self.others.accumulator(arguments),
        }
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        if arguments.return_type().is_nested() {
            let name = self.name().to_uppercase();
            return not_impl_err!("{name} of lists and structs over a frame whose start moves");
        }
        self.others.create_sliding_accumulator(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        !arguments.return_type().is_nested() && self.others.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match (arguments.return_type(), self.descending) {
            (DataType::Float64, false) => {
                Box::new(Groups::new(FloatExtreme::<f64, false>::finish()))
            }
            (DataType::Float64, true) => Box::new(Groups::new(FloatExtreme::<f64, true>::finish())),
            (DataType::Float32, false) => {
                Box::new(Groups::new(FloatExtreme::<f32, false>::finish()))
            }
            (DataType::Float32, true) => Box::new(Groups::new(FloatExtreme::<f32, true>::finish())),
            _ => self.others.create_groups_accumulator(arguments)?,
        })
    }

    fn is_descending(&self) -> Option<bool> {
        self.others.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.others.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.others.reverse_udf()
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.others.value_from_stats(statistics)
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.others.inner().set_monotonicity(kind)
    }
}

/// The first value in the order of keys.
#[derive(Debug)]
struct NestedExtreme {
    first: First,
}

impl Accumulator for NestedExtreme {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.first.update_batch(&[Arc::clone(&columns[0]), Arc::clone(&columns[0])])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.first.evaluate()
    }

    fn size(&self) -> usize {
        self.first.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.first.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
