//! The projection below a node: the columns that its keys, orders and functions need.

use alluvium_sql_syntax::error::Result;
use arrow::compute::SortOptions;
use arrow::datatypes::Schema;
use datafusion_common::DFSchema;
use datafusion_expr::SortExpr;

use super::Builder;
use crate::IncrementalPlan;
use crate::expression::{self, Expression};

/// The columns of a map below a node that needs expressions as columns.
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

    /// The place of `expression`, which is added if it is missing. A column of `input` keeps its name; anything
    /// else is called `name`.
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

    /// The place of `expression`, which is added if it is neither a column nor there already. It is then called
    /// `name`.
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
    /// The columns to order by, without repetitions and constants.
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
