//! Subqueries in expressions, rewritten to joins.
//!
//! ```text
//! WHERE EXISTS (…), x IN (…)       a semi join
//! WHERE NOT EXISTS (…)             an anti join
//! WHERE x NOT IN (…)               anti joins, see below
//! the same anywhere else           a mark join, and its mark in the expression
//! (SELECT …) of one row            DataFusion's own rule, or a left join
//! (SELECT …) of any rows           a left join with each group's value and number of rows, and a check
//! FROM t, LATERAL (…)              a join
//! VALUES ((SELECT …))              SELECTs of a row each
//! ```
//!
//! DataFusion's own rule for predicates handles NULLs in NOT IN only at the top of WHERE, and treats an aggregate without
//! GROUP BY as empty although it has a row. Its rule for scalars picks any of several rows. So predicates, and scalars that
//! may have several rows, are rewritten here. If the correlation is one that can be pulled up as it is, DataFusion's functions
//! for that make the cheapest join; else the subquery is one side of a [dependent join](crate::subqueries::dependent_join).
//!
//! `x IN S` is true if S has an equal row; else NULL if S has a row with NULL, or if x is NULL and S has any row; else
//! false. Each of these conditions is a mark join of its own, and only those that can matter are made. [`Membership`] says the
//! same of `(x, y) IN S`.
//!
//! A scalar that an operator has more than once is joined once.
//!
//! Inner subqueries are rewritten first; what they refer to further out is then in the plan that the next one rewrites.
//! Subqueries that cannot be rewritten stay, and the validator refuses them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use alluvium_sql_functions::FUNCTIONS;
use datafusion_common::alias::AliasGenerator;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DataFusionError, JoinType, NullEquality, Result, ScalarValue};
use datafusion_expr::expr::{Cast, Exists, InSubquery};
use datafusion_expr::expr_rewriter::{NamePreserver, replace_col};
use datafusion_expr::utils::{conjunction, split_conjunction_owned};
use datafusion_expr::{
    BinaryExpr, Expr, FetchType, LogicalPlan, LogicalPlanBuilder, Operator, lit,
    logical_plan as logical, not, when,
};
use datafusion_optimizer::decorrelate::PullUpCorrelatedExpr;

use crate::checks::extent::Extent;
use crate::subqueries::correlation;
use crate::subqueries::dependent_join::{self, Key, Keyed, is_for, refers_outside};
use crate::subqueries::membership::{Membership, Unknown};
use crate::subqueries::single_row::single_row;

/// The plan without subqueries in its expressions and without LATERAL, as far as they can be rewritten.
pub(crate) fn decorrelate(plan: LogicalPlan) -> Result<LogicalPlan> {
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

    /// The rows for which these columns of the subquery are NULL.
    fn where_null(self, places: &[usize]) -> Result<Self> {
        let columns = self.plan.schema().columns();
        let is_null = places.iter().map(|&place| Expr::Column(columns[place].clone()).is_null());
        let Some(are_null) = conjunction(is_null) else { return Ok(self) };
        let plan = LogicalPlanBuilder::from(self.plan).filter(are_null)?.build()?;
        Ok(Self { plan, filter: self.filter })
    }
}

/// The rows for which subqueries are evaluated.
struct Outer<'a> {
    /// All columns to which they can refer are columns of these rows.
    rows: &'a LogicalPlan,
    /// Whether DataFusion's rule for scalars sees the expression that they are in.
    has_rule: bool,
    /// The scalars that are there more than once, with their values once they are joined.
    repeated: RefCell<Vec<Repeated>>,
}

/// A scalar subquery that is there more than once.
struct Repeated {
    query: Arc<LogicalPlan>,
    value: Option<Expr>,
}

impl<'a> Outer<'a> {
    fn new(rows: &'a LogicalPlan, has_rule: bool, expressions: &[Expr]) -> Self {
        Self { rows, has_rule, repeated: RefCell::new(repeated(expressions)) }
    }

    /// The value of a subquery that was joined before, or whether it will be met again.
    fn met(&self, query: &LogicalPlan) -> Option<Option<Expr>> {
        let repeated = self.repeated.borrow();
        let met = repeated.iter().find(|repeated| *repeated.query == *query);
        met.map(|repeated| repeated.value.clone())
    }

    fn keep(&self, query: &LogicalPlan, value: &Expr) {
        let mut repeated = self.repeated.borrow_mut();
        if let Some(met) = repeated.iter_mut().find(|repeated| *repeated.query == *query) {
            met.value = Some(value.clone());
        }
    }
}

/// The scalar subqueries that these expressions have more than once.
fn repeated(expressions: &[Expr]) -> Vec<Repeated> {
    let mut found: Vec<(&Arc<LogicalPlan>, usize)> = Vec::new();
    for expression in expressions {
        let _ = expression.apply(|part| {
            if let Expr::ScalarSubquery(subquery) = part {
                match found.iter_mut().find(|(query, _)| **query == subquery.subquery) {
                    Some((_, times)) => *times += 1,
                    None => found.push((&subquery.subquery, 1)),
                }
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    let repeated = found.into_iter().filter(|(query, times)| *times > 1 && !is_volatile(query));
    repeated.map(|(query, _)| Repeated { query: Arc::clone(query), value: None }).collect()
}

/// Whether evaluating a plan again may give something else.
fn is_volatile(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let _ = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            found |= expression.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })
    });
    found
}

impl Decorrelation {
    fn plan(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let plan = plan.map_children(|child| self.child(child).map(Transformed::yes)).data()?;
        let plan = plan.map_subqueries(|query| self.plan(query).map(Transformed::yes)).data()?;
        let rewritten = match plan {
            LogicalPlan::Filter(filter)
                if self
                    .is_any_nested_in(std::slice::from_ref(&filter.predicate), &filter.input)? =>
            {
                self.filter(filter)?
            }
            LogicalPlan::Projection(projection)
                if self.is_any_nested_in(&projection.expr, &projection.input)? =>
            {
                self.projection(projection)?
            }
            LogicalPlan::Join(join) if dependent_join::depends_on(&join.right, &join.left)? => {
                self.lateral(join)?
            }
            LogicalPlan::Join(join)
                if join.join_type == JoinType::Inner
                    && join.filter.as_ref().is_some_and(has_subquery) =>
            {
                return self.plan(filtered_join(join)?);
            }
            LogicalPlan::Values(values) if values.values.iter().flatten().any(is_selected) => {
                return self.plan(selected_values(values)?);
            }
            plan @ (LogicalPlan::Aggregate(_) | LogicalPlan::Sort(_) | LogicalPlan::Window(_))
                if plan.expressions().iter().any(has_subquery) =>
            {
                self.operator(plan)?
            }
            other => return Ok(other),
        };
        // NOT IN reads its subquery three times, with all that is nested in it.
        Extent::of(&rewritten).map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(rewritten)
    }

    /// An input, which is no longer marked as LATERAL: what it refers to outside says so.
    fn child(&self, child: LogicalPlan) -> Result<LogicalPlan> {
        match self.plan(child)? {
            LogicalPlan::Subquery(lateral) => Ok(Arc::unwrap_or_clone(lateral.subquery)),
            child => Ok(child),
        }
    }

    /// A join whose right side refers to rows of its left side.
    fn lateral(&self, join: logical::Join) -> Result<LogicalPlan> {
        let is_left = matches!(
            join.join_type,
            JoinType::Inner
                | JoinType::Left
                | JoinType::LeftSemi
                | JoinType::LeftAnti
                | JoinType::LeftMark
        );
        let rows = match is_left {
            true => dependent_join::keyed(&self.names, &join.right, &join.left)?,
            false => None,
        };
        let Some(Keyed { plan: right, keys }) = rows else { return Ok(LogicalPlan::Join(join)) };
        let on = join.on.into_iter().map(|(left, right)| left.eq(right));
        let condition = conjunction(on.chain(join.filter).chain(is_for(&keys)));
        let columns = join.schema.columns().into_iter().map(Expr::Column);
        let left = Arc::unwrap_or_clone(join.left);
        let joined = self.join(&left, right, join.join_type, condition)?;
        self.plan(LogicalPlanBuilder::from(joined).project(columns)?.build()?)
    }

    /// An operator whose expressions have subqueries.
    fn operator(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let Some(rows) = plan.inputs().first().map(|input| (*input).clone()) else {
            return Ok(plan);
        };
        let expressions = plan.expressions();
        let outer = Outer::new(&rows, false, &expressions);
        let mut input = rows.clone();
        let expressions = expressions
            .into_iter()
            .map(|expression| self.replaced(expression, &mut input, &outer))
            .collect::<Result<Vec<_>>>()?;
        if expressions.iter().any(has_subquery) {
            return Ok(plan);
        }
        let names = plan.schema().columns();
        // An aggregate has its own columns; others have those of their input, then their own.
        let (carried, kept) = match plan {
            LogicalPlan::Aggregate(_) => (0, 0),
            _ => (input.schema().fields().len(), rows.schema().fields().len()),
        };
        let operator = plan.with_new_exprs(expressions, vec![input])?;
        let columns = operator.schema().columns();
        let columns = columns[..kept].iter().chain(&columns[carried..]);
        let columns = columns.zip(names).map(|(column, name)| match *column == name {
            true => Expr::Column(name),
            false => Expr::Column(column.clone()).alias_qualified(name.relation, name.name),
        });
        let columns: Vec<Expr> = columns.collect();
        LogicalPlanBuilder::from(operator).project(columns)?.build()
    }

    fn filter(&self, filter: logical::Filter) -> Result<LogicalPlan> {
        let columns = filter.input.schema().columns();
        let mut input = filter.input.as_ref().clone();
        let mut others = Vec::new();
        let (mut nested, mut plain) = (Vec::new(), Vec::new());
        for condition in split_conjunction_owned(filter.predicate) {
            let is_nested =
                self.is_any_nested_in(std::slice::from_ref(&condition), &filter.input)?;
            if is_nested { &mut nested } else { &mut plain }.push(condition);
        }
        // Plain conditions are evaluated below the joins, so that joins do not change which rows fail.
        if let Some(plain) = conjunction(plain) {
            input = LogicalPlanBuilder::from(input).filter(plain)?.build()?;
        }
        let rows = input.clone();
        let outer = Outer::new(&rows, true, &nested);
        for condition in nested {
            let (condition, negated) = match condition {
                Expr::Not(inner) if is_predicate(&inner) => (*inner, true),
                condition => (condition, false),
            };
            let joined = match &condition {
                Expr::Exists(Exists { subquery, negated: not }) => {
                    self.exists(&input, &subquery.subquery, negated != *not, &outer)?
                }
                Expr::InSubquery(InSubquery { expr, subquery, negated: not }) => {
                    let query = &subquery.subquery;
                    if has_subquery(expr) {
                        None
                    } else if negated == *not {
                        self.within(&input, &Membership::of(expr, query)?, &outer)?
                    } else {
                        let membership = Membership::of(expr, query)?;
                        self.not_within(&input, &membership, &mut others, &outer)?
                    }
                }
                _ => None,
            };
            match joined {
                Some(joined) => input = joined,
                None => {
                    let condition = if negated { not(condition) } else { condition };
                    others.push(self.replaced(condition, &mut input, &outer)?);
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
        let outer = Outer::new(&projection.input, true, &projection.expr);
        let names = NamePreserver::new_for_projection();
        let expressions: Result<Vec<Expr>> = projection
            .expr
            .into_iter()
            .map(|expression| {
                let name = names.save(&expression);
                Ok(name.restore(self.replaced(expression, &mut input, &outer)?))
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
        outer: &Outer<'_>,
    ) -> Result<Option<LogicalPlan>> {
        let Some(pulled) = self.pull_up(query, outer, 0)? else { return Ok(None) };
        let kind = if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
        self.join(input, pulled.plan, kind, pulled.filter).map(Some)
    }

    /// The rows of `input` for which the subquery has a row of equal values.
    fn within(
        &self,
        input: &LogicalPlan,
        membership: &Membership,
        outer: &Outer<'_>,
    ) -> Result<Option<LogicalPlan>> {
        let Some(pulled) = self.members(membership, outer)? else { return Ok(None) };
        let filter =
            conjunction(membership.is_equal(&pulled.plan).into_iter().chain(pulled.filter));
        self.join(input, pulled.plan, JoinType::LeftSemi, filter).map(Some)
    }

    /// The rows of `input` for which NOT IN and all `others` are true.
    fn not_within(
        &self,
        input: &LogicalPlan,
        membership: &Membership,
        others: &mut Vec<Expr>,
        outer: &Outer<'_>,
    ) -> Result<Option<LogicalPlan>> {
        let Some(pulled) = self.members(membership, outer)? else { return Ok(None) };
        let unknown = membership.unknown(input.schema(), &pulled.plan)?;
        let filter =
            conjunction(membership.is_equal(&pulled.plan).into_iter().chain(pulled.filter));
        let mut rest = self.join(input, pulled.plan, JoinType::LeftAnti, filter)?;
        for unknown in unknown {
            let Some((Pulled { plan, filter }, joins)) =
                self.unknown(membership, &unknown, outer)?
            else {
                return Ok(None);
            };
            let filter = conjunction(joins.into_iter().chain(filter));
            match membership.are_null(&unknown) {
                None => rest = self.join(&rest, plan, JoinType::LeftAnti, filter)?,
                Some(are_null) => {
                    let mark = self.mark(&mut rest, plan, filter)?;
                    others.push(not(are_null).or(not(mark)));
                }
            }
        }
        Ok(Some(rest))
    }

    /// The subquery's rows, with the columns that are compared in front.
    fn members(&self, membership: &Membership, outer: &Outer<'_>) -> Result<Option<Pulled>> {
        self.pull_up(&membership.query, outer, membership.values.len())
    }

    /// The rows because of which it may be unknown whether a row is among them, and the conditions by which rows of the outer query meet these.
    fn unknown(
        &self,
        membership: &Membership,
        unknown: &Unknown,
        outer: &Outer<'_>,
    ) -> Result<Option<(Pulled, Vec<Expr>)>> {
        let Some(members) = self.members(membership, outer)? else { return Ok(None) };
        let members = members.where_null(unknown.null_members())?;
        let joins = membership.meets(unknown, &members.plan)?;
        Ok(Some((members, joins)))
    }

    /// The expression with marks and columns in place of its subqueries; the joins that provide them are added to `input`.
    fn replaced(
        &self,
        expression: Expr,
        input: &mut LogicalPlan,
        outer: &Outer<'_>,
    ) -> Result<Expr> {
        let replaced = expression.transform_down(|expression| {
            let replacement = match &expression {
                Expr::Exists(Exists { subquery, negated }) => {
                    match self.pull_up(&subquery.subquery, outer, 0)? {
                        Some(pulled) => {
                            let mark = self.mark(input, pulled.plan, pulled.filter)?;
                            Some(if *negated { not(mark) } else { mark })
                        }
                        None => None,
                    }
                }
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    let value = self.replaced(expr.as_ref().clone(), input, outer)?;
                    let membership = Membership::of(&value, &subquery.subquery)?;
                    let within = self.truth_within(&membership, input, outer)?;
                    within.map(|within| if *negated { not(within) } else { within })
                }
                Expr::ScalarSubquery(subquery) => {
                    let query = &subquery.subquery;
                    match outer.met(query) {
                        Some(Some(value)) => Some(value),
                        met if met.is_some()
                            || !outer.has_rule
                            || !self.has_rule(query, outer.rows)? =>
                        {
                            let value = match is_single(query) {
                                true => self.scalar_of_one(query, input, outer)?,
                                false => self.scalar(query, input, outer)?,
                            };
                            if let Some(value) = &value {
                                outer.keep(query, value);
                            }
                            value
                        }
                        _ => return Ok(Transformed::no(expression)),
                    }
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

    /// IN as one of three truth values.
    fn truth_within(
        &self,
        membership: &Membership,
        input: &mut LogicalPlan,
        outer: &Outer<'_>,
    ) -> Result<Option<Expr>> {
        let Some(equal) = self.members(membership, outer)? else { return Ok(None) };
        let unknown = membership.unknown(input.schema(), &equal.plan)?;
        let filter = conjunction(membership.is_equal(&equal.plan).into_iter().chain(equal.filter));
        let found = self.mark(input, equal.plan, filter)?;
        let mut is_unknown = Vec::new();
        for unknown in unknown {
            let Some((Pulled { plan, filter }, joins)) =
                self.unknown(membership, &unknown, outer)?
            else {
                return Ok(None);
            };
            let mark = self.mark(input, plan, conjunction(joins.into_iter().chain(filter)))?;
            is_unknown.push(match membership.are_null(&unknown) {
                Some(are_null) => are_null.and(mark),
                None => mark,
            });
        }
        let Some(is_unknown) = is_unknown.into_iter().reduce(Expr::or) else {
            return Ok(Some(found));
        };
        let null = lit(ScalarValue::Boolean(None));
        when(found, lit(true)).when(is_unknown, null).otherwise(lit(false)).map(Some)
    }

    /// The value of a subquery that returns at most one row.
    fn scalar_of_one(
        &self,
        query: &LogicalPlan,
        input: &mut LogicalPlan,
        outer: &Outer<'_>,
    ) -> Result<Option<Expr>> {
        let Some(keyed) = self.keyed(query, outer, 1)? else { return Ok(None) };
        let value = Expr::Column(keyed.value());
        *input = self.join(input, keyed.plan, JoinType::Left, keyed.filter)?;
        Ok(Some(value))
    }

    /// The value of a subquery that may return several rows; evaluating it fails if it does.
    fn scalar(
        &self,
        query: &LogicalPlan,
        input: &mut LogicalPlan,
        outer: &Outer<'_>,
    ) -> Result<Option<Expr>> {
        let with_keys = |pulled: Pulled| equality_keys(&pulled).map(|keys| (pulled, keys));
        let found = match self.pulled_as_it_is(query, outer.rows, false)?.and_then(with_keys) {
            Some(found) => Some(found),
            None => self.keyed(query, outer, 1)?.and_then(with_keys),
        };
        let Some((pulled, keys)) = found else { return Ok(None) };
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

    /// The subquery without references to the rows outside, and the condition under which its rows are for one of these. Its first
    /// `columns` columns are its own; with none of them, all that matters is whether it has rows.
    fn pull_up(
        &self,
        query: &LogicalPlan,
        outer: &Outer<'_>,
        columns: usize,
    ) -> Result<Option<Pulled>> {
        match self.pulled_as_it_is(query, outer.rows, columns == 0)? {
            Some(pulled) => Ok(Some(pulled)),
            None => self.keyed(query, outer, columns),
        }
    }

    /// The subquery whose references to outer columns become the condition of a join as they are, if they can.
    fn pulled_as_it_is(
        &self,
        query: &LogicalPlan,
        outer: &LogicalPlan,
        exists: bool,
    ) -> Result<Option<Pulled>> {
        let passes = match exists {
            true => correlation::passes_to_exists(query)?,
            false => correlation::passes(query)?,
        };
        if !passes {
            return Ok(None);
        }
        let mut pull_up = PullUpCorrelatedExpr::new().with_exists_sub_query(exists);
        let Ok(plan) = query.clone().rewrite(&mut pull_up).data() else { return Ok(None) };
        if !pull_up.can_pull_up || refers_outside(&plan)? {
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
        let resolves = filter.as_ref().is_none_or(|filter| is_between(filter, outer, &plan));
        Ok(resolves.then_some(Pulled { plan, filter }))
    }

    /// The rows of the subquery for all rows outside.
    fn keyed(
        &self,
        query: &LogicalPlan,
        outer: &Outer<'_>,
        columns: usize,
    ) -> Result<Option<Pulled>> {
        let Some(Keyed { plan, mut keys }) = dependent_join::keyed(&self.names, query, outer.rows)?
        else {
            return Ok(None);
        };
        let name = self.names.next("__subquery");
        let values: Vec<Expr> = match columns {
            0 => vec![lit(true).alias("__value")],
            _ => (plan.schema().columns().into_iter().take(columns).enumerate())
                .map(|(place, column)| match place {
                    0 => Expr::Column(column).alias("__value"),
                    place => Expr::Column(column).alias(format!("__value_{place}")),
                })
                .collect(),
        };
        let columns: Vec<Expr> = values.into_iter().chain(keys.iter().map(Key::value)).collect();
        let plan = LogicalPlanBuilder::from(plan).project(columns)?.alias(&name)?.build()?;
        for key in &mut keys {
            key.column.relation = Some(name.as_str().into());
        }
        Ok(Some(Pulled { plan, filter: conjunction(is_for(&keys)) }))
    }

    /// Whether DataFusion's rule rewrites this scalar subquery, if it is in a filter or a projection.
    fn has_rule(&self, query: &LogicalPlan, outer: &LogicalPlan) -> Result<bool> {
        if !is_single(query) {
            return Ok(false);
        }
        if !refers_outside(query)? {
            return Ok(true);
        }
        if !correlation::passes_to_aggregate(query)? {
            return Ok(false);
        }
        let mut pull_up = PullUpCorrelatedExpr::new().with_need_handle_count_bug(true);
        let Ok(plan) = query.clone().rewrite(&mut pull_up).data() else { return Ok(false) };
        Ok(pull_up.can_pull_up
            && !refers_outside(&plan)?
            && pull_up.join_filters.iter().all(|filter| is_between(filter, outer, &plan)))
    }

    /// Whether the expression over these rows has a subquery that this module rewrites.
    fn is_nested_in(&self, expression: &Expr, rows: &LogicalPlan) -> Result<bool> {
        expression.exists(|part| {
            Ok(match part {
                Expr::ScalarSubquery(subquery) => !self.has_rule(&subquery.subquery, rows)?,
                part => is_predicate(part),
            })
        })
    }

    fn is_any_nested_in(&self, expressions: &[Expr], rows: &LogicalPlan) -> Result<bool> {
        if !repeated(expressions).is_empty() {
            return Ok(true);
        }
        for expression in expressions {
            if self.is_nested_in(expression, rows)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a condition is one of a join of two plans: a reference to a query further out is not.
fn is_between(condition: &Expr, left: &LogicalPlan, right: &LogicalPlan) -> bool {
    let is_known =
        |column: &&Column| left.schema().has_column(column) || right.schema().has_column(column);
    condition.column_refs().iter().all(is_known)
}

/// An inner join with its condition in a filter above it.
fn filtered_join(join: logical::Join) -> Result<LogicalPlan> {
    let logical::Join { left, right, on, filter, join_type, null_equality, .. } = join;
    let (on_left, on_right): (Vec<Expr>, Vec<Expr>) = on.into_iter().unzip();
    let joined = LogicalPlanBuilder::from(Arc::unwrap_or_clone(left));
    let right = Arc::unwrap_or_clone(right);
    let joined = match on_left.is_empty() {
        true => joined.join_on(right, join_type, [])?,
        false => joined.join_with_expr_keys(right, join_type, (on_left, on_right), None)?,
    };
    debug_assert_eq!(null_equality, NullEquality::NullEqualsNothing);
    match filter {
        Some(filter) => joined.filter(filter)?.build(),
        None => joined.build(),
    }
}

/// Whether a value of VALUES has to be selected: nothing evaluates its subqueries, or its columns of a query outside.
fn is_selected(value: &Expr) -> bool {
    has_subquery(value) || value.contains_outer()
}

/// VALUES in which rows with subqueries, or columns of a query outside, are SELECTs.
fn selected_values(values: logical::Values) -> Result<LogicalPlan> {
    let logical::Values { schema, values } = values;
    let mut inputs = Vec::new();
    let mut plain = Vec::new();
    let rows = |values| {
        Arc::new(LogicalPlan::Values(logical::Values { schema: Arc::clone(&schema), values }))
    };
    for row in values {
        if !row.iter().any(is_selected) {
            plain.push(row);
            continue;
        }
        if !plain.is_empty() {
            inputs.push(rows(std::mem::take(&mut plain)));
        }
        let selected = row.into_iter().zip(schema.iter()).map(|(value, (qualifier, field))| {
            let value = Expr::Cast(Cast::new(Box::new(value), field.data_type().clone()));
            value.alias_qualified(qualifier.cloned(), field.name())
        });
        let row = LogicalPlanBuilder::empty(true).project(selected)?.build()?;
        inputs.push(Arc::new(row));
    }
    if !plain.is_empty() {
        inputs.push(rows(plain));
    }
    match inputs.len() {
        1 => Ok(inputs.remove(0).as_ref().clone()),
        _ => Ok(LogicalPlan::Union(logical::Union { inputs, schema })),
    }
}

/// The inner columns of a correlation that consists only of `inner = outer`, or the same of NULLs, each once.
fn equality_keys(pulled: &Pulled) -> Option<Vec<Column>> {
    let schema = pulled.plan.schema();
    let mut keys = Vec::new();
    for condition in pulled.filter.clone().map(split_conjunction_owned).unwrap_or_default() {
        let Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq | Operator::IsNotDistinctFrom,
            right,
        }) = condition
        else {
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
pub(crate) fn is_single(query: &LogicalPlan) -> bool {
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

/// Whether the expression has any subquery.
pub(crate) fn has_subquery(expression: &Expr) -> bool {
    let is_subquery =
        |part: &Expr| Ok(matches!(part, Expr::ScalarSubquery(_)) || is_predicate(part));
    expression.exists(is_subquery).unwrap_or(false)
}

fn is_predicate(expression: &Expr) -> bool {
    matches!(expression, Expr::Exists(_) | Expr::InSubquery(_))
}
