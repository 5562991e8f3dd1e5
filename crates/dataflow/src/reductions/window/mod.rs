//! Window functions: a result for each row from the rows of its partition.
//!
//! The rows of a partition are in the order of the window, and within that in the order of their bytes, so that results do not
//! depend on the history of the rows.
//!
//! Functions that read a few rows around each row are *sliding*: a change is evaluated with the rows that its frames reach
//! ([`is_sliding`]). So are those over frames that begin with the partition, for results carry the state of all rows up to
//! theirs: a change is evaluated with the rows after it. If one function over a partitioning is not, partitions whose rows
//! change are recomputed as a whole (`whole`, on [`crate::reductions::recompute`]).
//!
//! - `reach`, `extent`: which rows the results of a row depend on, and which a change does;
//! - `versions`: the rows of a partition before and after a change;
//! - `gather`, `run`: the slices of a partition that a change reaches, and one in the making;
//! - `slices`, `frame`, `function`: slices, the frames in them, and the functions over these;
//! - `near`, `running`: their results over near rows, and over all rows from the beginning of the partition on;
//! - `evaluate`, `results`: the results of slices, and their bytes;
//! - `sliding`: the operator.

mod evaluate;
mod extent;
mod frame;
mod function;
mod gather;
mod near;
mod reach;
mod results;
mod run;
mod running;
mod slices;
mod sliding;
mod versions;
mod whole;

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{BoundColumn, Epoch};
use arrow::compute::SortOptions;
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion_common::{Result as DataFusionResult, ScalarValue};
use datafusion_expr::{WindowFrame, WindowFunctionDefinition};
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr::window::WindowExpr;
use datafusion_physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::windows::create_window_expr;

pub use self::extent::{Distance, Extent};
use self::sliding::Sliding;
use self::whole::Whole;
use crate::movement::delta::DeltaStream;
use crate::reductions::ranked::entry::EntryEncoder;
use crate::rows::codec::CodecError;
use crate::rows::layout::Layout;

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

/// The rows of a stream with the results of window functions, and the errors of rows or partitions without results.
pub struct Windowed<'scope> {
    /// The input's columns, then the functions' results.
    pub rows: DeltaStream<'scope, Epoch>,
    /// Errors; see [`crate::map::error_schema`].
    pub errors: DeltaStream<'scope, Epoch>,
}

/// Window functions over one partitioning.
#[derive(Clone, Debug)]
pub enum Spec {
    /// Changes are evaluated with the rows they reach.
    Sliding(Sliding),
    /// Partitions are recomputed.
    Whole(Whole),
}

/// Window functions over rows of one partitioning and order.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'a> {
    /// The columns of the rows.
    pub input: &'a SchemaRef,
    /// The columns in which the rows of a partition are equal.
    pub keys: &'a [usize],
    /// The order of the rows of a partition, as the functions see it.
    pub order: &'a [(usize, SortOptions)],
    /// Columns by which rows are ordered that are equal in that; rows equal in these as well are ordered by their bytes.
    pub ties: &'a [usize],
    /// The functions to compute.
    pub functions: &'a [WindowFunction],
    /// The columns of the rows, then the results.
    pub output: &'a SchemaRef,
}

impl Definition<'_> {
    /// Turns rows into entries under their partitions, in order.
    fn entries(&self) -> Result<EntryEncoder, CodecError> {
        let ascending = SortOptions { descending: false, nulls_first: false };
        let ties = self.ties.iter().map(|&column| (column, ascending));
        let order: Vec<_> = self.order.iter().copied().chain(ties).collect();
        EntryEncoder::compile(Layout::keyed(self.input.clone(), self.keys)?, &order, Vec::new())
    }
}

impl Spec {
    /// Fails if [`WindowFunction::expression`] does, or a column cannot be encoded.
    pub fn compile(definition: &Definition<'_>) -> Result<Self, CodecError> {
        match is_sliding(definition.functions, definition.input, definition.order) {
            true => Sliding::compile(definition).map(Self::Sliding),
            false => Whole::compile(definition).map(Self::Whole),
        }
    }

    /// Where the first column of the order lies in the bytes of every row that is kept, if it is an integer, a date or a time.
    /// `None` if partitions are recomputed, which takes all of their rows.
    pub fn bound_of_order(&self) -> Option<BoundColumn> {
        match self {
            Self::Sliding(spec) => spec.bound_of_order(),
            Self::Whole(_) => None,
        }
    }
}

/// Whether a change is evaluated with the rows that the frames of `functions` reach, and not with its whole partition.
pub fn is_sliding(
    functions: &[WindowFunction],
    input: &SchemaRef,
    order: &[(usize, SortOptions)],
) -> bool {
    functions.iter().all(|function| function::Function::compile(function, input, order).is_some())
}

/// Whether the results are kept beside the rows, because they say what matters of all rows before a row.
pub fn keeps_results(
    functions: &[WindowFunction],
    input: &SchemaRef,
    order: &[(usize, SortOptions)],
) -> bool {
    let compiled = functions.iter().map(|it| function::Function::compile(it, input, order));
    compiled
        .collect::<Option<Vec<_>>>()
        .is_some_and(|functions| reach::Reach::of(&functions).keeps_results())
}

/// The rows of `stream` with the results of window functions. Exchanges rows by partition.
pub fn window<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> Windowed<'scope> {
    match spec {
        Spec::Sliding(spec) => sliding::window(spec, stream, context),
        Spec::Whole(spec) => whole::window(spec, stream, context),
    }
}
