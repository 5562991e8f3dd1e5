//! A filter and a projection over one delta.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::{Field, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DataFusionError, exec_err, internal_err};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{Column, LambdaExpr};

use super::errors::{ErrorRows, message};
use crate::delta::{Delta, batch};
use crate::panic_text::panic_text;

type Expression = Arc<dyn PhysicalExpr>;

/// A filter, then a projection.
pub(super) struct Evaluation {
    filter: Option<Expression>,
    /// The columns the projection needs; only those are copied by the filter.
    needed: Option<Vec<usize>>,
    /// Over the needed columns.
    project: Vec<Expression>,
    schema: SchemaRef,
}

/// The result of mapping a delta.
pub(super) struct Mapped<T> {
    /// The rows that are kept; more than one delta only if they cannot be evaluated together.
    pub(super) rows: Vec<Delta<T>>,
    /// The errors, if there are any.
    pub(super) errors: Option<Delta<T>>,
}

/// The expression that failed, and the message.
struct Failure<'a> {
    expression: &'a Expression,
    error: DataFusionError,
}

impl Evaluation {
    pub(super) fn new(
        filter: Option<Expression>,
        project: Vec<Expression>,
        schema: SchemaRef,
    ) -> Self {
        let (needed, project) = match filter.as_ref().and_then(|_| prune(&project)) {
            Some((needed, pruned)) => (Some(needed), pruned),
            None => (None, project),
        };
        Self { filter, needed, project, schema }
    }

    /// Maps all rows of `delta`.
    pub(super) fn map<T: Clone>(&self, delta: &Delta<T>) -> Mapped<T> {
        if delta.is_empty() {
            return Mapped { rows: Vec::new(), errors: None };
        }
        let failure = match self.evaluate(delta) {
            Ok(rows) => return Mapped { rows: not_empty(rows).collect(), errors: None },
            Err(failure) => failure,
        };
        let mut search =
            Search { pieces: Vec::new(), good: Vec::new(), errors: ErrorRows::default() };
        self.divide(delta, 0, failure, &mut search);
        // All good rows at once, unless they fail only together.
        let good = delta.take(&UInt32Array::from(search.good));
        let rows = match self.evaluate(&good) {
            Ok(rows) => not_empty(rows).collect(),
            Err(_) => search.pieces,
        };
        let errors = (!search.errors.is_empty()).then(|| search.errors.finish());
        Mapped { rows, errors }
    }

    /// Finds the rows of `delta`, which fails as a whole, that fail alone. `first` is the number of its first row in the
    /// delta where the search began.
    fn divide<T: Clone>(
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
            let part = delta.slice(start, length);
            match self.evaluate(&part) {
                Ok(rows) => {
                    let numbers = first + start..first + start + length;
                    found.good.extend(numbers.map(|row| row as u32));
                    found.pieces.extend(not_empty(rows));
                }
                Err(failure) => self.divide(&part, first + start, failure, found),
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
                let keep = evaluate(filter, delta)?;
                match keep.as_boolean_opt() {
                    Some(keep) => needed.filter(keep),
                    // The only other type of a condition is that of NULL, which keeps no rows.
                    None => needed.slice(0, 0),
                }
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
                    check(&column, field).map_err(|error| Failure { expression, error })?;
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
    /// The results of the good rows.
    pieces: Vec<Delta<T>>,
    /// The numbers of the good rows.
    good: Vec<u32>,
    errors: ErrorRows<T>,
}

fn not_empty<T: Clone>(delta: Delta<T>) -> impl Iterator<Item = Delta<T>> {
    Some(delta).filter(|delta| !delta.is_empty()).into_iter()
}

fn evaluate<'a, T: Clone>(
    expression: &'a Expression,
    delta: &Delta<T>,
) -> Result<ArrayRef, Failure<'a>> {
    // Functions may panic, for example if the results of all rows together exceed what one array can hold.
    let evaluate = AssertUnwindSafe(|| expression.evaluate(&delta.rows)?.into_array(delta.len()));
    let evaluated = catch_unwind(evaluate).unwrap_or_else(|panic| {
        exec_err!("{}", panic_text(&*panic).unwrap_or("a function failed"))
    });
    evaluated.map_err(|error| Failure { expression, error })
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

/// An expression as SQL.
struct Printed<'a>(&'a Expression);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests;
