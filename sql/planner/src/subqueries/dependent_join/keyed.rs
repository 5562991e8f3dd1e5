//! Operators over the rows for all keys.

use std::sync::Arc;

use alluvium_sql_functions::FUNCTIONS;
use datafusion_common::{Column, Result};
use datafusion_expr::expr::{Sort, WindowFunction};
use datafusion_expr::logical_plan as logical;
use datafusion_expr::{
    Expr, ExprFunctionExt, Extension, FetchType, LogicalPlan, LogicalPlanBuilder, SkipType,
    WindowFunctionDefinition, lit,
};

use super::references::{references_of, replaced, replaced_all};
use super::{Dependence, Key, Keyed};
use crate::statements::set_operation::as_set_operation;

impl Dependence<'_> {
    /// The rows of a plan for all values of the columns outside to which it refers.
    pub(super) fn keyed(&self, plan: &LogicalPlan) -> Result<Option<Keyed>> {
        if self.outside(plan)?.is_empty() {
            return Ok(Some(Keyed { plan: plan.clone(), keys: Vec::new() }));
        }
        match plan {
            LogicalPlan::Projection(projection) => self.projected(projection),
            LogicalPlan::Filter(filter) => self.filtered(&filter.input, &filter.predicate),
            LogicalPlan::Aggregate(aggregate) => self.grouped(aggregate),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(rows) = self.keyed(&alias.input)? else { return Ok(None) };
                let own = rows.columns().into_iter().map(Expr::Column);
                self.named(rows.plan, own, &alias.schema.columns(), rows.keys).map(Some)
            }
            // The order of a subquery's rows only matters to LIMIT.
            LogicalPlan::Sort(sort) => match sort.fetch {
                None => self.keyed(&sort.input),
                Some(fetch) => self.first(&sort.input, &sort.expr, 0, Some(fetch)),
            },
            LogicalPlan::Limit(limit) => self.limited(limit),
            LogicalPlan::Window(window) => self.windowed(window),
            LogicalPlan::Distinct(logical::Distinct::All(input)) => {
                let Some(Keyed { plan, keys }) = self.keyed(input)? else { return Ok(None) };
                let plan = LogicalPlanBuilder::from(plan).distinct()?.build()?;
                Ok(Some(Keyed { plan, keys }))
            }
            LogicalPlan::Distinct(logical::Distinct::On(distinct)) => self.first_of_each(distinct),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::RecursiveQuery(query) => self.recursive(query),
            LogicalPlan::TableScan(scan) => self.recurring_rows(scan),
            LogicalPlan::Extension(extension) => self.set_operation(extension),
            LogicalPlan::Unnest(unnest) => {
                let Some(Keyed { plan, keys }) = self.keyed(&unnest.input)? else {
                    return Ok(None);
                };
                let (columns, options) = (unnest.exec_columns.clone(), unnest.options.clone());
                let plan = logical::Unnest::try_new(Arc::new(plan), columns, options)?;
                Ok(Some(Keyed { plan: LogicalPlan::Unnest(plan), keys }))
            }
            _ => Ok(None),
        }
    }

    /// The rows of an input, for all values of these columns outside, too.
    pub(super) fn input(&self, plan: &LogicalPlan, columns: &[Column]) -> Result<Option<Keyed>> {
        match self.keyed(plan)? {
            Some(rows) => self.extended(rows, columns),
            None => Ok(None),
        }
    }

    /// These values of the rows of a plan under these names, and the keys.
    pub(super) fn named<'n>(
        &self,
        plan: LogicalPlan,
        values: impl IntoIterator<Item = Expr>,
        names: impl IntoIterator<Item = &'n Column>,
        keys: Vec<Key>,
    ) -> Result<Keyed> {
        let values = values.into_iter().zip(names).map(|(value, name)| match value {
            Expr::Column(column) if column == *name => Expr::Column(column),
            value => value.alias_qualified(name.relation.clone(), &name.name),
        });
        let values = values.chain(keys.iter().map(Key::value));
        let plan = LogicalPlanBuilder::from(plan).project(values)?.build()?;
        Ok(Keyed { plan, keys })
    }

    fn projected(&self, projection: &logical::Projection) -> Result<Option<Keyed>> {
        let needed = references_of(&projection.expr, self.outer.schema())?;
        let Some(Keyed { plan, keys }) = self.input(&projection.input, &needed)? else {
            return Ok(None);
        };
        let values = replaced_all(&projection.expr, &keys)?.into_iter().map(Expr::unalias);
        self.named(plan, values, &projection.schema.columns(), keys).map(Some)
    }

    /// LIMIT counts the rows of each key.
    fn limited(&self, limit: &logical::Limit) -> Result<Option<Keyed>> {
        let (Ok(SkipType::Literal(skip)), Ok(FetchType::Literal(fetch))) =
            (limit.get_skip_type(), limit.get_fetch_type())
        else {
            return Ok(None);
        };
        match limit.input.as_ref() {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                self.first(&sort.input, &sort.expr, skip, fetch)
            }
            // The columns of ORDER BY may not be among those that are selected.
            LogicalPlan::Projection(projection)
                if matches!(projection.input.as_ref(), LogicalPlan::Sort(_)) =>
            {
                let mut limit = limit.clone();
                limit.input = Arc::clone(&projection.input);
                let mut projection = projection.clone();
                projection.input = Arc::new(LogicalPlan::Limit(limit));
                self.projected(&projection)
            }
            input => self.first(input, &[], skip, fetch),
        }
    }

    /// The rows of each key between the first `skip` and the `fetch` after them.
    fn first(
        &self,
        input: &LogicalPlan,
        order: &[Sort],
        skip: usize,
        fetch: Option<usize>,
    ) -> Result<Option<Keyed>> {
        let order_by = order.iter().map(|order| &order.expr);
        let needed = references_of(order_by, self.outer.schema())?;
        let Some(rows) = self.input(input, &needed)? else { return Ok(None) };
        let Some(function) = FUNCTIONS.window.get("row_number") else { return Ok(None) };
        let order = ordered(order, &rows.keys)?;
        let function = WindowFunctionDefinition::WindowUDF(Arc::clone(function));
        let mut number = Expr::from(WindowFunction::new(function, Vec::new()))
            .partition_by(rows.keys.iter().map(Key::value).collect());
        if !order.is_empty() {
            number = number.order_by(order);
        }
        let name = self.names.next("__number");
        let place = || Expr::Column(Column::new_unqualified(&name));
        let behind = |rows: usize| lit(u64::try_from(rows).unwrap_or(u64::MAX));
        let mut conditions = Vec::new();
        if let Some(fetch) = fetch {
            conditions.push(place().lt_eq(behind(skip.saturating_add(fetch))));
        }
        if skip > 0 {
            conditions.push(place().gt(behind(skip)));
        }
        let own = rows.columns();
        let mut plan =
            LogicalPlanBuilder::from(rows.plan).window([number.build()?.alias(&name)])?;
        if let Some(condition) = conditions.into_iter().reduce(Expr::and) {
            plan = plan.filter(condition)?;
        }
        let values = own.clone().into_iter().map(Expr::Column);
        self.named(plan.build()?, values, &own, rows.keys).map(Some)
    }

    /// Window functions over partitions of rows with the same keys.
    fn windowed(&self, window: &logical::Window) -> Result<Option<Keyed>> {
        let needed = references_of(&window.window_expr, self.outer.schema())?;
        let Some(rows) = self.input(&window.input, &needed)? else { return Ok(None) };
        let mut calls = Vec::with_capacity(window.window_expr.len());
        for call in &window.window_expr {
            let Expr::WindowFunction(mut call) = replaced(call.clone().unalias(), &rows.keys)?
            else {
                return Ok(None);
            };
            call.params.partition_by.extend(rows.keys.iter().map(Key::value));
            calls.push(Expr::WindowFunction(call).alias(self.names.next("__window")));
        }
        let mut columns = rows.columns();
        let plan = logical::Window::try_new(calls, Arc::new(rows.plan))?;
        let behind = plan.schema.fields().len() - window.window_expr.len();
        columns.extend(plan.schema.columns().into_iter().skip(behind));
        let values = columns.into_iter().map(Expr::Column);
        let names = window.schema.columns();
        self.named(LogicalPlan::Window(plan), values, &names, rows.keys).map(Some)
    }

    /// DISTINCT ON keeps a row for each key.
    fn first_of_each(&self, distinct: &logical::DistinctOn) -> Result<Option<Keyed>> {
        let order = distinct.sort_expr.iter().flatten();
        let expressions = distinct.on_expr.iter().chain(&distinct.select_expr);
        let expressions = expressions.chain(order.clone().map(|order| &order.expr));
        let needed = references_of(expressions, self.outer.schema())?;
        let Some(Keyed { plan, keys }) = self.input(&distinct.input, &needed)? else {
            return Ok(None);
        };
        let columns = || keys.iter().map(Key::value);
        let on = columns().chain(replaced_all(&distinct.on_expr, &keys)?).collect();
        let selected = replaced_all(&distinct.select_expr, &keys)?;
        let selected = selected.into_iter().zip(distinct.schema.columns());
        let selected = selected
            .map(|(value, name)| value.unalias().alias_qualified(name.relation, name.name))
            .chain(columns())
            .collect();
        let order = match &distinct.sort_expr {
            None => None,
            Some(order) => {
                let by_key = columns().map(|key| key.sort(true, false));
                Some(by_key.chain(ordered(order, &keys)?).collect())
            }
        };
        let plan = logical::DistinctOn::try_new(on, selected, order, Arc::new(plan))?;
        let plan = LogicalPlan::Distinct(logical::Distinct::On(plan));
        Ok(Some(Keyed { plan, keys }))
    }

    fn union(&self, union: &logical::Union) -> Result<Option<Keyed>> {
        let all = self.outside(&LogicalPlan::Union(union.clone()))?;
        let (mut inputs, mut keys) = (Vec::with_capacity(union.inputs.len()), Vec::new());
        for input in &union.inputs {
            let Some(rows) = self.input(input, &all)? else { return Ok(None) };
            let rows = in_order(rows, &all)?;
            if keys.is_empty() {
                keys.clone_from(&rows.keys);
            }
            for (key, other) in keys.iter_mut().zip(&rows.keys) {
                key.has_nulls |= other.has_nulls;
            }
            inputs.push(Arc::new(rows.plan));
        }
        let plan = LogicalPlan::Union(logical::Union::try_new_with_loose_types(inputs)?);
        let columns = plan.schema().columns();
        let (own, last) = columns.split_at(columns.len() - keys.len());
        for (key, column) in keys.iter_mut().zip(last) {
            key.column = column.clone();
        }
        let own = own.iter().cloned().map(Expr::Column).collect::<Vec<_>>();
        self.named(plan, own, &union.schema.columns(), keys).map(Some)
    }

    /// INTERSECT and EXCEPT compare the keys, too.
    fn set_operation(&self, extension: &Extension) -> Result<Option<Keyed>> {
        let Some(node) = as_set_operation(extension) else { return Ok(None) };
        let all = self.outside(&LogicalPlan::Extension(extension.clone()))?;
        let Some(left) = self.input(&node.left, &all)? else { return Ok(None) };
        let Some(right) = self.input(&node.right, &all)? else { return Ok(None) };
        let (left, right) = (in_order(left, &all)?, in_order(right, &all)?);
        let plan = node.of(left.plan, right.plan);
        Ok(Some(Keyed { plan, keys: left.keys }))
    }
}

/// The rows with their keys in the order of these columns outside.
pub(super) fn in_order(rows: Keyed, columns: &[Column]) -> Result<Keyed> {
    let own = rows.columns();
    let find = |column: &Column| rows.keys.iter().find(|key| key.outer == *column).cloned();
    let keys: Vec<Key> = columns.iter().filter_map(find).collect();
    let all = own.into_iter().map(Expr::Column).chain(keys.iter().map(Key::value));
    let plan = LogicalPlanBuilder::from(rows.plan).project(all)?.build()?;
    Ok(Keyed { plan, keys })
}

/// An order over the keys instead of the columns outside.
fn ordered(order: &[Sort], keys: &[Key]) -> Result<Vec<Sort>> {
    let over_keys = |order: &Sort| Ok(order.with_expr(replaced(order.expr.clone(), keys)?));
    order.iter().map(over_keys).collect()
}
