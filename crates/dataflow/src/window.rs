//! Window functions: what each row is among the rows of its partition.
//!
//! Partitions whose rows change are evaluated anew; see [`crate::recompute`]. The rows of a partition are
//! in the order of the window, and rows equal in that in the order of their bytes, so that results do not
//! depend on how they came.

use std::sync::Arc;

use alluvium_trace::memory::context;
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
use crate::codec::{CodecError, Encoded, KeyCodec};
use crate::delta::DeltaStream;
use crate::exchange::exchange;
use crate::layout::{Layout, all_columns, assemble, types_of};
use crate::map::message;
use crate::ranked::entry::{EntryEncoder, push_entries, split};
use crate::recompute::{Evaluator, Groups, Results, expanded, recompute};

/// One function over the rows of a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFunction {
    /// What is computed.
    pub function: WindowFunctionDefinition,
    /// Over what.
    pub arguments: Vec<Argument>,
    /// Over which rows around each row.
    pub frame: Arc<WindowFrame>,
    /// Of these, over those for which this column is true.
    pub filter: Option<usize>,
    /// Whether each value counts once.
    pub distinct: bool,
    /// Whether NULLs are passed over.
    pub ignore_nulls: bool,
    /// The column of the results.
    pub result: FieldRef,
}

impl WindowFunction {
    /// The columns of the input that it reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.arguments.iter().filter_map(Argument::column).chain(self.filter)
    }

    /// Whether it has one result for all rows that are equal in the order, in whatever order these are.
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

    /// How DataFusion evaluates it over rows of `input` in `order`.
    ///
    /// Fails for what cannot be evaluated in the frame.
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

/// What a function is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A column of the input.
    Column(usize),
    /// A constant, which may say what the function does.
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

/// The rows of a stream with the results of window functions, and the errors of partitions without any.
pub struct Windowed<'scope> {
    /// The input's columns, then the functions' results.
    pub rows: DeltaStream<'scope, Epoch>,
    /// Errors; see [`crate::map::error_schema`].
    pub errors: DeltaStream<'scope, Epoch>,
}

/// What `functions` say of the rows of `stream`, whose columns are `input`, among those with equal columns
/// `keys`, ordered by `order` and then by the columns `ties` and by their bytes.
///
/// Exchanges rows by partition. `output` names the input's columns and the results.
///
/// Fails if [`WindowFunction::expression`] does, or a column cannot be encoded.
pub fn window<'scope>(
    stream: DeltaStream<'scope, Epoch>,
    input: &SchemaRef,
    keys: &[usize],
    order: &[(usize, SortOptions)],
    ties: &[usize],
    functions: &[WindowFunction],
    output: &SchemaRef,
) -> Result<Windowed<'scope>, CodecError> {
    let stream = exchange(stream, keys, KeyCodec::new(&types_of(input, keys))?);
    let layout = Layout::keyed(input.clone(), keys)?;
    let ascending = SortOptions { descending: false, nulls_first: false };
    let full_order: Vec<_> =
        order.iter().copied().chain(ties.iter().map(|&column| (column, ascending))).collect();
    let encoder = EntryEncoder::new(layout.clone(), &full_order, Vec::new())?;
    let context = context::current();
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
        encoder.encode(stream, &context),
        &context,
        "ArrangePartitions",
        layout.key_names(),
        push_entries,
    );
    let output_layout = Layout::keyed(output.clone(), keys)?;
    let expressions = functions
        .iter()
        .map(|function| function.expression(input, order))
        .collect::<DataFusionResult<Vec<_>>>()
        .map_err(|error| CodecError::Evaluation(message(&error)))?;
    let evaluator = Windows {
        layout,
        expressions,
        results: functions.iter().map(|function| function.result.data_type().clone()).collect(),
        output: output_layout.clone(),
        values: Encoded::counted(&context),
    };
    let names = functions.iter().map(|function| function.result.name().clone()).collect();
    let (rows, errors) = recompute(entries, evaluator, output_layout, false, &context, names);
    Ok(Windowed { rows, errors })
}

/// Evaluates window functions over partitions.
struct Windows {
    layout: Layout,
    expressions: Vec<Arc<dyn WindowExpr>>,
    results: Vec<DataType>,
    output: Layout,
    values: Encoded,
}

impl Evaluator for Windows {
    fn evaluate(&mut self, groups: &Groups, results: &mut Results) {
        let schema = self.layout.schema();
        let values = groups.values().map(|entry| split(entry, 0).1);
        let columns = self
            .layout
            .decode(groups.keys(), values, &all_columns(schema))
            .expect("a batch holds what its layout encoded");
        let (rows, ranges) = expanded(&assemble(schema.clone(), columns, groups.rows()), groups);

        let mut pieces: Vec<Vec<ArrayRef>> =
            vec![Vec::with_capacity(groups.len()); self.expressions.len()];
        let mut failures = vec![None; groups.len()];
        for (range, failure) in ranges.iter().zip(&mut failures) {
            let partition = rows.slice(range.start, range.len());
            for (number, (expression, result)) in
                self.expressions.iter().zip(&self.results).enumerate()
            {
                let piece = evaluate(expression, &partition, result).unwrap_or_else(|error| {
                    // One error is enough to have no answer.
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
        let columns: Vec<ArrayRef> =
            self.output.value_columns().iter().map(|&column| columns[column].clone()).collect();
        self.values.clear();
        self.output
            .encode_values(&columns, rows.num_rows(), &mut self.values)
            .expect("results have the types of their columns");
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
