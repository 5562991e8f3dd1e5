//! The waterlines of tables: how far rows may come late, and which do.
//!
//! The waterline of a column before an epoch is the largest value that was inserted in epochs before it, less the column's
//! [`Lateness`]. Rows of the epoch below it come too late and are dropped; the others raise it for the next epoch. So no row
//! makes another one of its epoch late, and the waterlines depend on nothing but the order of epochs.

use std::collections::BTreeMap;

use alluvium_dataflow::time::waterlines::TimeColumn;
use alluvium_sql::plan::{LowerBound, Source};
use alluvium_sql::statement::Lateness;
use alluvium_trace::memory::MemoryBudget;
use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::kernels::cmp::gt;
use arrow::compute::{and, filter, max, not};
use arrow::datatypes::SchemaRef;

use super::{Applied, Effects, Persisted, SavePoint, Saving};
use crate::catalog::{Entry, Table};
use crate::changes::TableChange;
use crate::changes::late::{Bounds, integers, row_text};
use crate::clock::Moment;
use crate::durable::checkpoint::{Checkpoint, SavedWaterlines};
use crate::error::Result;
use crate::source::{Refusal, Refusing};
use crate::worker::DataflowId;

/// The waterlines of all tables.
#[derive(Default)]
pub(in crate::sequencer) struct Waterlines {
    tables: BTreeMap<DataflowId, TableWaterlines>,
    /// The bounds of the state of dataflows that are the least of several waterlines.
    leasts: BTreeMap<DataflowId, Vec<LowerBound>>,
    /// Those of tables that are not there again yet, by name.
    saved: BTreeMap<String, SavedWaterlines>,
}

/// The waterlines of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableWaterlines {
    name: String,
    schema: SchemaRef,
    lateness: Vec<Lateness>,
    primary_key: Vec<usize>,
    /// Whether late rows are shown.
    shows: bool,
    /// For each lateness; `None` before the first value.
    values: Vec<Option<i64>>,
    /// How many rows were dropped.
    late: u64,
    /// For how long it has had no rows when it is idle; `None` if it never is.
    idle_after: Option<Moment>,
    /// The time of the last epoch with rows of it, or of the first that it has not missed.
    active: Option<Moment>,
}

/// The rows of a table that came too late in an epoch, as they are shown.
pub(crate) struct LateRows {
    pub(crate) table: String,
    pub(crate) rows: Refusing,
}

/// The effect of the changes of a table in an epoch on its waterlines.
pub(in crate::sequencer) struct Sifted {
    table: DataflowId,
    /// The largest values inserted in time, for each lateness.
    highest: Vec<Option<i64>>,
    late: u64,
}

impl Waterlines {
    /// A table is there, perhaps again. Returns the waterlines it has already.
    pub(in crate::sequencer) fn declare(
        &mut self,
        id: DataflowId,
        entry: &Entry,
        table: &Table,
    ) -> Raised {
        let mut waterlines = TableWaterlines {
            name: entry.name.clone(),
            schema: entry.schema.clone(),
            lateness: table.lateness.clone(),
            primary_key: table.primary_key.clone(),
            shows: table.shows_late,
            values: vec![None; table.lateness.len()],
            late: 0,
            idle_after: table.idle_after,
            active: None,
        };
        let saved = self.saved.remove(&entry.name);
        let raised = saved.map_or_else(Vec::new, |saved| waterlines.restore(&saved));
        self.tables.insert(id, waterlines);
        raised
    }

    /// A dataflow is there with bounds of its state that are the least of several waterlines.
    pub(in crate::sequencer) fn add_leasts(&mut self, id: DataflowId, leasts: &[LowerBound]) {
        if !leasts.is_empty() {
            self.leasts.insert(id, leasts.to_vec());
        }
    }

    /// A dataflow is gone.
    pub(in crate::sequencer) fn remove(&mut self, id: DataflowId) {
        self.tables.remove(&id);
        self.leasts.remove(&id);
    }

    /// Those of a table; `None` if no row of it can be late.
    pub(in crate::sequencer) fn of(&self, table: DataflowId) -> Option<&TableWaterlines> {
        self.tables.get(&table)
    }

    /// Changes of an epoch raise the waterlines of their tables.
    fn raise(&mut self, sifted: &[Sifted], raised: &mut Raised) {
        for Sifted { table, highest, late } in sifted {
            let Some(table) = self.tables.get_mut(table) else { continue };
            table.late += late;
            for (number, highest) in highest.iter().enumerate() {
                let by = table.lateness[number].by;
                raised.extend(
                    highest.and_then(|value| table.raise(number, value.saturating_sub(by))),
                );
            }
        }
    }

    /// An epoch at `time` has changes of these tables. Tables that have had none for long are idle, and their waterlines rise as
    /// far as they would hold back others in one of the least bounds.
    fn follow(&mut self, changed: &[DataflowId], time: Moment, effects: &mut Effects) {
        let can_be_idle = self.tables.iter_mut().filter(|(_, table)| table.idle_after.is_some());
        for (id, table) in can_be_idle {
            if changed.contains(id) || table.active.is_none() {
                table.active = Some(time);
            }
        }
        let idle = self.tables.iter().filter(|(_, table)| table.is_idle(time)).map(|(id, _)| *id);
        for id in idle.collect::<Vec<_>>() {
            let wanted = self.wanted(id, time, self.leasts.values().flatten());
            let Some(table) = self.tables.get_mut(&id) else { continue };
            let before = effects.raised.len();
            for (column, value) in wanted {
                let number = table.lateness.iter().position(|lateness| lateness.column == column);
                effects.raised.extend(number.and_then(|number| table.raise(number, value)));
            }
            // Their readers may have rows that are final now.
            effects.risen.extend((effects.raised.len() > before).then_some(id));
        }
    }

    /// How high the waterlines of an idle table must be at least to hold back no others, by columns.
    fn wanted<'a>(
        &self,
        id: DataflowId,
        time: Moment,
        leasts: impl Iterator<Item = &'a LowerBound>,
    ) -> Vec<(usize, i64)> {
        let Some(table) = self.tables.get(&id) else { return Vec::new() };
        let mut wanted = Vec::new();
        for least in leasts {
            // How far views hold it back is known to workers only.
            if least.terms().iter().any(|term| term.source != Source::Table) {
                continue;
            }
            let own = least.terms().iter().filter(|term| term.column.table == table.name);
            let others = least.terms().iter().filter(|term| {
                let table = self.tables.values().find(|table| table.name == term.column.table);
                table.is_some_and(|table| !table.is_idle(time))
            });
            let others = others.map(|term| term.value(self.waterline(&term.column)?));
            let Some(others) = others.collect::<Option<Vec<i64>>>() else { continue };
            let Some(value) = others.into_iter().min() else { continue };
            wanted.extend(own.filter_map(|term| {
                let held = self.waterline(&term.column).and_then(|held| term.value(held));
                match held.is_some_and(|held| held >= value) {
                    true => None,
                    false => Some((term.column.column, term.waterline(value)?)),
                }
            }));
        }
        wanted
    }

    /// The waterline of a column.
    fn waterline(&self, column: &TimeColumn) -> Option<i64> {
        let table = self.tables.values().find(|table| table.name == column.table)?;
        table.columns().find(|(number, _)| *number == column.column)?.1
    }

    /// A table will be there under this name, with the waterlines of another one.
    pub(in crate::sequencer) fn hand_on(&mut self, id: DataflowId, name: &str) {
        if let Some(table) = self.tables.get(&id) {
            let saved = SavedWaterlines { table: name.to_owned(), ..table.saved() };
            self.saved.insert(name.to_owned(), saved);
        }
    }
}

impl Persisted for Waterlines {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let waterlines = self.tables.values().map(TableWaterlines::saved).collect();
        Box::new(|checkpoint: &mut Checkpoint| checkpoint.waterlines = waterlines)
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let saved = std::mem::take(&mut checkpoint.waterlines).into_iter();
        self.saved.extend(saved.map(|saved| (saved.table.clone(), saved)));
        Ok(())
    }

    fn apply(&mut self, commit: &Applied<'_>, effects: &mut Effects) -> Result<()> {
        self.raise(commit.sifted, &mut effects.raised);
        self.follow(commit.tables, commit.time, effects);
        Ok(())
    }
}

/// Columns and the values that their waterlines have risen to.
pub(in crate::sequencer) type Raised = Vec<(TimeColumn, i64)>;

impl TableWaterlines {
    /// As a checkpoint has them.
    fn saved(&self) -> SavedWaterlines {
        let columns = self.columns().map(|(column, value)| (column as u32, value));
        SavedWaterlines {
            table: self.name.clone(),
            columns: columns.collect(),
            late: self.late,
            active: self.active,
        }
    }

    /// Whether it has had no rows for long.
    fn is_idle(&self, time: Moment) -> bool {
        let since = self.active.map(|active| time.saturating_sub(active));
        self.idle_after.zip(since).is_some_and(|(after, since)| since >= after)
    }

    /// How many rows came too late and were dropped before they were committed.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// The columns and their waterlines, which are `None` before the first value.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (usize, Option<i64>)> {
        self.lateness.iter().map(|lateness| lateness.column).zip(self.values.iter().copied())
    }

    /// The lower bounds for rows to be in time; `None` if all are.
    pub(crate) fn bounds(&self) -> Option<Bounds> {
        Bounds::new(self.columns().filter_map(|(column, value)| Some((column, value?))))
    }

    /// The lower bounds for deletions. With a primary key, the other columns of a deletion have no meaning.
    fn bounds_of_deletions(&self) -> Option<Bounds> {
        if self.primary_key.is_empty() {
            return self.bounds();
        }
        let of_key = self.columns().filter(|(column, _)| self.primary_key.contains(column));
        Bounds::new(of_key.filter_map(|(column, value)| Some((column, value?))))
    }

    /// Drops the changes of an epoch that come too late, and finds the largest values of the others.
    pub(in crate::sequencer) fn sift(
        &self,
        table: DataflowId,
        changes: &mut Vec<TableChange>,
        budget: &MemoryBudget,
    ) -> Result<(Sifted, Option<LateRows>)> {
        let (all, deletions) = (self.bounds(), self.bounds_of_deletions());
        let mut sifted = Sifted { table, highest: vec![None; self.lateness.len()], late: 0 };
        let mut shown = self.shows.then(|| Refusing::new(budget));
        let before = std::mem::take(changes);
        for change in before {
            let bounds = if change.deletes() { &deletions } else { &all };
            let rows = change.rows().load()?;
            let late = match bounds {
                Some(bounds) => bounds.late(rows.columns())?,
                None => None,
            };
            let count = late.as_ref().map_or(0, BooleanArray::true_count);
            sifted.late += count as u64;
            if let (Some(late), Some(bounds), Some(shown)) = (&late, bounds, &mut shown) {
                self.show(&rows, late, bounds, shown);
            }
            if count == rows.num_rows() {
                continue;
            }
            if !change.deletes() {
                let inserted = self.inserted(&change, &rows, late.as_ref())?;
                self.find_highest(&rows, inserted.as_ref(), &mut sifted.highest)?;
            }
            changes.push(match late {
                Some(_) => change.within(bounds.clone()),
                None => change,
            });
        }
        let rows = shown.filter(|rows| rows.len() > 0);
        Ok((sifted, rows.map(|rows| LateRows { table: self.name.clone(), rows })))
    }

    /// Which rows are inserted in time; `None` if all are.
    fn inserted(
        &self,
        change: &TableChange,
        rows: &RecordBatch,
        late: Option<&BooleanArray>,
    ) -> Result<Option<BooleanArray>> {
        let in_time = late.map(not).transpose()?;
        let Some(weights) = change.weights_in(rows) else { return Ok(in_time) };
        let inserted = gt(weights, &Int64Array::new_scalar(0))?;
        Ok(Some(match in_time {
            Some(in_time) => and(&in_time, &inserted)?,
            None => inserted,
        }))
    }

    fn find_highest(
        &self,
        rows: &RecordBatch,
        inserted: Option<&BooleanArray>,
        highest: &mut [Option<i64>],
    ) -> Result<()> {
        for (lateness, highest) in self.lateness.iter().zip(highest) {
            let column: &ArrayRef = rows.column(lateness.column);
            let values = match inserted {
                Some(inserted) => integers(&filter(column, inserted)?)?,
                None => integers(column)?,
            };
            *highest = (*highest).max(max(&values));
        }
        Ok(())
    }

    /// Adds the rows that are late to those that are shown.
    fn show(&self, rows: &RecordBatch, late: &BooleanArray, bounds: &Bounds, shown: &mut Refusing) {
        let width = self.schema.fields().len();
        for row in late.values().set_indices() {
            if shown.is_full() {
                let others = late.slice(row, late.len() - row).true_count();
                shown.leave_out(others as u64);
                return;
            }
            let reason = bounds.reason(&self.schema, rows.columns(), row);
            let message = format!("the row comes too late: {reason}");
            let file = row_text(rows, width, row).into();
            shown.extend([Refusal { file, line: 0, message }]);
        }
    }

    /// Raises a waterline to a value.
    fn raise(&mut self, number: usize, value: i64) -> Option<(TimeColumn, i64)> {
        if self.values[number].is_some_and(|before| value <= before) {
            return None;
        }
        self.values[number] = Some(value);
        let column = self.lateness[number].column;
        Some((TimeColumn { table: self.name.clone(), column }, value))
    }

    fn restore(&mut self, saved: &SavedWaterlines) -> Raised {
        self.late += saved.late;
        self.active = saved.active;
        let mut raised = Vec::new();
        for number in 0..self.lateness.len() {
            let column = self.lateness[number].column;
            let saved = saved.columns.iter().find(|(saved, _)| *saved as usize == column);
            let value = saved.and_then(|(_, value)| *value);
            raised.extend(value.and_then(|value| self.raise(number, value)));
        }
        raised
    }
}
