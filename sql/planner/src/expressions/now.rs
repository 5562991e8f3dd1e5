//! `NOW()` and similar functions: the time of the epoch. And those of sequences and of the session, which are bound with it.
//!
//! They are placeholders ([`functions::now`](mod@alluvium_sql_functions::now)). In a statement they are replaced by the time at which it runs ([`at`]), in a
//! view by a join with a one-row relation, the clock, whose row each epoch replaces ([`with_clock`]). DataFusion's own functions would be folded to
//! the time of planning.

use std::sync::{Arc, LazyLock};

use alluvium_sql_functions::now::{Now, moment};
use alluvium_sql_functions::sequence::{SequenceFunction, Sequences};
use alluvium_sql_functions::session::SessionFunction;
use alluvium_sql_syntax::error::Error;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DataFusionError, Result, ScalarValue, TableReference};
use datafusion_expr::expr::{Cast, ScalarFunction};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use crate::catalog::Relation;
use crate::relations::relation::RelationSource;

/// The relation of one row that holds the time of the epoch. No statement can name it.
pub const CLOCK: &str = "alluvium.clock";

/// The column of [`CLOCK`], of type TIMESTAMPTZ.
pub static CLOCK_SCHEMA: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![Field::new("now()", moment(), false)])));

/// The sequences of a statement, which are asked for if it calls their functions.
pub type BindSequences<'a> = &'a dyn Fn() -> Arc<dyn Sequences>;

/// The expression with the time in place of these functions, if it is known, and with functions of these sequences.
fn replace(
    expression: Expr,
    time: Option<&Expr>,
    sequences: Option<BindSequences<'_>>,
) -> Result<Transformed<Expr>> {
    expression.transform_up(|part| match &part {
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            if let (Some(bind), Some(function)) =
                (sequences, func.inner().downcast_ref::<SequenceFunction>())
            {
                let function = Arc::new(function.bound(bind()));
                let call = ScalarFunction::new_udf(function, args.clone());
                return Ok(Transformed::yes(Expr::ScalarFunction(call)));
            }
            if let (Some(bind), Some(function)) =
                (sequences, func.inner().downcast_ref::<SessionFunction>())
                && let Some(session) = bind().session()
            {
                let call = ScalarFunction::new_udf(Arc::new(function.bound(session)), args.clone());
                return Ok(Transformed::yes(Expr::ScalarFunction(call)));
            }
            let Some(now) = func.inner().downcast_ref::<Now>() else {
                return Ok(Transformed::no(part));
            };
            Ok(Transformed::yes(match time {
                Some(time) if *now.result() == moment() => time.clone(),
                Some(time) => Expr::Cast(Cast::new(Box::new(time.clone()), now.result().clone())),
                None => {
                    let kept = ScalarFunction::new_udf(Arc::new(now.kept().into()), args.clone());
                    Expr::ScalarFunction(kept)
                }
            }))
        }
        _ => Ok(Transformed::no(part)),
    })
}

/// Whether an expression is a call of one of these functions.
pub fn is_now(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarFunction(call) if call.func.inner().is::<Now>())
}

/// The plan as it runs at `time`, in microseconds since 1970, with the sequences of whoever runs it. Without a time it can be optimised and
/// kept: the time can be put in later.
pub fn at(
    plan: LogicalPlan,
    time: Option<i64>,
    sequences: Option<BindSequences<'_>>,
) -> Result<LogicalPlan> {
    let time =
        time.map(|time| lit(ScalarValue::TimestampMicrosecond(Some(time), Some("+00:00".into()))));
    let replaced = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expression| {
            let name = names.save(&expression);
            let replaced = replace(expression, time.as_ref(), sequences)?;
            Ok(replaced.update_data(|expression| name.restore(expression)))
        })?;
        match node.transformed {
            true => node.map_data(LogicalPlan::recompute_schema),
            false => Ok(node),
        }
    })?;
    Ok(replaced.data)
}

/// The plan with [`CLOCK`] joined to the nodes that use the time.
pub(crate) fn with_clock(plan: LogicalPlan) -> Result<LogicalPlan> {
    let clock = TableReference::from(CLOCK);
    let field = CLOCK_SCHEMA.field(0).name();
    let time = Expr::Column(Column::new(Some(clock.clone()), field));
    let replaced = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let before = Arc::clone(node.schema());
        let node = node.map_expressions(|expression| {
            let name = names.save(&expression);
            let replaced = replace(expression, Some(&time), None)?;
            Ok(replaced.update_data(|expression| name.restore(expression)))
        })?;
        if !node.transformed {
            return Ok(node);
        }
        let node = node.data;
        let mut inputs: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
        let Some(first) = inputs.first_mut() else {
            let error = Error::not_supported("NOW() in VALUES in a view", None);
            return Err(DataFusionError::External(Box::new(error)));
        };
        let source = RelationSource::new(CLOCK.to_string(), Relation::Clock);
        let scan = LogicalPlanBuilder::scan(clock.clone(), Arc::new(source), None)?.build()?;
        *first = LogicalPlanBuilder::from(first.clone()).cross_join(scan)?.build()?;
        let joined = node.with_new_exprs(node.expressions(), inputs)?;
        if joined.schema().fields().len() == before.fields().len() {
            return Ok(Transformed::yes(joined));
        }
        let columns = before.columns().into_iter().map(Expr::Column);
        Ok(Transformed::yes(LogicalPlanBuilder::from(joined).project(columns)?.build()?))
    })?;
    Ok(replaced.data)
}
