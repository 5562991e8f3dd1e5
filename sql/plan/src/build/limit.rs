//! LIMIT and OFFSET.

use alluvium_dataflow::reductions::ranked::{Numbering, Top};
use alluvium_sql_syntax::error::{Error, Result};
use datafusion_expr::LogicalPlan;
use datafusion_expr::logical_plan::{self as logical, FetchType, SkipType};

use super::projection::Projection;
use super::{Builder, check_columns, renamed};
use crate::IncrementalPlan;

impl Builder<'_> {
    /// LIMIT and OFFSET.
    pub(super) fn limit(&self, limit: &logical::Limit) -> Result<IncrementalPlan> {
        let unknown = || {
            let position = self.landmarks.limit.or(self.landmarks.start);
            Error::not_supported("LIMIT by an expression in a view", position)
        };
        let SkipType::Literal(skip) = limit.get_skip_type()? else { return Err(unknown()) };
        let FetchType::Literal(take) = limit.get_fetch_type()? else { return Err(unknown()) };
        let which = Top {
            numbering: Numbering::Row,
            skip: skip as u64,
            take: take.map(|take| take as u64),
            numbered: false,
        };
        self.first_of(&limit.input, which)
    }

    /// The first `count` rows of a sort.
    pub(super) fn first(&self, sort: &LogicalPlan, count: usize) -> Result<IncrementalPlan> {
        let take = Some(count as u64);
        self.first_of(sort, Top { numbering: Numbering::Row, skip: 0, take, numbered: false })
    }

    /// The first rows of a plan, in the order that it has.
    fn first_of(&self, plan: &LogicalPlan, which: Top) -> Result<IncrementalPlan> {
        match plan {
            LogicalPlan::Projection(projection) => {
                let input = self.first_of(&projection.input, which)?;
                self.projection(projection, input)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                renamed(self.first_of(&alias.input, which)?, &alias.schema)
            }
            LogicalPlan::Sort(sort)
                if sort.fetch.is_none_or(|fetch| which.last() <= fetch as u64) =>
            {
                let input = self.build(&sort.input)?;
                let width = input.schema.fields().len();
                let mut projection = Projection::of(&input);
                let order = self.order(&sort.expr, sort.input.schema(), &mut projection)?;
                let input = projection.over(input)?;
                check_columns(&input.schema)?;
                let top = IncrementalPlan::top(input, Vec::new(), order, which)?;
                Ok(IncrementalPlan::columns(top, &(0..width).collect::<Vec<_>>())?)
            }
            other => {
                let input = self.build(other)?;
                check_columns(&input.schema)?;
                Ok(IncrementalPlan::top(input, Vec::new(), Vec::new(), which)?)
            }
        }
    }
}
