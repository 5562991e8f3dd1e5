//! Frames: the rows around each row that a function is computed over.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_empty_array};
use arrow::compute::SortOptions;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Decimal128Type, IntervalMonthDayNano};
use datafusion_common::ScalarValue;
use datafusion_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};

use super::slices::Version;
use crate::rows::codec::Encoded;
use crate::rows::key_columns::KeyColumns;

/// A frame that ends near the row, and begins near it, or without a start at the beginning of the partition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    /// From so many rows after the row, to so many; negative numbers are rows before it.
    Rows(Option<i64>, i64),
    /// Rows whose order is between these.
    Range(Option<Edge>, Edge),
}

/// An end of a range.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edge {
    /// The order of the row itself.
    Peers,
    /// An order so far before or after it.
    Away { direction: Direction, by: ScalarValue },
}

/// A direction in the order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Before,
    Behind,
}

/// Offsets in rows that lead farther lead past all rows.
const FAR: u64 = 1 << 32;

impl Frame {
    /// `None` if the frame does not end near the row, begins elsewhere, or has groups of peers.
    pub(super) fn compile(
        frame: &WindowFrame,
        order: &[(usize, SortOptions)],
        types: &[DataType],
    ) -> Option<Self> {
        let (start, end) = (&frame.start_bound, &frame.end_bound);
        let is_running = matches!(start, WindowFrameBound::Preceding(by) if by.is_null());
        let is_far = |offset: i64| offset.unsigned_abs() > FAR;
        match frame.units {
            WindowFrameUnits::Rows if is_running => {
                let end = rows(end).filter(|&end| !is_far(end))?;
                Some(Self::Rows(None, end))
            }
            WindowFrameUnits::Rows => {
                let (start, end) = (rows(start)?, rows(end)?);
                match (is_far(start), is_far(end)) {
                    (false, false) => Some(Self::Rows(Some(start), end)),
                    // A frame without rows.
                    (true, true) if start == end => Some(Self::Rows(Some(0), -1)),
                    _ => None,
                }
            }
            WindowFrameUnits::Range if !order.is_empty() => {
                let end = edge(end, types)?;
                let start = if is_running { None } else { Some(edge(start, types)?) };
                Some(Self::Range(start, end))
            }
            WindowFrameUnits::Range | WindowFrameUnits::Groups => None,
        }
    }

    /// Whether the frame begins with the partition.
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Rows(None, _) | Self::Range(None, _))
    }

    /// Where the ranges of all rows begin and end, for [`places`](Self::places); nothing for a frame of rows.
    pub(super) fn targets(&self, orders: &Orders<'_>) -> Option<[Encoded; 2]> {
        match self {
            Self::Rows(..) => None,
            Self::Range(start, end) => {
                let starts = start.as_ref().map(|start| orders.targets(start, true));
                Some([starts.unwrap_or_default(), orders.targets(end, false)])
            }
        }
    }

    /// The frames of the emitted rows of `version`, as places in it. Those that begin with the partition do with its slice.
    pub(super) fn places(
        &self,
        version: &Version,
        entries: &Encoded,
        targets: Option<&[Encoded; 2]>,
    ) -> Vec<Range<usize>> {
        let mut places = Vec::with_capacity(version.emitted());
        match (self, targets) {
            (&Self::Rows(start, end), _) => {
                for span in &version.spans {
                    let clamp = |place: i64| {
                        place.clamp(span.all.start as i64, span.all.end as i64) as usize
                    };
                    places.extend(span.emitted.clone().map(|place| {
                        let at = |offset: i64| clamp(place as i64 + offset);
                        let (first, end) = (start.map_or(span.all.start, at), at(end + 1));
                        first..end.max(first)
                    }));
                }
            }
            (Self::Range(..), None) => {}
            (Self::Range(start, _), Some([starts, ends])) => {
                for span in &version.spans {
                    let (mut first, mut last) = (span.all.start, span.all.start);
                    for place in span.emitted.clone() {
                        let row = version.rows[place] as usize;
                        let entry = |place: usize| entries.get(version.rows[place] as usize);
                        if start.is_some() {
                            let target = starts.get(row);
                            while first < span.all.end && entry(first) < target {
                                first += 1;
                            }
                        }
                        let target = ends.get(row);
                        while last < span.all.end && !is_behind(entry(last), target) {
                            last += 1;
                        }
                        places.push(first..last.max(first));
                    }
                }
            }
        }
        places
    }
}

/// Whether an entry sorts after all whose order begins with `target`.
pub(super) fn is_behind(entry: &[u8], target: &[u8]) -> bool {
    entry >= target && !entry.starts_with(target)
}

/// Whether a row is past all of these ends of ranges.
pub(super) fn is_beyond(entry: &[u8], ends: &Encoded) -> bool {
    ends.iter().all(|end| is_behind(entry, end))
}

/// The offset of a bound in rows, counted from the row; `None` for an unbounded one.
fn rows(bound: &WindowFrameBound) -> Option<i64> {
    let offset = |offset: &ScalarValue| match offset {
        ScalarValue::UInt64(Some(offset)) => i64::try_from(*offset).ok(),
        _ => None,
    };
    match bound {
        WindowFrameBound::Preceding(before) => offset(before).map(|before| -before),
        WindowFrameBound::CurrentRow => Some(0),
        WindowFrameBound::Following(behind) => offset(behind),
    }
}

/// An end of a range over an order of these types.
fn edge(bound: &WindowFrameBound, types: &[DataType]) -> Option<Edge> {
    let (direction, by) = match bound {
        WindowFrameBound::CurrentRow => return Some(Edge::Peers),
        WindowFrameBound::Preceding(by) => (Direction::Before, by),
        WindowFrameBound::Following(by) => (Direction::Behind, by),
    };
    let [of] = types else { return None };
    let can_add = match (of, by) {
        (_, by) if by.is_null() => false,
        // Sums of floats are rounded, so a row may see another one that does not see it.
        (of, by) if of.is_signed_integer() => by.data_type() == *of,
        (DataType::Decimal128(..), by) => by.data_type() == *of,
        (DataType::Date32, ScalarValue::IntervalMonthDayNano(Some(by))) => by.nanoseconds == 0,
        (DataType::Timestamp(_, None), ScalarValue::IntervalMonthDayNano(_)) => true,
        // Days and months have another length where clocks are changed.
        (DataType::Timestamp(..), ScalarValue::IntervalMonthDayNano(Some(by))) => {
            by.days == 0 && by.months == 0
        }
        _ => false,
    };
    can_add.then(|| Edge::Away { direction, by: by.clone() })
}

impl Edge {
    /// An edge from which this one leads to a row, or past it: the other direction, and no shorter.
    pub(super) fn turned(&self) -> Self {
        let Self::Away { direction, by } = self else { return Self::Peers };
        let direction = match direction {
            Direction::Before => Direction::Behind,
            Direction::Behind => Direction::Before,
        };
        let by = match by {
            // No month is longer.
            ScalarValue::IntervalMonthDayNano(Some(by)) => {
                ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano {
                    months: 0,
                    days: by.days.saturating_add(by.months.saturating_mul(31)),
                    nanoseconds: by.nanoseconds,
                }))
            }
            by => by.clone(),
        };
        Self::Away { direction, by }
    }
}

/// The order of rows, with the means to compute ends of ranges.
pub(super) struct Orders<'a> {
    /// The rows' entries, which begin with their order.
    pub(super) entries: &'a Encoded,
    /// The columns of the order.
    pub(super) columns: &'a [ArrayRef],
    /// The order itself, without what breaks ties.
    pub(super) order: &'a KeyColumns,
    pub(super) options: &'a [SortOptions],
}

impl Orders<'_> {
    /// Bytes for each row. Where a range begins at `edge`, rows below them are before it; where it ends there, rows
    /// [past](is_behind) them are after it.
    pub(super) fn targets(&self, edge: &Edge, is_start: bool) -> Encoded {
        let mut targets = Encoded::new();
        let rows = self.entries.len();
        match edge {
            Edge::Peers => self.encode(self.columns, rows, &mut targets),
            Edge::Away { direction, by } => {
                let column = &self.columns[0];
                match self.moved(column, *direction, by) {
                    Some(moved) => self.encode(&[moved], rows, &mut targets),
                    None => {
                        for row in 0..rows {
                            match self.moved(&column.slice(row, 1), *direction, by) {
                                Some(moved) => self.encode(&[moved], 1, &mut targets),
                                None => targets.push(beyond(*direction, is_start)),
                            }
                        }
                    }
                }
            }
        }
        targets
    }

    fn encode(&self, columns: &[ArrayRef], rows: usize, targets: &mut Encoded) {
        let encoded = self.order.codec().encode(columns, rows, targets);
        encoded.expect("an order has the types its codec was made for");
    }

    /// `None` if a value does not exist.
    fn moved(&self, column: &ArrayRef, direction: Direction, by: &ScalarValue) -> Option<ArrayRef> {
        if column.is_empty() {
            return Some(new_empty_array(column.data_type()));
        }
        let by = by.to_scalar().ok()?;
        let moved = match (direction == Direction::Before) == self.options[0].descending {
            true => numeric::add(column, &by),
            false => numeric::sub(column, &by),
        };
        let moved = moved.ok()?;
        Some(match moved.data_type() {
            // The sum of decimals has one more digit.
            DataType::Decimal128(..) => {
                let decimals = moved.as_primitive::<Decimal128Type>().clone();
                Arc::new(decimals.with_data_type(column.data_type().clone()))
            }
            _ => moved,
        })
    }
}

/// The end of a range that leads beyond all values. The first byte of a key is 1 unless the value is NULL.
fn beyond(direction: Direction, is_start: bool) -> &'static [u8] {
    match (direction, is_start) {
        (Direction::Before, true) | (Direction::Behind, false) => &[1],
        (Direction::Before, false) => &[0, 0xff],
        (Direction::Behind, true) => &[2],
    }
}
