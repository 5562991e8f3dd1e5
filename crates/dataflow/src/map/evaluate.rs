//! A filter and a projection over one delta.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::{Field, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DataFusionError, internal_err};
use datafusion_physical_expr::expressions::{Column, LambdaExpr};

use super::bounded::{check_values, in_pieces, is_too_much_together};
use super::errors::{ErrorRows, message};
use super::expression::{Expression, Failure, Printed, evaluate};
use super::fallible::can_fail;
use super::filter::Filter;
use crate::movement::delta::{Delta, batch};
use crate::movement::fuel::Produced;

/// A filter, then a projection.
pub(super) struct Evaluation {
    filter: Option<Filter>,
    /// The columns the projection needs; only those are copied by the filter.
    needed: Option<Vec<usize>>,
    /// Over the needed columns.
    project: Vec<Expression>,
    schema: SchemaRef,
}

/// Rows of one delta that are not mapped yet. The last part comes first.
pub(super) struct Work<T> {
    parts: Vec<Part<T>>,
}

/// Rows to be evaluated at once.
struct Part<T> {
    rows: Delta<T>,
    /// How long the runs are that are known to succeed, if all rows together do not.
    runs: Option<Vec<usize>>,
}

impl<T: Clone> Work<T> {
    /// All rows of `delta`.
    pub(super) fn new(delta: Delta<T>) -> Self {
        Self { parts: vec![Part { rows: delta, runs: None }] }
    }

    /// Does `rows` again, in runs of these lengths.
    fn divide(&mut self, rows: &Delta<T>, runs: &[usize]) {
        let mut end = rows.len();
        for length in runs.iter().rev() {
            end -= length;
            self.parts.push(Part { rows: rows.slice(end, *length), runs: None });
        }
    }
}

impl Evaluation {
    pub(super) fn new(
        filter: Option<Expression>,
        project: Vec<Expression>,
        schema: SchemaRef,
    ) -> Self {
        let filter = filter.map(Filter::new);
        let project: Vec<Expression> = project.into_iter().map(in_pieces).collect();
        let (needed, project) = match filter.as_ref().and_then(|_| prune(&project)) {
            Some((needed, pruned)) => (Some(needed), pruned),
            None => (None, project),
        };
        Self { filter, needed, project, schema }
    }

    /// Maps some rows of `work`: all that are left, unless they become too much at once or cannot be evaluated together.
    /// `None` if none are left.
    pub(super) fn advance<T: Clone>(&self, work: &mut Work<T>) -> Option<Produced<T>> {
        loop {
            let Part { rows, runs } = work.parts.pop()?;
            if rows.is_empty() {
                continue;
            }
            let failure = match self.evaluate(&rows) {
                Ok(mapped) if mapped.is_empty() => continue,
                Ok(mapped) => return Some(mapped.into()),
                Err(failure) => failure,
            };
            if let Some(runs) = runs {
                work.divide(&rows, &runs);
                continue;
            }
            if rows.len() > 1 && is_too_much_together(&failure.error) {
                let half = rows.len() / 2;
                work.divide(&rows, &[half, rows.len() - half]);
                continue;
            }
            let mut search = Search::default();
            self.search(&rows, 0, failure, &mut search);
            let good = rows.take(&UInt32Array::from(search.good));
            work.parts.push(Part { rows: good, runs: Some(search.runs) });
            if !search.errors.is_empty() {
                let rows = Delta::insertions(
                    RecordBatch::new_empty(self.schema.clone()),
                    rows.time(0).clone(),
                );
                return Some(Produced { rows, errors: Some(search.errors.finish()) });
            }
        }
    }

    /// Finds the rows of `delta`, which fails as a whole, that fail alone. `first` is the number of its first row in the
    /// delta where the search began.
    fn search<T: Clone>(
        &self,
        delta: &Delta<T>,
        first: usize,
        failure: Failure<'_>,
        found: &mut Search<T>,
    ) {
        if delta.len() == 1 {
            let expression = Printed(failure.expression).to_string();
            let (time, weight) = (delta.time(0).clone(), delta.weight(0));
            let message = message(&failure.error);
            found.errors.push(&expression, &delta.rows, 0, &message, time, weight);
            return;
        }
        let half = delta.len() / 2;
        for (start, length) in [(0, half), (half, delta.len() - half)] {
            let part = if is_seen_beyond_slices(&delta.rows) {
                let rows = start as u32..(start + length) as u32;
                delta.take(&UInt32Array::from_iter_values(rows))
            } else {
                delta.slice(start, length)
            };
            match self.evaluate(&part) {
                Ok(_) => {
                    let numbers = first + start..first + start + length;
                    found.good.extend(numbers.map(|row| row as u32));
                    found.runs.push(length);
                }
                Err(failure) => self.search(&part, first + start, failure, found),
            }
        }
    }

    /// The mapped rows, if no expression fails for any.
    fn evaluate<T: Clone>(&self, delta: &Delta<T>) -> Result<Delta<T>, Failure<'_>> {
        let needed = match &self.needed {
            Some(needed) => delta.project(needed),
            None => delta.clone(),
        };
        let kept = match &self.filter {
            None => needed,
            Some(filter) => {
                let keep = filter.keep(delta)?;
                needed.filter(&keep)
            }
        };
        let fields = self.schema.fields();
        let columns = if kept.is_empty() {
            fields.iter().map(|field| arrow::array::new_empty_array(field.data_type())).collect()
        } else {
            self.project
                .iter()
                .zip(fields)
                .map(|(expression, field)| {
                    let column = evaluate(expression, &kept)?;
                    check(&column, field)
                        .and_then(|()| match can_fail(expression) {
                            true => check_values(&column),
                            // Its errors would be lost, and it makes nothing larger.
                            false => Ok(()),
                        })
                        .map_err(|error| Failure { expression, error })?;
                    Ok(column)
                })
                .collect::<Result<Vec<_>, _>>()?
        };
        let rows = batch(self.schema.clone(), columns, kept.len());
        Ok(Delta::new(rows, kept.times, kept.weights))
    }
}

/// The result of a search for failing rows.
struct Search<T> {
    /// The numbers of the good rows, in order.
    good: Vec<u32>,
    /// The lengths of the runs of them that were evaluated together.
    runs: Vec<usize>,
    errors: ErrorRows<T>,
}

impl<T> Default for Search<T> {
    fn default() -> Self {
        Self { good: Vec::new(), runs: Vec::new(), errors: ErrorRows::default() }
    }
}

/// Whether Arrow's casts look at values of a column that a slice of it leaves out, and fail for these: of bytes it checks all
/// that a buffer has, of lists it casts all elements.
fn is_seen_beyond_slices(rows: &RecordBatch) -> bool {
    let fields = rows.schema_ref().fields();
    fields.iter().any(|field| {
        let kind = field.data_type();
        kind.is_nested() || kind.is_binary()
    })
}

/// Whether `column` matches its field.
fn check(column: &ArrayRef, field: &Field) -> Result<(), DataFusionError> {
    if column.data_type() != field.data_type() {
        let (found, expected) = (column.data_type(), field.data_type());
        return internal_err!("{found} where {expected} was announced");
    }
    if !field.is_nullable() && column.logical_null_count() > 0 {
        return internal_err!("NULL where none was announced");
    }
    Ok(())
}

/// The columns that `project` needs, and `project` over those alone; `None` if that is not known.
fn prune(project: &[Expression]) -> Option<(Vec<usize>, Vec<Expression>)> {
    let mut needed = Vec::new();
    for expression in project {
        let opaque = expression.exists(|node| {
            if let Some(column) = node.downcast_ref::<Column>() {
                needed.push(column.index());
            }
            // A lambda knows what it captures.
            Ok(node.is::<LambdaExpr>())
        });
        if opaque.ok()? {
            return None;
        }
    }
    needed.sort_unstable();
    needed.dedup();
    let pruned = project.iter().map(|expression| {
        let renumbered = Arc::clone(expression).transform(|node| {
            Ok(match node.downcast_ref::<Column>() {
                Some(column) => {
                    let index = needed.binary_search(&column.index()).unwrap_or_else(|at| at);
                    Transformed::yes(Arc::new(Column::new(column.name(), index)) as _)
                }
                None => Transformed::no(node),
            })
        });
        renumbered.ok().map(|renumbered| renumbered.data)
    });
    let pruned = pruned.collect::<Option<Vec<_>>>()?;
    Some((needed, pruned))
}

#[cfg(test)]
mod tests;
