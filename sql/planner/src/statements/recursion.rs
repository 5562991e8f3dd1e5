//! WITH RECURSIVE.
//!
//! A view follows its recursion to the fixpoint, and a query repeats its step over the rows that came last. Both are the same
//! where the step refers to the recursion once: so it must, in either.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_expr::logical_plan::RecursiveQuery;
use datafusion_expr::{LogicalPlan, TableSource};
use sqlparser::ast::{Query, SetExpr, SetOperator, Spanned, Visitor};

use alluvium_sql_syntax::error::{Error, Position, Result};
use alluvium_sql_syntax::walk::walk;

/// The rows of a recursion, as its step reads them.
#[derive(Debug)]
pub struct WorkTable {
    name: String,
    schema: SchemaRef,
    limit: u64,
}

impl WorkTable {
    pub(crate) fn new(name: &str, schema: SchemaRef, limit: u64) -> WorkTable {
        WorkTable { name: name.to_owned(), schema, limit }
    }

    /// The relation that recurs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns.
    pub fn columns(&self) -> &SchemaRef {
        &self.schema
    }

    /// The last round of the recursion.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}

impl TableSource for WorkTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The source of a scan, if it is of the rows of a recursion.
pub fn work_table(source: &dyn TableSource) -> Option<&WorkTable> {
    source.downcast_ref::<WorkTable>()
}

/// Refuses clauses that the planner would leave out, and a query that is not one step of a recursion.
pub(crate) fn check_syntax(query: &Query) -> Result<()> {
    struct Check;
    impl Visitor for Check {
        type Break = Error;

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
            match query.with.as_ref().filter(|with| with.recursive) {
                Some(with) => with.cte_tables.iter().try_for_each(|cte| check_union(&cte.query)),
                None => ControlFlow::Continue(()),
            }
        }
    }
    walk(query, &mut Check)
}

/// Refuses clauses around the UNION of a recursion.
fn check_union(query: &Query) -> ControlFlow<Error> {
    let is_union = matches!(&*query.body, SetExpr::SetOperation { op: SetOperator::Union, .. });
    if !is_union {
        return ControlFlow::Continue(());
    }
    let clauses = [
        (query.with.is_some(), "WITH"),
        (query.order_by.is_some(), "ORDER BY"),
        (query.limit_clause.is_some(), "LIMIT or OFFSET"),
        (query.fetch.is_some(), "FETCH"),
    ];
    match clauses.iter().find(|(is_there, _)| *is_there) {
        None => ControlFlow::Continue(()),
        Some((_, clause)) => ControlFlow::Break(Error::not_supported(
            format!(
                "{clause} around the UNION of a recursion: put it into the query that reads it"
            ),
            Position::of_span(query.body.span()),
        )),
    }
}

/// Refuses steps that refer to their recursion more than once.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut several = None;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::RecursiveQuery(query) = node
            && references(query)? > 1
        {
            several = Some(query.name.clone());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| Error::from_datafusion(&error))?;
    match several {
        None => Ok(()),
        Some(name) => Err(Error::new(
            format!(
                "the recursive part of \"{name}\" refers to it more than once: one reference must do, as to the rows that are \
                 extended by others"
            ),
            None,
        )),
    }
}

/// How often the step of a recursion refers to it.
fn references(query: &RecursiveQuery) -> datafusion_common::Result<usize> {
    let mut count = 0;
    query.recursive_term.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && work_table(scan.source.as_ref()).is_some_and(|table| table.name == query.name)
        {
            count += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(count)
}
