//! Views with lateness: the changes of their queries that are in time.
//!
//! The rows of such a view depend on all that its query has returned so far. So the query is evaluated after each
//! transaction, and what has changed is sifted by the rule: a change below the waterline as it stood before is dropped, and
//! the greatest time that is inserted raises it.

use std::collections::BTreeMap;

use crate::naive::Row;
use crate::program::ViewLateness;
use crate::query::Value;

/// The model of a view with lateness.
#[derive(Debug)]
pub(super) struct LateView {
    lateness: ViewLateness,
    /// The rows that the query returned; `None` once they are unknown.
    returned: Option<Vec<Row>>,
    held: Vec<Row>,
    waterline: Option<i64>,
}

impl LateView {
    pub(super) fn new(lateness: ViewLateness) -> Self {
        Self { lateness, returned: Some(Vec::new()), held: Vec::new(), waterline: None }
    }

    /// The query returns these rows now, if that is known. Returns the rows of the view.
    pub(super) fn step(&mut self, rows: Option<Vec<Row>>) -> Option<Vec<Row>> {
        let (Some(before), Some(now)) = (self.returned.take(), rows) else { return None };
        let gone = without(&before, &now);
        let new = without(&now, &before);
        self.returned = Some(now);
        let time = |row: &Row| row[self.lateness.column].as_time();
        let is_late = |row: &Row| {
            time(row).zip(self.waterline).is_some_and(|(time, waterline)| time < waterline)
        };
        let in_time = |rows: &[Row]| rows.iter().filter(|row| !is_late(row)).cloned().collect();
        let (deleted, inserted): (Vec<Row>, Vec<Row>) = (in_time(&gone), in_time(&new));
        self.held.extend(inserted);
        self.held = without(&self.held, &deleted);
        let greatest = new.iter().filter_map(time).max();
        self.waterline = self.waterline.max(greatest.map(|time| time - self.lateness.by));
        Some(self.held.clone())
    }
}

/// The rows of a list that are not in another, copies of a row one by one.
fn without(rows: &[Row], others: &[Row]) -> Vec<Row> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let key = |row: &Row| row.iter().map(Value::literal).collect::<Vec<_>>().join(", ");
    others.iter().for_each(|row| *counts.entry(key(row)).or_default() += 1);
    let is_left = |row: &&Row| match counts.get_mut(&key(row)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    rows.iter().filter(is_left).cloned().collect()
}
