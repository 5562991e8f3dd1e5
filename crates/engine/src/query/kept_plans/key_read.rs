//! Reads of a row by its key, which need no query engine.
//!
//! A [kept plan](super) that compares each column of a relation's key with a constant or a parameter, has no other
//! condition, and selects columns as they are runs as [`View::get`](crate::View::get) does: the row is sought in a version
//! that stays pinned until there is another one, and decoded.

use std::sync::Arc;

use alluvium_trace::Epoch;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::Column;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;

use super::key::{equality, key_values};
use crate::catalog::Entry;
use crate::error::{Error, Result, SqlState};
use crate::interrupt;
use crate::query::reader::Reader;
use crate::query::rows::Rows;
use crate::view::Keyed;

/// A read of the row with one key.
#[derive(Debug)]
pub(super) struct KeyRead {
    relation: Arc<Keyed>,
    /// The value of each column of the key: a constant, or a parameter with the type of the column.
    key: Vec<Expr>,
    /// The columns that are selected.
    columns: Vec<usize>,
    /// The names of these.
    schema: SchemaRef,
}

impl KeyRead {
    /// The read that a plan over a relation is, if it is one.
    pub(super) fn of(reader: &Reader, plan: &LogicalPlan, entry: &Entry) -> Option<Self> {
        // It is found by the catalog's relations.
        if entry.temporary().is_some() {
            return None;
        }
        let relation = reader.keyed(entry).ok()?;
        let mut conditions = Vec::new();
        let columns = selected(plan, &mut conditions)?;
        let mut key: Vec<Option<Expr>> = vec![None; relation.key().len()];
        for (column, value) in conditions {
            let place = relation.key().iter().position(|&key| key == column)?;
            // It comes twice: in the filter, and in the scan that it is passed to.
            if *key[place].get_or_insert_with(|| value.clone()) != value {
                return None;
            }
        }
        let is_float = |&column: &usize| entry.schema.field(column).data_type().is_floating();
        if key.is_empty() || relation.key().iter().any(is_float) {
            return None;
        }
        let schema = Arc::clone(plan.schema().inner());
        Some(Self { key: key.into_iter().collect::<Option<_>>()?, relation, columns, schema })
    }

    /// Answers for these values, as of at least an epoch.
    pub(super) fn read(
        &self,
        reader: &Reader,
        values: &[ScalarValue],
        at_least: Epoch,
    ) -> Result<Rows> {
        interrupt::check()?;
        let schema = self.schema.clone();
        // NULL equals nothing.
        let Some(key) = key_values(&self.key, values)? else {
            return Ok(Rows::new(schema, Vec::new()));
        };
        let rows = self.relation.get(reader, &key, &self.columns, at_least);
        let rows = rows.map_err(|error| match error.sqlstate() {
            SqlState::NO_RELATION => Error::replaced(self.relation.name()),
            _ => error,
        })?;
        let batches = rows.map(|rows| {
            let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
            RecordBatch::try_new_with_options(schema.clone(), rows.columns().to_vec(), &options)
        });
        Ok(Rows::new(schema, batches.transpose()?.into_iter().collect()))
    }
}

/// The columns of the relation that the columns of a plan are, each once. Adds what it compares columns with for equality.
fn selected(plan: &LogicalPlan, conditions: &mut Vec<(usize, Expr)>) -> Option<Vec<usize>> {
    match plan {
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
            let schema = scan.source.schema();
            for filter in &scan.filters {
                let columns: Vec<usize> = (0..schema.fields().len()).collect();
                compared(
                    filter,
                    &columns,
                    &|column| schema.index_of(&column.name).ok(),
                    conditions,
                )?;
            }
            Some(match &scan.projection {
                Some(columns) => columns.clone(),
                None => (0..schema.fields().len()).collect(),
            })
        }
        LogicalPlan::Filter(filter) => {
            let columns = selected(&filter.input, conditions)?;
            let schema = filter.input.schema();
            let place = |column: &Column| schema.maybe_index_of_column(column);
            compared(&filter.predicate, &columns, &place, conditions)?;
            Some(columns)
        }
        LogicalPlan::Projection(projection) => {
            let columns = selected(&projection.input, conditions)?;
            let schema = projection.input.schema();
            let mut selected = Vec::with_capacity(projection.expr.len());
            for expression in &projection.expr {
                let mut expression = expression;
                while let Expr::Alias(alias) = expression {
                    expression = &alias.expr;
                }
                let Expr::Column(column) = expression else { return None };
                let column = columns[schema.maybe_index_of_column(column)?];
                if selected.contains(&column) {
                    return None;
                }
                selected.push(column);
            }
            Some(selected)
        }
        LogicalPlan::SubqueryAlias(alias) => selected(&alias.input, conditions),
        _ => None,
    }
}

/// Adds the values that a filter compares columns with; `None` if it is anything but equalities.
fn compared(
    filter: &Expr,
    columns: &[usize],
    place: &dyn Fn(&Column) -> Option<usize>,
    conditions: &mut Vec<(usize, Expr)>,
) -> Option<()> {
    for part in split_conjunction(filter) {
        let (column, value) = equality(part)?;
        if !matches!(value, Expr::Literal(..) | Expr::Placeholder(_)) {
            return None;
        }
        conditions.push((columns[place(column)?], value.clone()));
    }
    Some(())
}
