//! Subqueries in expressions, rewritten to joins.
//!
//! ```text
//! WHERE EXISTS (…), x IN (…)       a semi join
//! WHERE NOT EXISTS (…)             an anti join
//! WHERE x NOT IN (…)               anti joins, see below
//! the same anywhere else           a mark join, and its mark in the expression
//! (SELECT …) of one row            DataFusion's own rule
//! (SELECT …) of any rows           a left join with each group's value and number of rows, and a check
//! ```
//!
//! DataFusion's own rule for predicates handles NULLs in NOT IN only at the top of WHERE, and treats an aggregate without
//! GROUP BY as empty although it has a row. Its rule for scalars picks any of several rows. So predicates, and scalars that
//! may have several rows, are rewritten here, with DataFusion's functions for pulling up a correlation.
//!
//! `x IN S` is true if S has an equal row; else NULL if S has a row with NULL, or if x is NULL and S has any row; else
//! false. Each of these conditions is a mark join of its own, and only those that can matter are made.
//!
//! Subqueries that cannot be rewritten stay, and the validator refuses them.

use std::collections::{BTreeSet, HashMap};

use datafusion_common::alias::AliasGenerator;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DataFusionError, JoinType, Result, ScalarValue};
use datafusion_expr::expr::{Exists, InSubquery};
use datafusion_expr::expr_rewriter::{NamePreserver, replace_col};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    BinaryExpr, Expr, ExprSchemable, FetchType, LogicalPlan, LogicalPlanBuilder, Operator, lit,
    logical_plan as logical, not, when,
};
use datafusion_optimizer::decorrelate::PullUpCorrelatedExpr;

use super::extent::Extent;
use super::functions::FUNCTIONS;
use super::single_row::single_row;

/// The plan without subqueries in its filters and projections, as far as they can be rewritten.
pub(super) fn decorrelate(plan: LogicalPlan) -> Result<LogicalPlan> {
    Decorrelation { names: AliasGenerator::new() }.plan(plan)
}

struct Decorrelation {
    names: AliasGenerator,
}

/// A subquery whose correlation has been pulled up.
struct Pulled {
    /// Its rows, with the columns the correlation needs, under a name of their own.
    plan: LogicalPlan,
    /// The correlation, over the outer columns and these rows' columns.
    filter: Option<Expr>,
}

impl Pulled {
    /// The column that the subquery selects.
    fn value(&self) -> Column {
        self.plan.schema().columns().swap_remove(0)
    }
}

impl Decorrelation {
    fn plan(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let plan = plan.map_children(|child| self.plan(child).map(Transformed::yes)).data()?;
        let plan = plan.map_subqueries(|query| self.plan(query).map(Transformed::yes)).data()?;
        let rewritten = match plan {
            LogicalPlan::Filter(filter) if is_nested(&filter.predicate) => self.filter(filter)?,
            LogicalPlan::Projection(projection) if projection.expr.iter().any(is_nested) => {
                self.projection(projection)?
            }
            other => return Ok(other),
        };
        // NOT IN reads its subquery three times, with all that is nested in it.
        Extent::of(&rewritten).map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(rewritten)
    }

    fn filter(&self, filter: logical::Filter) -> Result<LogicalPlan> {
        let columns = filter.input.schema().columns();
        let mut input = filter.input.as_ref().clone();
        let mut others = Vec::new();
        let (nested, plain): (Vec<_>, Vec<_>) =
            split_conjunction_owned(filter.predicate).into_iter().partition(is_nested);
        // Plain conditions are evaluated below the joins, so that joins do not change which rows fail.
        if let Some(plain) = conjunction(plain) {
            input = LogicalPlanBuilder::from(input).filter(plain)?.build()?;
        }
        for condition in nested {
            let (condition, negated) = match condition {
                Expr::Not(inner) if is_predicate(&inner) => (*inner, true),
                condition => (condition, false),
            };
            let joined = match &condition {
                Expr::Exists(Exists { subquery, negated: not }) => {
                    self.exists(&input, &subquery.subquery, negated != *not)?
                }
                Expr::InSubquery(InSubquery { expr, subquery, negated: not }) => {
                    let query = &subquery.subquery;
                    if is_nested(expr) {
                        None
                    } else if negated == *not {
                        self.within(&input, expr, query)?
                    } else {
                        self.not_within(&input, expr, query, &mut others)?
                    }
                }
                _ => None,
            };
            match joined {
                Some(joined) => input = joined,
                None => {
                    let condition = if negated { not(condition) } else { condition };
                    others.push(self.replaced(condition, &mut input)?);
                }
            }
        }
        let mut plan = LogicalPlanBuilder::from(input);
        if let Some(others) = conjunction(others) {
            plan = plan.filter(others)?;
        }
        if plan.schema().fields().len() != columns.len() {
            plan = plan.project(columns.into_iter().map(Expr::Column))?;
        }
        plan.build()
    }

    fn projection(&self, projection: logical::Projection) -> Result<LogicalPlan> {
        let mut input = projection.input.as_ref().clone();
        let names = NamePreserver::new_for_projection();
        let expressions: Result<Vec<Expr>> = projection
            .expr
            .into_iter()
            .map(|expression| {
                let name = names.save(&expression);
                Ok(name.restore(self.replaced(expression, &mut input)?))
            })
            .collect();
        LogicalPlanBuilder::from(input).project(expressions?)?.build()
    }

    /// The rows of `input` for which the subquery has a row, or those for which it has none.
    fn exists(
        &self,
        input: &LogicalPlan,
        query: &LogicalPlan,
        negated: bool,
    ) -> Result<Option<LogicalPlan>> {
        let Some(pulled) = self.pull_up(query, input, true)? else { return Ok(None) };
        let kind = if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
        self.join(input, pulled.plan, kind, pulled.filter).map(Some)
    }

    /// The rows of `input` for which the subquery has a row equal to `value`.
    fn within(
        &self,
        input: &LogicalPlan,
        value: &Expr,
        query: &LogicalPlan,
    ) -> Result<Option<LogicalPlan>> {
        let Some(pulled) = self.pull_up(query, input, false)? else { return Ok(None) };
        let equal = value.clone().eq(Expr::Column(pulled.value()));
        let filter = conjunction(std::iter::once(equal).chain(pulled.filter));
        self.join(input, pulled.plan, JoinType::LeftSemi, filter).map(Some)
    }

    /// The rows of `input` for which `value NOT IN` the subquery and all `others` are true.
    fn not_within(
        &self,
        input: &LogicalPlan,
        value: &Expr,
        query: &LogicalPlan,
        others: &mut Vec<Expr>,
    ) -> Result<Option<LogicalPlan>> {
        let Some(pulled) = self.pull_up(query, input, false)? else { return Ok(None) };
        let equal = value.clone().eq(Expr::Column(pulled.value()));
        let nullable = pulled.plan.schema().field(0).is_nullable();
        let filter = conjunction(std::iter::once(equal).chain(pulled.filter));
        let mut rest = self.join(input, pulled.plan, JoinType::LeftAnti, filter)?;
        if nullable && let Some(nulls) = self.nulls(query, input)? {
            rest = self.join(&rest, nulls.plan, JoinType::LeftAnti, nulls.filter)?;
        }
        if value.nullable(input.schema())?
            && let Some(any) = self.pull_up(query, input, false)?
        {
            let mark = self.mark(&mut rest, any.plan, any.filter)?;
            others.push(value.clone().is_not_null().or(not(mark)));
        }
        Ok(Some(rest))
    }

    /// The expression with marks and columns in place of its subqueries; the joins that provide them are added to `input`.
    fn replaced(&self, expression: Expr, input: &mut LogicalPlan) -> Result<Expr> {
        let replaced = expression.transform_down(|expression| {
            let replacement = match &expression {
                Expr::Exists(Exists { subquery, negated }) => {
                    match self.pull_up(&subquery.subquery, input, true)? {
                        Some(pulled) => {
                            let mark = self.mark(input, pulled.plan, pulled.filter)?;
                            Some(if *negated { not(mark) } else { mark })
                        }
                        None => None,
                    }
                }
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    let value = self.replaced(expr.as_ref().clone(), input)?;
                    let within = self.truth_within(&value, &subquery.subquery, input)?;
                    within.map(|within| if *negated { not(within) } else { within })
                }
                Expr::ScalarSubquery(subquery) if !is_single(&subquery.subquery) => {
                    self.scalar(&subquery.subquery, input)?
                }
                _ => return Ok(Transformed::no(expression)),
            };
            Ok(match replacement {
                Some(replacement) => Transformed::new(replacement, true, TreeNodeRecursion::Jump),
                None => Transformed::new(expression, false, TreeNodeRecursion::Jump),
            })
        })?;
        Ok(replaced.data)
    }

    /// `value IN` the subquery, as one of three truth values.
    fn truth_within(
        &self,
        value: &Expr,
        query: &LogicalPlan,
        input: &mut LogicalPlan,
    ) -> Result<Option<Expr>> {
        let Some(equal) = self.pull_up(query, input, false)? else { return Ok(None) };
        let value_nullable = value.nullable(input.schema())?;
        let is_equal = value.clone().eq(Expr::Column(equal.value()));
        let has_nulls = equal.plan.schema().field(0).is_nullable();
        let filter = conjunction(std::iter::once(is_equal).chain(equal.filter));
        let found = self.mark(input, equal.plan, filter)?;
        let mut unknown = Vec::new();
        if has_nulls && let Some(nulls) = self.nulls(query, input)? {
            unknown.push(self.mark(input, nulls.plan, nulls.filter)?);
        }
        if value_nullable && let Some(any) = self.pull_up(query, input, false)? {
            unknown.push(value.clone().is_null().and(self.mark(input, any.plan, any.filter)?));
        }
        let Some(unknown) = unknown.into_iter().reduce(Expr::or) else { return Ok(Some(found)) };
        let null = lit(ScalarValue::Boolean(None));
        when(found, lit(true)).when(unknown, null).otherwise(lit(false)).map(Some)
    }

    /// The rows of the subquery whose value is NULL.
    fn nulls(&self, query: &LogicalPlan, input: &LogicalPlan) -> Result<Option<Pulled>> {
        let Some(Pulled { plan, filter }) = self.pull_up(query, input, false)? else {
            return Ok(None);
        };
        let is_null = Expr::Column(plan.schema().columns().swap_remove(0)).is_null();
        let plan = LogicalPlanBuilder::from(plan).filter(is_null)?.build()?;
        Ok(Some(Pulled { plan, filter }))
    }

    /// The value of a subquery that may return several rows; evaluating it fails if it does.
    fn scalar(&self, query: &LogicalPlan, input: &mut LogicalPlan) -> Result<Option<Expr>> {
        let Some(pulled) = self.pull_up(query, input, false)? else { return Ok(None) };
        let Some(keys) = equality_keys(&pulled) else { return Ok(None) };
        let function = |name: &str, argument| {
            FUNCTIONS.aggregate.get(name).map(|function| function.call(vec![argument]))
        };
        let value = function("min", Expr::Column(pulled.value()));
        let (Some(value), Some(rows)) = (value, function("count", lit(1_i64))) else {
            return Ok(None);
        };
        let name = self.names.next("__value");
        let groups = LogicalPlanBuilder::from(pulled.plan)
            .aggregate(
                keys.iter().cloned().map(Expr::Column),
                vec![value.alias("__value"), rows.alias("__rows")],
            )?
            .alias(name.as_str())?
            .build()?;
        let renamed: Vec<Column> =
            keys.iter().map(|key| Column::new(Some(name.as_str()), &key.name)).collect();
        let renamed: HashMap<&Column, &Column> = keys.iter().zip(&renamed).collect();
        let filter = pulled.filter.map(|filter| replace_col(filter, &renamed)).transpose()?;
        *input = self.join(input, groups, JoinType::Left, filter)?;
        let column = |column| Expr::Column(Column::new(Some(name.as_str()), column));
        Ok(Some(single_row().call(vec![column("__value"), column("__rows")])))
    }

    /// Joins `input` with `right` so that each row has a mark, and returns the mark.
    fn mark(
        &self,
        input: &mut LogicalPlan,
        right: LogicalPlan,
        filter: Option<Expr>,
    ) -> Result<Expr> {
        *input = self.join(input, right, JoinType::LeftMark, filter)?;
        let columns = input.schema().columns();
        Ok(Expr::Column(columns.into_iter().next_back().unwrap_or_else(|| "mark".into())))
    }

    fn join(
        &self,
        input: &LogicalPlan,
        right: LogicalPlan,
        kind: JoinType,
        filter: Option<Expr>,
    ) -> Result<LogicalPlan> {
        let filter = filter.unwrap_or_else(|| lit(true));
        LogicalPlanBuilder::from(input.clone()).join_on(right, kind, Some(filter))?.build()
    }

    /// The subquery without references to outer columns, if these can become a join condition.
    fn pull_up(
        &self,
        query: &LogicalPlan,
        input: &LogicalPlan,
        exists: bool,
    ) -> Result<Option<Pulled>> {
        let mut pull_up = PullUpCorrelatedExpr::new().with_exists_sub_query(exists);
        let Ok(plan) = query.clone().rewrite(&mut pull_up).data() else { return Ok(None) };
        // An aggregate without GROUP BY has a row even if the correlation finds nothing; with groups it would have none.
        if !pull_up.can_pull_up || pull_up.pulled_up_scalar_agg && !pull_up.join_filters.is_empty()
        {
            return Ok(None);
        }
        let name = self.names.next("__subquery");
        let inner: BTreeSet<Column> =
            pull_up.correlated_subquery_cols_map.into_values().flatten().collect();
        let renamed: Vec<Column> =
            inner.iter().map(|column| Column::new(Some(name.as_str()), &column.name)).collect();
        let renamed: HashMap<&Column, &Column> = inner.iter().zip(&renamed).collect();
        let filter = conjunction(pull_up.join_filters)
            .map(|filter| replace_col(filter, &renamed))
            .transpose()?;
        let plan = LogicalPlanBuilder::from(plan).alias(name)?.build()?;
        // A reference to a query further out cannot be a condition of this join.
        let known = |column: &&Column| {
            input.schema().has_column(column) || plan.schema().has_column(column)
        };
        let resolves = filter.as_ref().is_none_or(|filter| filter.column_refs().iter().all(known));
        Ok(resolves.then_some(Pulled { plan, filter }))
    }
}

/// The inner columns of a correlation that consists only of `inner = outer`, each once.
fn equality_keys(pulled: &Pulled) -> Option<Vec<Column>> {
    let schema = pulled.plan.schema();
    let mut keys = Vec::new();
    for condition in pulled.filter.clone().map(split_conjunction_owned).unwrap_or_default() {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
            return None;
        };
        let is_outer = |expression: &Expr| {
            !expression.column_refs().into_iter().any(|column| schema.has_column(column))
        };
        let key = match (*left, *right) {
            (Expr::Column(key), outer) if schema.has_column(&key) && is_outer(&outer) => key,
            (outer, Expr::Column(key)) if schema.has_column(&key) && is_outer(&outer) => key,
            _ => return None,
        };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Some(keys)
}

/// Whether the subquery has at most one row for each row of the outer query, whatever the data.
pub(super) fn is_single(query: &LogicalPlan) -> bool {
    match query {
        LogicalPlan::Projection(logical::Projection { input, .. })
        | LogicalPlan::Filter(logical::Filter { input, .. })
        | LogicalPlan::Distinct(logical::Distinct::All(input)) => is_single(input),
        LogicalPlan::SubqueryAlias(alias) => is_single(&alias.input),
        LogicalPlan::Subquery(subquery) => is_single(&subquery.subquery),
        LogicalPlan::Sort(sort) => {
            sort.fetch.is_some_and(|fetch| fetch <= 1) || is_single(&sort.input)
        }
        LogicalPlan::Limit(limit) => {
            matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1))))
                || is_single(&limit.input)
        }
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Values(values) => values.values.len() <= 1,
        _ => false,
    }
}

/// Whether the expression has a subquery that this module rewrites.
fn is_nested(expression: &Expr) -> bool {
    let nested = expression.exists(|part| {
        Ok(match part {
            Expr::ScalarSubquery(subquery) => !is_single(&subquery.subquery),
            part => is_predicate(part),
        })
    });
    nested.unwrap_or(false)
}

fn is_predicate(expression: &Expr) -> bool {
    matches!(expression, Expr::Exists(_) | Expr::InSubquery(_))
}
