//! Judging the rows that queries find by indexes.

use super::bench::Bench;
use super::judge::cells;
use crate::answers::compare::{Measure, difference};
use crate::answers::row::rows;
use crate::program::{Index, Table};
use crate::query::{Expr, Op, Value, text};

/// The comparisons that find ranges of an index. Those of equality are the most common.
const COMPARISONS: [Op; 6] =
    [Op::Equal, Op::LessEqual, Op::Equal, Op::GreaterEqual, Op::Less, Op::Greater];

impl Bench<'_> {
    /// Compares the rows that conditions on the columns of indexes leave with those of the model.
    pub(super) fn judge_indexes(&self) -> Result<(), String> {
        self.program.indexes.iter().try_for_each(|index| self.judge_index(index))
    }

    fn judge_index(&self, index: &Index) -> Result<(), String> {
        let table = &self.program.tables[index.table];
        let present = self.model.rows(&table.name);
        // The values of a row that is there, or those of one that never was.
        let row = present.get(self.place % (present.len() + 1));
        let values =
            index.columns.iter().map(|column| row.map_or(Value::Null, |row| row[*column].clone()));
        let turn = self.program.number as usize + self.place;
        let conditions =
            index.columns.iter().zip(values).enumerate().map(|(place, (column, value))| {
                let is_last = place + 1 == index.columns.len();
                let op = if is_last { COMPARISONS[turn % COMPARISONS.len()] } else { Op::Equal };
                compared(table, *column, op, value)
            });
        let Some(condition) = conditions.reduce(|one, other| Expr::binary(one, Op::And, other))
        else {
            return Ok(());
        };
        let Ok((expected, _)) = self.model.divided(table, &condition) else { return Ok(()) };
        let found = format!("{} WHERE {}", table.name, text::condition(&condition));
        let (_, batches) = self.read(&found)?;
        match difference(&cells(&expected), &rows(&batches), Measure::Typed) {
            None => Ok(()),
            Some(difference) => {
                let index = self.program.index_sql(index);
                Err(format!("SELECT * FROM {found} is wrong: {difference}, with {index}"))
            }
        }
    }
}

fn compared(table: &Table, column: usize, op: Op, value: Value) -> Expr {
    let column = &table.columns[column];
    let own = Expr::Column(table.name.clone(), column.name.clone(), column.kind);
    Expr::binary(own, op, Expr::literal(value, column.kind))
}
