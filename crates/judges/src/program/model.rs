//! The expected contents of a program's tables.

use std::collections::HashMap;

use super::{Program, Table, Write};
use crate::naive::{Outcome, Relation, Row, World};

/// The tables of a program and its known views, with their rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) relations: HashMap<String, Relation>,
    /// Below which times rows of a table come too late.
    waterlines: HashMap<String, i64>,
    /// The latest times that transactions have inserted, of which the waterlines do not know yet.
    latest: HashMap<String, i64>,
}

impl Model {
    pub(crate) fn of(tables: &[Table]) -> Self {
        let relations = tables.iter().map(|table| {
            let columns = table.columns.iter();
            let columns = columns.map(|column| (column.name.clone(), column.kind)).collect();
            (table.name.clone(), Relation { columns, rows: Some(Vec::new()) })
        });
        Self { relations: relations.collect(), ..Self::default() }
    }

    pub(crate) fn rows(&self, name: &str) -> &[Row] {
        let relation = self.relations.get(name);
        relation.and_then(|relation| relation.rows.as_deref()).unwrap_or_default()
    }

    /// A transaction is committed: its rows raise the waterlines.
    pub(crate) fn commit(&mut self, tables: &[Table]) {
        for table in tables {
            let Some((_, by)) = table.lateness else { continue };
            if let Some(latest) = self.latest.get(&table.name) {
                self.waterlines.insert(table.name.clone(), latest - by);
            }
        }
    }

    /// Whether a row comes too late, or can no longer change.
    fn is_late(&self, table: &Table, row: &Row) -> bool {
        let waterline = self.waterlines.get(&table.name);
        table.time(row).zip(waterline).is_some_and(|(time, waterline)| time < *waterline)
    }

    /// Whether a statement must be refused.
    pub(crate) fn refuses(&self, program: &Program, write: &Write) -> bool {
        match write {
            Write::Refused(..) => true,
            Write::Insert(table, rows) => {
                let table = &program.tables[*table];
                let is_taken = |row: &Row| {
                    self.rows(&table.name)
                        .iter()
                        .any(|other| other[..table.key] == row[..table.key])
                };
                table.refuses_taken_keys(rows) && rows.iter().any(is_taken)
            }
            _ => false,
        }
    }

    /// Executes a change that is not refused. Expressions in statements do not fail.
    pub(crate) fn write(&mut self, program: &Program, write: &Write) -> Outcome<()> {
        match write {
            Write::Insert(table, rows) => self.insert(&program.tables[*table], rows.clone()),
            Write::Refused(..) => {}
            Write::Delete(table, condition) => {
                let table = &program.tables[*table];
                let (_, left) = self.divided(table, condition)?;
                self.replace(table, left);
            }
            Write::Again(table, condition) => {
                let table = &program.tables[*table];
                let (chosen, _) = self.divided(table, condition)?;
                self.insert(table, chosen);
            }
            Write::Update(table, sets, condition) => {
                let table = &program.tables[*table];
                let (chosen, mut rows) = self.divided(table, condition)?;
                let world = World::new(&self.relations, 0);
                for row in chosen {
                    let mut changed = row.clone();
                    for (column, value) in sets {
                        changed[*column] = world.of_row(&table.name, &row, value)?;
                    }
                    rows.push(changed);
                }
                self.replace(table, rows);
            }
        }
        Ok(())
    }

    /// The rows for which a condition holds, and the others.
    pub(crate) fn divided(
        &self,
        table: &Table,
        condition: &crate::query::Expr,
    ) -> Outcome<(Vec<Row>, Vec<Row>)> {
        let world = World::new(&self.relations, 0);
        let (mut chosen, mut others) = (Vec::new(), Vec::new());
        for row in self.rows(&table.name) {
            match world.holds(&table.name, row, condition)? {
                true => chosen.push(row.clone()),
                false => others.push(row.clone()),
            }
        }
        Ok((chosen, others))
    }

    fn insert(&mut self, table: &Table, new: Vec<Row>) {
        let mut rows = self.rows(&table.name).to_vec();
        for row in new {
            if self.is_late(table, &row) {
                continue;
            }
            if let Some(time) = table.time(&row) {
                let latest = self.latest.entry(table.name.clone()).or_insert(time);
                *latest = time.max(*latest);
            }
            if table.key > 0 {
                let replaced = rows.iter().find(|other| other[..table.key] == row[..table.key]);
                if replaced.is_some_and(|replaced| self.is_late(table, replaced)) {
                    continue;
                }
                rows.retain(|other| other[..table.key] != row[..table.key]);
            }
            rows.push(row);
        }
        self.replace(table, rows);
    }

    fn replace(&mut self, table: &Table, rows: Vec<Row>) {
        if let Some(relation) = self.relations.get_mut(&table.name) {
            relation.rows = Some(rows);
        }
    }
}
