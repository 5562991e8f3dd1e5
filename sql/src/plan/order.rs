//! What rows are ordered by, and the columns that orders and functions need.

use arrow::compute::SortOptions;
use arrow::datatypes::Schema;
use datafusion_common::DFSchema;
use datafusion_expr::SortExpr;

use super::IncrementalPlan;
use super::build::Builder;
use super::expression::{self, Expression};
use crate::error::Result;

/// The columns of a map below a node that needs some expressions as columns: the input's, then those that
/// are not among them.
pub(super) struct Projection {
    columns: Vec<(Expression, String)>,
}

impl Projection {
    /// No columns yet.
    pub(super) fn empty() -> Projection {
        Projection { columns: Vec::new() }
    }

    /// Whether there are no columns.
    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The name of a column.
    pub(super) fn name_of(&self, place: usize) -> &str {
        &self.columns[place].1
    }

    /// Where the values of `expression` are found, a column of `input` being called as it is there, any other
    /// one `name`.
    pub(super) fn add(&mut self, expression: Expression, name: &str, input: &Schema) -> usize {
        let same = |(known, _): &(Expression, String)| known.as_ref() == expression.as_ref();
        self.columns.iter().position(same).unwrap_or_else(|| {
            let number = self.columns.len() + 1;
            let name = match expression::as_column(&expression) {
                Some(column) => input.field(column).name().clone(),
                None => format!("{name}{number}"),
            };
            self.columns.push((expression, name));
            number - 1
        })
    }

    /// The columns of `input`.
    pub(super) fn of(input: &IncrementalPlan) -> Projection {
        Projection { columns: input.identity() }
    }

    /// Where the values of `expression` are found; a column that has to be made is called `name`.
    pub(super) fn place(&mut self, expression: Expression, name: &str) -> usize {
        if let Some(column) = expression::as_column(&expression) {
            return column;
        }
        let same = |(known, _): &(Expression, String)| known.as_ref() == expression.as_ref();
        self.columns.iter().position(same).unwrap_or_else(|| {
            let number = self.columns.len() + 1;
            self.columns.push((expression, format!("{name}{number}")));
            number - 1
        })
    }

    /// The map.
    pub(super) fn over(self, input: IncrementalPlan) -> Result<IncrementalPlan> {
        Ok(IncrementalPlan::map(input, None, self.columns)?)
    }
}

impl Builder<'_> {
    /// The columns to order by, without those that repeat an earlier one or are the same for all rows.
    pub(super) fn order(
        &self,
        sorts: &[SortExpr],
        schema: &DFSchema,
        projection: &mut Projection,
    ) -> Result<Vec<(usize, SortOptions)>> {
        let mut order: Vec<(usize, SortOptions)> = Vec::with_capacity(sorts.len());
        for sort in sorts {
            let expression = self.expression(&sort.expr, schema)?;
            if expression.is::<datafusion_physical_expr::expressions::Literal>() {
                continue;
            }
            let column = projection.place(expression, "order");
            if !order.iter().any(|&(earlier, _)| earlier == column) {
                order.push((column, options(sort)));
            }
        }
        Ok(order)
    }
}

/// The direction of a sort.
pub(super) fn options(sort: &SortExpr) -> SortOptions {
    SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first }
}

/// The columns that tell apart the rows of a group that are equal in an order; `None` if nothing less than
/// all columns is known to.
pub(super) fn ties(
    input: &IncrementalPlan,
    keys: &[usize],
    order: &[(usize, SortOptions)],
) -> Option<Vec<usize>> {
    let fixed = |column: &usize| {
        keys.contains(column) || order.iter().any(|(ordered, _)| ordered == column)
    };
    input
        .unique
        .iter()
        .map(|key| key.iter().copied().filter(|column| !fixed(column)).collect::<Vec<_>>())
        .min_by_key(Vec::len)
}

/// How rows are ordered by a column when nobody says how.
pub(super) const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };
