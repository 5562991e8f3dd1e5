//! Waterlines: below which values no changes of a table or view come any more.
//!
//! Those of tables the sequencer computes from the rows of each epoch, so they are the same on all workers. It drops the
//! rows of an epoch that are below the waterlines as they stood before it. Those of a view are known where its rows are
//! computed ([`crate::time::in_time`]), so a dataflow has its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use alluvium_trace::Epoch;
use parking_lot::Mutex;

use crate::fault::{self, Fault};

/// A column of a table or view that has a waterline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeColumn {
    /// The name of the table or view.
    pub table: String,
    /// The number of the column in it.
    pub column: usize,
}

/// The waterlines of all tables, or those of a dataflow, as a worker knows them. Clones share them.
///
/// A waterline from an epoch on promises: each row that is inserted or deleted at this epoch or later has NULL in the
/// column, or at least this value. Values are as Arrow has them in memory: microseconds, days, or numbers. A waterline never
/// falls.
#[derive(Clone, Debug, Default)]
pub struct Waterlines {
    all: Arc<Mutex<BTreeMap<Owner, BTreeMap<TimeColumn, Steps>>>>,
    owner: Owner,
}

/// The number of the dataflow that has waterlines; `None` of those of tables.
type Owner = Option<u64>;

/// The values of a waterline, and from which epoch on each holds.
type Steps = VecDeque<(Epoch, i64)>;

impl Waterlines {
    /// Those of the dataflow with this number, where these are the ones of tables.
    pub fn of_dataflow(&self, number: u64) -> Self {
        Self { all: Arc::clone(&self.all), owner: Some(number) }
    }

    /// The waterline of a column is at `value` from `epoch` on, which is not before an epoch it was raised at.
    pub fn raise(&self, column: TimeColumn, epoch: Epoch, value: i64) {
        let mut all = self.all.lock();
        let steps = all.entry(self.owner).or_default().entry(column).or_default();
        match steps.back_mut() {
            Some((_, last)) if *last >= value => {}
            Some((last_epoch, last)) if *last_epoch == epoch => *last = value,
            _ => steps.push_back((epoch, value)),
        }
    }

    /// The waterline of a column from `epoch` on; `None` if none is known.
    pub fn at(&self, column: &TimeColumn, epoch: Epoch) -> Option<i64> {
        let all = self.all.lock();
        let steps = all.get(&self.owner)?.get(column)?;
        if fault::armed(Fault::WaterlineAhead) {
            return Some(steps.back()?.1 + 1);
        }
        let end = steps.partition_point(|(from, _)| *from <= epoch);
        Some(steps.get(end.checked_sub(1)?)?.1)
    }

    /// Waterlines of epochs before `epoch` are no longer asked for, neither for those of tables nor for any others.
    pub fn forget_before(&self, epoch: Epoch) {
        for steps in self.all.lock().values_mut().flat_map(BTreeMap::values_mut) {
            let end = steps.partition_point(|(from, _)| *from <= epoch);
            steps.drain(..end.saturating_sub(1));
        }
    }

    /// A table is gone.
    pub fn remove(&self, table: &str) {
        if let Some(columns) = self.all.lock().get_mut(&self.owner) {
            columns.retain(|column, _| column.table != table);
        }
    }

    /// A dataflow is gone.
    pub fn remove_dataflow(&self, number: u64) {
        self.all.lock().remove(&Some(number));
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

    #[test]
    fn a_dataflow_has_waterlines_of_its_own() {
        let tables = Waterlines::default();
        let column = TimeColumn { table: "v".to_owned(), column: 0 };
        let (one, other) = (tables.of_dataflow(1), tables.of_dataflow(2));
        one.raise(column.clone(), 3, 10);
        one.raise(column.clone(), 5, 20);
        other.raise(column.clone(), 4, 7);
        let at = |epoch| [&tables, &one, &other].map(|of| of.at(&column, epoch));
        assert_eq!(at(4), [None, Some(10), Some(7)]);
        assert_eq!(tables.of_dataflow(1).at(&column, 5), Some(20));
        tables.forget_before(5);
        assert_eq!(at(4), [None, None, Some(7)]);
        tables.remove_dataflow(1);
        assert_eq!(at(5), [None, None, Some(7)]);
    }
}
