//! Functions over the rows around each row.

use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion_common::ScalarValue;

use super::frame::{Direction, Edge, Frame};
use super::near::{Filter, Totals, chosen, extremes, numbers, shifted};
use super::running::{self, Stops};
use super::slices::Version;
use super::{Argument, WindowFunction};
use crate::reductions::aggregate::accumulator::Accumulators;
use crate::reductions::aggregate::{Aggregate, Function as Kind};
use crate::rows::codec::Encoded;
use crate::rows::layout::types_of;

/// A function whose results are computed from the rows around each row, and from the state of all rows before these.
#[derive(Clone, Debug)]
pub(super) enum Function {
    /// COUNT, SUM or AVG over a frame.
    Total { accumulators: Accumulators, input: Option<usize>, filter: Option<usize>, frame: Frame },
    /// MIN, or MAX, over a frame.
    Extreme { input: usize, is_max: bool, filter: Option<usize>, frame: Frame },
    /// FIRST_VALUE, LAST_VALUE or NTH_VALUE over a frame.
    Value { input: usize, which: Which, frame: Frame },
    /// LAG or LEAD: the value so many rows after the row, or before it if negative.
    Shift { input: usize, offset: i64, default: ScalarValue },
    /// ROW_NUMBER.
    RowNumber,
    /// RANK.
    Rank,
    /// DENSE_RANK.
    DenseRank,
}

/// A row of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The one of this number, from 1 on.
    Nth(usize),
    /// The last one.
    Last,
}

/// The inputs from which results are computed.
pub(super) struct Known<'a> {
    /// The rows.
    pub(super) version: &'a Version,
    /// For each of its spans, if there are rows before it: their state.
    pub(super) starts: &'a [Option<Start<'a>>],
    /// The state that the starts carry for the function, if it is running.
    pub(super) carried: &'a [ArrayRef],
    /// The orders of all rows, which rows share with their peers; none unless a function needs them.
    pub(super) peers: &'a Encoded,
    /// A column of the rows.
    pub(super) column: &'a dyn Fn(usize) -> ArrayRef,
}

/// The count and the state of the rows before a span.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    /// The row of the columns that are carried.
    pub(super) row: usize,
    /// The order of the last of these rows.
    pub(super) order: &'a [u8],
}

/// A failure: the number of the place among the emitted ones, and a message.
pub(super) type Failure = (usize, String);

impl Function {
    /// `None` if the function has to see the whole partition.
    pub(super) fn compile(
        function: &WindowFunction,
        input: &SchemaRef,
        order: &[(usize, SortOptions)],
    ) -> Option<Self> {
        if function.distinct || function.ignore_nulls {
            return None;
        }
        let result = function.result.data_type();
        let columns: Vec<usize> = order.iter().map(|&(column, _)| column).collect();
        let frame = || Frame::compile(&function.frame, order, &types_of(input, &columns));
        let argument = function.arguments.first();
        let of = |column: usize| input.field(column).data_type();
        match (function.function.name(), argument) {
            ("row_number", None) if function.filter.is_none() => {
                (*result == DataType::UInt64).then_some(Self::RowNumber)
            }
            ("rank", None) if function.filter.is_none() && !order.is_empty() => {
                (*result == DataType::UInt64).then_some(Self::Rank)
            }
            ("dense_rank", None) if function.filter.is_none() && !order.is_empty() => {
                (*result == DataType::UInt64).then_some(Self::DenseRank)
            }
            ("first_value" | "last_value" | "nth_value", Some(&Argument::Column(column))) => {
                let fits = function.filter.is_none() && of(column) == result;
                let which = which(function.function.name(), &function.arguments)?;
                let frame = frame()?;
                // The last row before such a range may be any number of rows before those that are read.
                let is_far = matches!(
                    (&frame, which),
                    (
                        Frame::Range(None, Edge::Away { direction: Direction::Before, .. }),
                        Which::Last
                    )
                );
                (fits && !is_far).then_some(Self::Value { input: column, which, frame })
            }
            (name @ ("lag" | "lead"), Some(&Argument::Column(column))) => {
                let fits = function.filter.is_none() && of(column) == result;
                fits.then(|| shift(name == "lag", column, &function.arguments, result)).flatten()
            }
            (_, Some(_)) if function.arguments.len() > 1 => None,
            ("count", Some(Argument::Constant(constant))) if !constant.is_null() => {
                Self::total(Kind::Count, None, function, input, frame()?)
            }
            ("count", Some(&Argument::Column(column))) => {
                Self::total(Kind::Count, Some(column), function, input, frame()?)
            }
            ("sum", Some(&Argument::Column(column))) => {
                Self::total(Kind::Sum, Some(column), function, input, frame()?)
            }
            ("avg", Some(&Argument::Column(column))) => {
                Self::total(Kind::Avg, Some(column), function, input, frame()?)
            }
            (name @ ("min" | "max"), Some(&Argument::Column(column))) => {
                let frame = frame()?;
                let is_max = name == "max";
                (of(column) == result && has_order(result)).then_some(Self::Extreme {
                    input: column,
                    is_max,
                    filter: function.filter,
                    frame,
                })
            }
            _ => None,
        }
    }

    fn total(
        kind: Kind,
        column: Option<usize>,
        function: &WindowFunction,
        input: &SchemaRef,
        frame: Frame,
    ) -> Option<Self> {
        let aggregate = Aggregate {
            function: kind,
            input: column.map(|_| 0),
            rank: None,
            distinct: false,
            filter: None,
            result: function.result.data_type().clone(),
        };
        let types = types_of(input, column.as_slice());
        let accumulators = Accumulators::new(&[aggregate], &types).ok()?;
        Some(Self::Total { accumulators, input: column, filter: function.filter, frame })
    }

    /// The columns of the input that it reads.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        let (input, filter) = match self {
            Self::Total { input, filter, .. } => (*input, *filter),
            Self::Extreme { input, filter, .. } => (Some(*input), *filter),
            Self::Value { input, .. } | Self::Shift { input, .. } => (Some(*input), None),
            Self::RowNumber | Self::Rank | Self::DenseRank => (None, None),
        };
        input.into_iter().chain(filter)
    }

    /// The frame whose places [`results`](Self::results) takes.
    pub(super) fn frame(&self) -> Option<Frame> {
        match self {
            Self::Total { frame, .. } | Self::Extreme { frame, .. } | Self::Value { frame, .. } => {
                Some(frame.clone())
            }
            Self::Rank => Some(Frame::Range(Some(Edge::Peers), Edge::Peers)),
            Self::Shift { .. } | Self::RowNumber | Self::DenseRank => None,
        }
    }

    /// Whether results depend on all rows before a row, and not only on their number.
    pub(super) fn is_running(&self) -> bool {
        match self {
            Self::DenseRank => true,
            // Near frames end with their last row, and so do others.
            Self::Value { which: Which::Last, .. } | Self::Rank => false,
            _ => self.frame().is_some_and(|frame| frame.is_running()),
        }
    }

    /// Whether it reads the orders that rows share with their peers.
    pub(super) fn needs_peers(&self) -> bool {
        matches!(self, Self::DenseRank)
    }

    /// The results of the emitted places, whose frames are `places`, and the failures, whose results are NULL.
    pub(super) fn results(
        &self,
        known: &Known<'_>,
        places: &[Range<usize>],
        failures: &mut Vec<Failure>,
    ) -> ArrayRef {
        let Known { version, column, .. } = *known;
        match self {
            Self::DenseRank => running::results(self, known, &Stops::rows(version), failures),
            _ if self.is_running() => {
                running::results(self, known, &Stops::frames(version, places), failures)
            }
            Self::Total { accumulators, input, filter, .. } => {
                let inputs = accumulators.inputs(input.map(column).as_slice());
                let filter = filter.map(|filter| Filter::new(&column(filter)));
                Totals { accumulators, inputs: &inputs, filter }.results(version, places, failures)
            }
            Self::Extreme { input, is_max, filter, .. } => {
                let filter = filter.map(|filter| Filter::new(&column(filter)));
                extremes(version, places, &column(*input), *is_max, filter.as_ref())
            }
            Self::Value { input, which, .. } => chosen(places, version, *which, &column(*input)),
            Self::Shift { input, offset, default } => {
                shifted(version, &column(*input), *offset, default)
            }
            Self::RowNumber => numbers(version, |span, place| span.before + place as i64 + 1),
            Self::Rank => {
                let mut peers = places.iter();
                numbers(version, |span, _| {
                    let first = peers.next().map_or(0, |peers| peers.start - span.all.start);
                    span.before + first as i64 + 1
                })
            }
        }
    }
}

/// Which row of a frame a function returns; `None` if it is counted from the end, or not constant.
fn which(name: &str, arguments: &[Argument]) -> Option<Which> {
    match (name, arguments) {
        ("first_value", [_]) => Some(Which::Nth(1)),
        ("last_value", [_]) => Some(Which::Last),
        ("nth_value", [_, Argument::Constant(number)]) => {
            let Ok(ScalarValue::Int64(Some(number))) = number.cast_to(&DataType::Int64) else {
                return None;
            };
            usize::try_from(number).ok().filter(|&number| number > 0).map(Which::Nth)
        }
        _ => None,
    }
}

/// LAG or LEAD of a column.
fn shift(
    is_lag: bool,
    input: usize,
    arguments: &[Argument],
    result: &DataType,
) -> Option<Function> {
    let constant = |number: usize| match arguments.get(number) {
        None => Some(ScalarValue::Null),
        Some(Argument::Constant(constant)) => Some(constant.clone()),
        Some(Argument::Column(_)) => None,
    };
    let (offset, default) = (constant(1)?, constant(2)?);
    let offset = match offset {
        ScalarValue::Null => 1,
        offset => match offset.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(offset))) => offset,
            _ => return None,
        },
    };
    // Offsets that lead farther than this lead past most partitions, and slices should stay small.
    const FAR: i64 = 1 << 20;
    if arguments.len() > 3 || !(-FAR..=FAR).contains(&offset) {
        return None;
    }
    let default = match default.is_null() {
        true => ScalarValue::try_from(result).ok()?,
        false => default.cast_to(result).ok()?,
    };
    Some(Function::Shift { input, offset: if is_lag { -offset } else { offset }, default })
}

/// Whether comparing two values of the type is comparing their parts, so that equal values are the same.
fn has_order(data_type: &DataType) -> bool {
    match data_type {
        DataType::Interval(_) | DataType::Null => false,
        other => {
            other.is_primitive()
                || other.is_string()
                || other.is_binary()
                || *other == DataType::Boolean
        }
    }
}
