//! WITH RECURSIVE, and views that recur.

use alluvium_sql_planner::catalog::{DeclaredRecursion, DeclaredView};
use alluvium_sql_planner::statements::declared;
use alluvium_sql_planner::statements::recursion::{WorkTable, work_table};
use alluvium_sql_syntax::error::{Error, Result};
use alluvium_sql_syntax::statement::DEFAULT_ROUNDS;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::LogicalPlan;
use datafusion_expr::logical_plan::RecursiveQuery;

use super::{Builder, check_columns, renamed, with_column_types};
use crate::fingerprint::Canonical;
use crate::node::{Aggregate, Member};
use crate::{IncrementalPlan, Node};

/// A recursion whose bodies are being built.
pub(super) struct Recurring {
    /// The relations that recur: names and rows.
    members: Vec<(String, IncrementalPlan)>,
}

impl Recurring {
    fn rows(&self, name: &str) -> Option<&IncrementalPlan> {
        self.members.iter().find(|member| member.0 == name).map(|(_, rows)| rows)
    }
}

impl Builder<'_> {
    pub(super) fn recursion(&self, query: &RecursiveQuery) -> Result<IncrementalPlan> {
        let base = with_column_types(self.build(&query.static_term)?)?;
        check_columns(&base.schema)?;
        if base.recurs() {
            return self.refuse_in_step(&query.name, "another recursion over its rows");
        }
        let (mut limit, mut columns) = (DEFAULT_ROUNDS, None);
        query.recursive_term.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(table) = work_table(scan.source.as_ref())
                && table.name() == query.name
            {
                (limit, columns) = (table.limit(), Some(table.columns().clone()));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        // A step that does not refer to the rows, as where a condition is never true, adds rows once.
        let columns = columns.unwrap_or_else(|| base.schema.clone());
        let (name, of) = (query.name.clone(), base.fingerprint());
        let rows = IncrementalPlan::recurrence(&name, of, columns, query.is_distinct);
        let recurring = Recurring { members: vec![(name.clone(), rows)] };
        let step = self.in_recursion(recurring, || self.build(&query.recursive_term))?;
        let mut step = with_column_types(step)?;
        if query.is_distinct {
            step.drop_distinct();
        }
        let what = step.find_in_rounds(&|plan| match plan.node {
            // A query follows only the rows that came last, and would have another result.
            Node::Aggregate(_) | Node::Distinct(_) => true,
            _ => plan.stays_out_of_rounds(),
        });
        if let Some(what) = what {
            return self.refuse_in_step(&name, what.clause_in_rounds());
        }
        let member = Member::of_union(name, base, step, query.is_distinct)?;
        Ok(IncrementalPlan::recursion(vec![member], 0, limit))
    }

    /// The rows of one of several views that recur.
    pub(super) fn declared(
        &self,
        recursion: &DeclaredRecursion,
        result: &str,
    ) -> Result<IncrementalPlan> {
        let mut canonical = Canonical::new("recursion of views");
        recursion.views.iter().for_each(|view| canonical.text(&view.name));
        let of = canonical.finish();
        let rows = recursion.views.iter().map(|view| {
            let (name, columns) = (view.name.clone(), view.schema.clone());
            (name, IncrementalPlan::recurrence(&view.name, of, columns, true))
        });
        let recurring = Recurring { members: rows.collect() };
        let members = self.in_recursion(recurring, || {
            recursion.views.iter().map(|view| self.declared_member(view)).collect()
        })?;
        let place = recursion.views.iter().position(|view| view.name == result);
        let place =
            place.ok_or_else(|| Error::new(format!("\"{result}\" does not recur"), None))?;
        Ok(IncrementalPlan::recursion(members, place, recursion.limit))
    }

    fn declared_member(&self, view: &DeclaredView) -> Result<Member> {
        let body = with_column_types(renamed(self.build(&view.plan)?, view.plan.schema())?)?;
        check_columns(&body.schema)?;
        declared::check_columns(view, &body.schema)?;
        if let Some(what) = body.find_in_rounds(&IncrementalPlan::stays_out_of_rounds) {
            let what = match &what.node {
                Node::Aggregate(aggregate) => refused_aggregate(aggregate),
                _ => what.clause_in_rounds(),
            };
            let message = format!(
                "{what} over rows of \"{}\", which recurs (a view that recurs may have filters, expressions, inner joins, UNION, \
                 UNNEST, DISTINCT, and GROUP BY with COUNT, SUM, AVG, MIN and MAX, of its rows)",
                view.name
            );
            return Err(Error::not_supported(message, self.landmarks.start));
        }
        let (name, schema) = (view.name.clone(), view.schema.clone());
        Ok(Member { name, schema, body, is_distinct: true })
    }

    /// Builds inside of a recursion.
    fn in_recursion<T>(
        &self,
        recurring: Recurring,
        build: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.recurring.borrow_mut().push(recurring);
        let built = build();
        self.recurring.borrow_mut().pop();
        built
    }

    /// The rows of this name of the innermost recursion. Fails if they are those of another one.
    pub(super) fn recurring(&self, name: &str) -> Result<Option<IncrementalPlan>> {
        let recurring = self.recurring.borrow();
        let Some((innermost, around)) = recurring.split_last() else { return Ok(None) };
        match innermost.rows(name) {
            Some(rows) => Ok(Some(rows.clone())),
            None if around.iter().any(|outer| outer.rows(name).is_some()) => {
                self.refuse_in_step(name, "another recursion over its rows")
            }
            None => Ok(None),
        }
    }

    /// The rows of the recursion that is being built.
    pub(super) fn recurrence(&self, table: &WorkTable) -> Result<IncrementalPlan> {
        match self.recurring(table.name())? {
            Some(rows) => Ok(rows),
            None => self.refuse_in_step(table.name(), "another recursion over its rows"),
        }
    }

    fn refuse_in_step<T>(&self, name: &str, what: &str) -> Result<T> {
        let message = format!(
            "{what} in the recursive part of \"{name}\" in a view (it may have filters, expressions, inner joins, UNION and \
             UNNEST of its rows; DECLARE RECURSIVE VIEW also makes views with DISTINCT and GROUP BY)"
        );
        Err(Error::not_supported(message, self.landmarks.recursion.or(self.landmarks.start)))
    }
}

impl IncrementalPlan {
    /// Leaves out DISTINCT of rows that recur. In a recursion by UNION it does not matter how often a row is made.
    fn drop_distinct(&mut self) {
        if !self.recurs() {
            return;
        }
        while let Node::Distinct(distinct) = &self.node {
            *self = distinct.input.as_ref().clone();
        }
        if let Node::Aggregate(_) = self.node {
            return;
        }
        self.inputs_mut().into_iter().for_each(IncrementalPlan::drop_distinct);
    }

    /// The first node over rows that recur for which `is_it` holds.
    fn find_in_rounds(
        &self,
        is_it: &impl Fn(&IncrementalPlan) -> bool,
    ) -> Option<&IncrementalPlan> {
        match self.recurs() {
            false => None,
            true if is_it(self) => Some(self),
            true => self.inputs().into_iter().find_map(|input| input.find_in_rounds(is_it)),
        }
    }

    /// Whether the node cannot be inside of a recursion.
    fn stays_out_of_rounds(&self) -> bool {
        self.node.as_node().in_rounds().is_none()
    }

    /// The clause of the node, for messages.
    fn clause_in_rounds(&self) -> &'static str {
        match &self.node {
            Node::Aggregate(_) => "GROUP BY, or an aggregate,",
            Node::Top(_) => "LIMIT, DISTINCT ON or a bounded row number",
            Node::Window(_) => "a window function",
            Node::Session(_) => "SESSION",
            Node::Distinct(_) => "DISTINCT",
            Node::SetOperation(_) => "INTERSECT or EXCEPT",
            Node::OuterJoin(_) => "an outer join, or IN or EXISTS of a subquery,",
            Node::AsofJoin(_) => "an ASOF join",
            Node::TemporalFilter(_) => "a comparison of its rows with NOW()",
            Node::Recursion(_) => "another recursion over its rows",
            _ => "this",
        }
    }
}

/// The part of an aggregate that cannot be computed inside of a recursion.
fn refused_aggregate(Aggregate { aggregates, fallbacks, keys, .. }: &Aggregate) -> &'static str {
    if keys.is_empty() {
        "an aggregate without GROUP BY"
    } else if !fallbacks.is_empty() {
        "an aggregate other than COUNT, SUM, AVG, MIN and MAX"
    } else if aggregates.iter().any(|aggregate| aggregate.distinct) {
        "an aggregate with DISTINCT"
    } else {
        "ARG_MIN or ARG_MAX"
    }
}
