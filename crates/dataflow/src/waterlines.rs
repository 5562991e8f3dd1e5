//! Waterlines: below which values no changes of a table come any more.
//!
//! The sequencer computes them from the rows of each epoch, so they are the same on all workers. It drops the rows of an
//! epoch that are below the waterlines as they stood before it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use alluvium_trace::Epoch;
use parking_lot::Mutex;

use crate::fault::{self, Fault};

/// A column of a table that has a waterline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeColumn {
    /// The table's name.
    pub table: String,
    /// The number of the column in it.
    pub column: usize,
}

/// The waterlines of all tables, as a worker knows them. Clones share them.
///
/// A waterline from an epoch on promises: each row that is inserted or deleted at this epoch or later has NULL in the
/// column, or at least this value. Values are as Arrow has them in memory: microseconds, days, or numbers. A waterline never
/// falls.
#[derive(Clone, Debug, Default)]
pub struct Waterlines {
    columns: Arc<Mutex<BTreeMap<TimeColumn, Steps>>>,
}

/// The values of a waterline, and from which epoch on each holds.
type Steps = VecDeque<(Epoch, i64)>;

impl Waterlines {
    /// The waterline of a column is at `value` from `epoch` on, which is not before an epoch it was raised at.
    pub fn raise(&self, column: TimeColumn, epoch: Epoch, value: i64) {
        let mut columns = self.columns.lock();
        let steps = columns.entry(column).or_default();
        match steps.back_mut() {
            Some((_, last)) if *last >= value => {}
            Some((last_epoch, last)) if *last_epoch == epoch => *last = value,
            _ => steps.push_back((epoch, value)),
        }
    }

    /// The waterline of a column from `epoch` on; `None` if none is known.
    pub fn at(&self, column: &TimeColumn, epoch: Epoch) -> Option<i64> {
        let columns = self.columns.lock();
        let steps = columns.get(column)?;
        if fault::armed(Fault::WaterlineAhead) {
            return Some(steps.back()?.1 + 1);
        }
        let end = steps.partition_point(|(from, _)| *from <= epoch);
        Some(steps.get(end.checked_sub(1)?)?.1)
    }

    /// Nobody asks for waterlines from an epoch before `epoch` on any more.
    pub fn forget_before(&self, epoch: Epoch) {
        for steps in self.columns.lock().values_mut() {
            let end = steps.partition_point(|(from, _)| *from <= epoch);
            steps.drain(..end.saturating_sub(1));
        }
    }

    /// A table is gone.
    pub fn remove(&self, table: &str) {
        self.columns.lock().retain(|column, _| column.table != table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waterline_holds_from_its_epoch_on() {
        let waterlines = Waterlines::default();
        let column = TimeColumn { table: "t".to_owned(), column: 1 };
        assert_eq!(waterlines.at(&column, 9), None);
        for (epoch, value) in [(3, 10), (3, 11), (5, 11), (7, 20)] {
            waterlines.raise(column.clone(), epoch, value);
        }
        let at = |epoch| waterlines.at(&column, epoch);
        assert_eq!([2, 3, 6, 7, 8].map(at), [None, Some(11), Some(11), Some(20), Some(20)]);
        waterlines.forget_before(6);
        assert_eq!([2, 3, 6, 7].map(at), [None, Some(11), Some(11), Some(20)]);
        waterlines.forget_before(7);
        assert_eq!([6, 7].map(at), [None, Some(20)]);
        waterlines.remove("t");
        assert_eq!(waterlines.at(&column, 9), None);
    }
}
