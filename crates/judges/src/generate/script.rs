//! Generating the changes to tables.

use super::{Maker, Sight};
use crate::program::{Step, Table, Write};
use crate::query::{Expr, Kind, Op, Value};

impl Maker {
    /// A transaction.
    pub(super) fn transaction(&mut self, tables: &[Table], steps: &mut Vec<Step>) {
        let writes = match self.below(3) {
            0 => 1,
            _ => 2 + self.below(4),
        };
        self.transactions += 1;
        let mut made = Vec::new();
        if writes > 1 {
            steps.push(Step::Begin);
        }
        for _ in 0..writes {
            made.push(self.write(tables));
        }
        let is_committed = writes == 1 || !self.once_in(7);
        if is_committed {
            for write in &made {
                if let Write::Insert(place, rows) = write {
                    self.note(*place, &tables[*place], rows);
                }
            }
        }
        steps.extend(made.into_iter().map(Step::Write));
        if writes > 1 {
            steps.push(if is_committed { Step::Commit } else { Step::Rollback });
        }
    }

    /// Initial rows.
    pub(super) fn first_rows(&mut self, place: usize, table: &Table) -> Step {
        let rows = 4 + self.below(7);
        let rows: Vec<Vec<Value>> = (0..rows).map(|_| self.row(table)).collect();
        self.note(place, table, &rows);
        Step::Write(Write::Insert(place, rows))
    }

    /// Notes the times of rows that are committed.
    fn note(&mut self, place: usize, table: &Table, rows: &[Vec<Value>]) {
        let latest = rows.iter().filter_map(|row| table.time(row)).max();
        self.latest[place] = self.latest[place].max(latest);
    }

    /// A row. The times of tables with lateness rise from one transaction to the next.
    fn row(&mut self, table: &Table) -> Vec<Value> {
        let columns = table.columns.iter();
        let mut row: Vec<Value> = columns
            .map(|column| match column.not_null {
                true => self.known(column.kind),
                false => self.value(column.kind),
            })
            .collect();
        if let Some((place, _)) = table.lateness {
            match &mut row[place] {
                Value::Whole(number) => *number += self.transactions as i128,
                Value::Moment(seconds) => *seconds += 10 * self.transactions as i64,
                _ => {}
            }
        }
        row
    }

    fn write(&mut self, tables: &[Table]) -> Write {
        let place = self.below(tables.len());
        let table = &tables[place];
        let only_inserts = table.append_only;
        match self.below(10) {
            0..4 => self.insert(place, table),
            _ if only_inserts => self.insert(place, table),
            4..7 => Write::Delete(place, self.some_rows(place, table)),
            7 | 8 => {
                let is_time =
                    |column: usize| table.lateness.is_some_and(|(time, _)| column == time);
                let free: Vec<usize> =
                    (table.key..table.columns.len()).filter(|column| !is_time(*column)).collect();
                if free.is_empty() {
                    return self.insert(place, table);
                }
                let column = self.one_of(&free);
                let of = &table.columns[column];
                let own = Expr::Column(table.name.clone(), of.name.clone(), of.kind);
                let value = match of.kind {
                    Kind::Integer | Kind::Big if self.once_in(2) => {
                        Expr::binary(own, Op::Add, Expr::literal(Value::Whole(1), of.kind))
                    }
                    kind => self.constant(kind),
                };
                // Numbers that are incremented must stay in the range of their type.
                let condition = self.some_rows(place, table);
                Write::Update(place, vec![(column, value)], condition)
            }
            _ => {
                if table.key == 0 && self.once_in(2) {
                    return Write::Again(place, self.some_rows(place, table));
                }
                let mut row = self.row(table);
                match table.columns.iter().position(|column| column.not_null) {
                    Some(column) => {
                        row[column] = Value::Null;
                        Write::Refused(place, row)
                    }
                    None => self.insert(place, table),
                }
            }
        }
    }

    fn insert(&mut self, place: usize, table: &Table) -> Write {
        let rows = 1 + self.below(3);
        Write::Insert(place, (0..rows).map(|_| self.row(table)).collect())
    }

    /// A condition that holds for few rows, and for none that can no longer change.
    fn some_rows(&mut self, place: usize, table: &Table) -> Expr {
        let some = self.few_rows(table);
        let Some(((time, by), latest)) = table.lateness.zip(self.latest[place]) else {
            return some;
        };
        let column = &table.columns[time];
        let waterline = match column.kind {
            Kind::Moment => Value::Moment(latest - by),
            _ => Value::Whole((latest - by).into()),
        };
        let own = Expr::Column(table.name.clone(), column.name.clone(), column.kind);
        let in_time = Expr::binary(own, Op::GreaterEqual, Expr::literal(waterline, column.kind));
        Expr::binary(some, Op::And, in_time)
    }

    /// A condition that holds for few rows.
    fn few_rows(&mut self, table: &Table) -> Expr {
        let columns = table.columns.iter().map(|column| (column.name.clone(), column.kind));
        let sight: Sight = vec![(table.name.clone(), columns.collect())];
        let key = &table.columns[0];
        let own = Expr::Column(table.name.clone(), key.name.clone(), key.kind);
        let one_key = Expr::binary(own, Op::Equal, self.constant(key.kind));
        match self.below(4) {
            0 | 1 => one_key,
            2 => self.condition(&sight, 0),
            _ => Expr::binary(one_key, Op::And, self.condition(&sight, 0)),
        }
    }
}
