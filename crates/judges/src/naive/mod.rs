//! A naive evaluator of queries.
//!
//! Every query is evaluated from scratch over lists of rows: joins are nested loops, groups are found by comparing
//! keys, and a subquery is evaluated once per outer row. It supports features that other databases lack or get
//! wrong: INTERSECT ALL and EXCEPT ALL, NULLs in `NOT IN`, and rows whose expressions fail, which are left out and
//! counted. For an unsupported query it returns [`Fault::Unknown`].
//!
//! In reading order: [`mod@select`] evaluates queries, [`from`] joins and time windows, [`expression`] and
//! `function` scalar expressions, [`zone`] times, [`aggregate`] aggregates, and [`window`] window functions.

mod aggregate;
mod expression;
mod from;
mod function;
mod select;
mod window;
mod zone;

use std::cell::Cell;
use std::collections::HashMap;

use crate::query::{Kind, Query, Value};

/// The values of a row.
pub(crate) type Row = Vec<Value>;

/// A relation: its columns, and its rows if they are known.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) columns: Vec<(String, Kind)>,
    pub(crate) rows: Option<Vec<Row>>,
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The expression fails for this row.
    Failed,
    /// The evaluator does not support this, or it would take too long.
    Unknown(&'static str),
}

pub(crate) type Outcome<V> = Result<V, Fault>;

/// The number of pairs and rows after which evaluation is given up.
const PATIENCE: u64 = 3_000_000;

/// The relations over which queries are evaluated, and the time.
pub(crate) struct World<'a> {
    pub(crate) relations: &'a HashMap<String, Relation>,
    pub(crate) now: i64,
    /// The number of rows that failed.
    pub(crate) failures: Cell<u64>,
    patience: Cell<u64>,
}

impl<'a> World<'a> {
    pub(crate) fn new(relations: &'a HashMap<String, Relation>, now: i64) -> Self {
        Self { relations, now, failures: Cell::new(0), patience: Cell::new(PATIENCE) }
    }

    /// The result of a query.
    pub(crate) fn answer(&self, query: &Query) -> Outcome<Vec<Row>> {
        self.query(query, None)
    }

    /// Whether a condition holds for a row of a relation.
    pub(crate) fn holds(
        &self,
        relation: &str,
        row: &[Value],
        condition: &crate::query::Expr,
    ) -> Outcome<bool> {
        Ok(self.of_row(relation, row, condition)? == Value::Boolean(true))
    }

    /// The value of an expression for a row of a relation.
    pub(crate) fn of_row(
        &self,
        relation: &str,
        row: &[Value],
        expr: &crate::query::Expr,
    ) -> Outcome<Value> {
        let columns = &self.relations.get(relation).ok_or(Fault::Unknown("relation"))?.columns;
        let columns: Vec<_> =
            columns.iter().map(|(name, _)| (relation.to_owned(), name.clone())).collect();
        self.value(expr, &Scope { columns: &columns, row, group: None, windows: &[], outer: None })
    }

    fn work(&self, amount: u64) -> Outcome<()> {
        let left = self.patience.get().checked_sub(amount).ok_or(Fault::Unknown("too much"))?;
        self.patience.set(left);
        Ok(())
    }

    /// Counts and drops a row whose expression fails.
    fn keep<V>(&self, outcome: Outcome<V>) -> Outcome<Option<V>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Fault::Failed) => {
                self.failures.set(self.failures.get() + 1);
                Ok(None)
            }
            Err(unknown) => Err(unknown),
        }
    }
}

/// The relation and name of a column.
type Name = (String, String);

/// The columns that an expression can refer to.
#[derive(Clone, Copy)]
struct Scope<'a> {
    columns: &'a [Name],
    row: &'a [Value],
    group: Option<&'a GroupOf<'a>>,
    /// The window functions of the query, with their values for this row.
    windows: &'a [(&'a crate::query::Window, Value)],
    outer: Option<&'a Scope<'a>>,
}

/// A group of rows.
struct GroupOf<'a> {
    /// The keys and their values; `None` for a key that the grouping set lacks.
    keys: Vec<(&'a crate::query::Expr, Option<Value>)>,
    rows: Vec<&'a Row>,
}

impl Scope<'_> {
    fn column(&self, relation: &str, name: &str) -> Outcome<Value> {
        let found = self
            .columns
            .iter()
            .position(|column| column.1 == name && (relation.is_empty() || column.0 == relation));
        match (found, self.outer) {
            (Some(place), _) if self.group.is_none() => Ok(self.row[place].clone()),
            (Some(_), _) => Err(Fault::Unknown("a column that is not grouped by")),
            (None, Some(outer)) => outer.column(relation, name),
            (None, None) => Err(Fault::Unknown("column")),
        }
    }
}
