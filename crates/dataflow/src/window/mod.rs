//! Window functions: a result for each row from the rows of its partition.
//!
//! Partitions whose rows change are recomputed; see [`crate::recompute`]. The rows of a partition are in the order of the
//! window, and within that in the order of their bytes, so that results do not depend on the history of the rows.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Spine};
use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::{SortOptions, cast, concat};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion_common::{Result as DataFusionResult, ScalarValue};
use datafusion_expr::{WindowFrame, WindowFunctionDefinition};
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr::window::WindowExpr;
use datafusion_physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::windows::create_window_expr;

use crate::arrangement::arrange_encoded;
use crate::codec::{CodecError, Encoded};
use crate::delta::DeltaStream;
use crate::exchange::exchange;
use crate::key_columns::KeyColumns;
use crate::layout::{Layout, all_columns, assemble};
use crate::map::message;
use crate::ranked::entry::{EntryEncoder, push_entries, split};
use crate::recompute::{Evaluator, Groups, Results, expanded, recompute};

/// One function over the rows of a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFunction {
    /// The function.
    pub function: WindowFunctionDefinition,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// The rows around each row that it is computed over.
    pub frame: Arc<WindowFrame>,
    /// Only rows for which this column is true count.
    pub filter: Option<usize>,
    /// Whether each value counts once.
    pub distinct: bool,
    /// Whether NULLs are ignored.
    pub ignore_nulls: bool,
    /// The column of the results.
    pub result: FieldRef,
}

impl WindowFunction {
    /// The columns of the input that it reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.arguments.iter().filter_map(Argument::column).chain(self.filter)
    }

    /// Whether rows that are equal in the order have the same result.
    pub fn is_same_for_peers(&self) -> bool {
        const SAME: [&str; 6] =
            ["rank", "dense_rank", "percent_rank", "cume_dist", "session_start", "session_end"];
        SAME.contains(&self.function.name())
    }

    /// The same over an input whose columns have other numbers.
    #[must_use]
    pub fn renumbered(&self, renumber: impl Fn(usize) -> usize) -> Self {
        Self {
            arguments: Argument::renumbered(&self.arguments, &renumber),
            filter: self.filter.map(&renumber),
            ..self.clone()
        }
    }

    /// DataFusion's expression over rows of `input` in `order`.
    ///
    /// Fails for a function that cannot be evaluated in the frame.
    pub fn expression(
        &self,
        input: &SchemaRef,
        order: &[(usize, SortOptions)],
    ) -> DataFusionResult<Arc<dyn WindowExpr>> {
        let arguments: Vec<_> =
            self.arguments.iter().map(|argument| argument.expression(input)).collect();
        let order: Vec<PhysicalSortExpr> = order
            .iter()
            .map(|&(column, options)| PhysicalSortExpr::new(self::column(input, column), options))
            .collect();
        create_window_expr(
            &self.function,
            self.result.name().clone(),
            &arguments,
            &[],
            &order,
            Arc::clone(&self.frame),
            input.clone(),
            self.ignore_nulls,
            self.distinct,
            self.filter.map(|filter| column(input, filter)),
        )
    }
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A column of the input.
    Column(usize),
    /// A constant.
    Constant(ScalarValue),
}

impl Argument {
    /// The column, if it is one.
    pub fn column(&self) -> Option<usize> {
        match self {
            Self::Column(column) => Some(*column),
            Self::Constant(_) => None,
        }
    }

    /// The same arguments in an input whose columns have other numbers.
    pub fn renumbered(arguments: &[Self], renumber: impl Fn(usize) -> usize) -> Vec<Self> {
        let argument = |argument: &Self| match argument {
            Self::Column(column) => Self::Column(renumber(*column)),
            Self::Constant(constant) => Self::Constant(constant.clone()),
        };
        arguments.iter().map(argument).collect()
    }

    pub(crate) fn expression(&self, input: &SchemaRef) -> Arc<dyn PhysicalExpr> {
        match self {
            Self::Column(column) => self::column(input, *column),
            Self::Constant(constant) => Arc::new(Literal::new(constant.clone())),
        }
    }
}

pub(crate) fn column(schema: &SchemaRef, column: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(schema.field(column).name(), column))
}

/// The rows of a stream with the results of window functions, and the errors of partitions without results.
pub struct Windowed<'scope> {
    /// The input's columns, then the functions' results.
    pub rows: DeltaStream<'scope, Epoch>,
    /// Errors; see [`crate::map::error_schema`].
    pub errors: DeltaStream<'scope, Epoch>,
}

/// Window functions over one partitioning.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The partition of a row.
    key: KeyColumns,
    entries: EntryEncoder,
    expressions: Vec<Arc<dyn WindowExpr>>,
    /// The types of the results.
    results: Vec<DataType>,
    /// The columns of the input, then the results.
    output: Layout,
}

impl Spec {
    /// `functions` over rows of the schema `input` among those with equal columns `keys`, ordered by `order`, then by the
    /// columns `ties`, then by their bytes. `output` names the columns of the input and the results.
    ///
    /// Fails if [`WindowFunction::expression`] does, or a column cannot be encoded.
    pub fn compile(
        input: &SchemaRef,
        keys: &[usize],
        order: &[(usize, SortOptions)],
        ties: &[usize],
        functions: &[WindowFunction],
        output: &SchemaRef,
    ) -> Result<Self, CodecError> {
        let ascending = SortOptions { descending: false, nulls_first: false };
        let ties = ties.iter().map(|&column| (column, ascending));
        let full_order: Vec<_> = order.iter().copied().chain(ties).collect();
        let layout = Layout::keyed(input.clone(), keys)?;
        let expressions = functions
            .iter()
            .map(|function| function.expression(input, order))
            .collect::<DataFusionResult<Vec<_>>>()
            .map_err(|error| CodecError::Evaluation(message(&error)))?;
        let results = functions.iter().map(|function| function.result.data_type().clone());
        Ok(Self {
            key: KeyColumns::new(input, keys)?,
            entries: EntryEncoder::compile(layout, &full_order, Vec::new())?,
            expressions,
            results: results.collect(),
            output: Layout::keyed(output.clone(), keys)?,
        })
    }
}

/// The rows of `stream` with the results of window functions. Exchanges rows by partition.
pub fn window<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> Windowed<'scope> {
    let layout = spec.entries.layout();
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
        spec.entries.clone().encode(exchange(stream, &spec.key, context), context),
        "ArrangePartitions",
        layout.key_names(),
        context,
        push_entries,
    );
    let width = layout.schema().fields().len();
    let results = &spec.output.schema().fields()[width..];
    let names = results.iter().map(|result| result.name().clone()).collect();
    let evaluator = Windows { spec: spec.clone(), values: Encoded::counted(context) };
    let (rows, errors) = recompute(entries, evaluator, spec.output.clone(), false, names, context);
    Windowed { rows, errors }
}

/// Evaluates window functions over partitions.
struct Windows {
    spec: Spec,
    values: Encoded,
}

impl Evaluator for Windows {
    fn evaluate(&mut self, groups: &Groups, results: &mut Results) {
        let layout = self.spec.entries.layout();
        let schema = layout.schema();
        let values = groups.values().map(|entry| split(entry, 0).1);
        let columns = layout.decode(groups.keys(), values, &all_columns(schema));
        let (rows, ranges) = expanded(&assemble(schema.clone(), columns, groups.rows()), groups);

        let mut pieces: Vec<Vec<ArrayRef>> =
            vec![Vec::with_capacity(groups.len()); self.spec.expressions.len()];
        let mut failures = vec![None; groups.len()];
        for (range, failure) in ranges.iter().zip(&mut failures) {
            let partition = rows.slice(range.start, range.len());
            for (number, (expression, result)) in
                self.spec.expressions.iter().zip(&self.spec.results).enumerate()
            {
                let piece = evaluate(expression, &partition, result).unwrap_or_else(|error| {
                    // A partition has one error, however many of its functions fail.
                    failure.get_or_insert_with(|| (number, message(&error)));
                    new_null_array(result, range.len())
                });
                pieces[number].push(piece);
            }
        }
        let mut columns = rows.columns().to_vec();
        for pieces in &pieces {
            let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
            columns.push(concat(&pieces).expect("the pieces of a column have one type"));
        }
        let output = &self.spec.output;
        let columns: Vec<ArrayRef> =
            output.value_columns().iter().map(|&column| columns[column].clone()).collect();
        self.values.clear();
        output.encode_values(&columns, rows.num_rows(), &mut self.values);
        for (range, failure) in ranges.into_iter().zip(failures) {
            match failure {
                Some((number, message)) => results.error(number, &message),
                None => range.for_each(|row| results.row(self.values.get(row))),
            }
            results.end();
        }
    }
}

fn evaluate(
    expression: &Arc<dyn WindowExpr>,
    partition: &RecordBatch,
    result: &DataType,
) -> DataFusionResult<ArrayRef> {
    let column = expression.evaluate(partition)?;
    if column.data_type() == result { Ok(column) } else { Ok(cast(&column, result)?) }
}
