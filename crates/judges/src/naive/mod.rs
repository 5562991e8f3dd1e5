//! A naive evaluator: what a query means, in the plainest words.
//!
//! Every query is evaluated from scratch over lists of rows: joins are loops in loops, groups are found by
//! comparing, a subquery is evaluated for each row around it. It knows what the other judges get wrong or lack:
//! INTERSECT ALL and EXCEPT ALL, NULLs in `NOT IN`, and rows whose expressions fail, which are left out and
//! counted. What it does not know it says ([`Fault::Unknown`]).
//!
//! In reading order: [`mod@select`] are queries, [`from`] joins and windows of time, [`expression`] and `function` what
//! is computed of a row, [`aggregate`] of a group, [`window`] of the rows around a row.

mod aggregate;
mod expression;
mod from;
mod function;
mod select;
mod window;

use std::cell::Cell;
use std::collections::HashMap;

use crate::query::{Kind, Query, Value};

/// The values of a row.
pub(crate) type Row = Vec<Value>;

/// A relation: its columns, and what it holds if that is known.
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
    /// This is not known here, or too much.
    Unknown(&'static str),
}

pub(crate) type Outcome<V> = Result<V, Fault>;

/// How many pairs and rows are looked at before it is too much.
const PATIENCE: u64 = 3_000_000;

/// What queries are evaluated over.
pub(crate) struct World<'a> {
    pub(crate) relations: &'a HashMap<String, Relation>,
    pub(crate) now: i64,
    /// How many rows have failed.
    pub(crate) failures: Cell<u64>,
    patience: Cell<u64>,
}

impl<'a> World<'a> {
    pub(crate) fn new(relations: &'a HashMap<String, Relation>, now: i64) -> Self {
        Self { relations, now, failures: Cell::new(0), patience: Cell::new(PATIENCE) }
    }

    /// What a query gives.
    pub(crate) fn answer(&self, query: &Query) -> Outcome<Vec<Row>> {
        self.query(query, None)
    }

    /// Whether a condition holds in a row of a relation.
    pub(crate) fn holds(
        &self,
        relation: &str,
        row: &[Value],
        condition: &crate::query::Expr,
    ) -> Outcome<bool> {
        Ok(self.of_row(relation, row, condition)? == Value::Boolean(true))
    }

    /// An expression over a row of a relation.
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

    /// Lets a row go whose expression fails.
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

/// The name of a column: its relation, and its own.
type Name = (String, String);

/// What is in sight of an expression.
#[derive(Clone, Copy)]
struct Scope<'a> {
    columns: &'a [Name],
    row: &'a [Value],
    group: Option<&'a GroupOf<'a>>,
    /// The window functions of the query, with their values in this row.
    windows: &'a [(&'a crate::query::Window, Value)],
    outer: Option<&'a Scope<'a>>,
}

/// A group of rows.
struct GroupOf<'a> {
    /// The keys, with their values; none if the grouping set is without it.
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
