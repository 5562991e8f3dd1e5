//! Evaluating queries.

use std::collections::BTreeMap;

use super::aggregate::{one, ordered};
use super::from::{Rows, With};
use super::{GroupOf, Outcome, Row, Scope, World};
use crate::query::visit::{self, Visitor};
use crate::query::{Body, Distinct, Expr, Group, Query, Select, SetOperation, Value, Window};

impl World<'_> {
    /// The result of a query, for a row of an outer query if it is a subquery.
    pub(super) fn query(&self, query: &Query, outer: Option<&Scope<'_>>) -> Outcome<Vec<Row>> {
        let with: Vec<(String, &Query)> =
            query.with.iter().map(|(name, inner)| (name.clone(), inner)).collect();
        let mut rows = match &query.body {
            Body::Select(select) => self.select(select, &with, outer)?,
            Body::Set(operation, all, left, right) => {
                set(*operation, *all, self.query(left, outer)?, self.query(right, outer)?)
            }
        };
        self.work(rows.len() as u64)?;
        if let Some(top) = &query.top {
            rows.sort_by(|a, b| {
                let orders = top.order.iter();
                let orders =
                    orders.map(|&(place, desc, first)| one(&a[place], &b[place], desc, first));
                orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
            });
            let is_tied = |row: &Row, last: &Row| {
                top.with_ties && top.order.iter().all(|(place, ..)| row[*place] == last[*place])
            };
            let end = (top.offset + top.limit) as usize;
            let last = end.checked_sub(1).and_then(|last| rows.get(last)).cloned();
            let ties = rows.iter().skip(end);
            let ties = ties.take_while(|row| last.as_ref().is_some_and(|last| is_tied(row, last)));
            let end = end + ties.count();
            rows = rows.into_iter().take(end).skip(top.offset as usize).collect();
        }
        Ok(rows)
    }

    fn select(
        &self,
        select: &Select,
        with: &With<'_>,
        outer: Option<&Scope<'_>>,
    ) -> Outcome<Vec<Row>> {
        let Rows { columns, mut rows } = match &select.from {
            Some(from) => self.from(from, with, outer)?,
            None => Rows { columns: Vec::new(), rows: vec![Vec::new()] },
        };
        let sight = Scope { columns: &columns, row: &[], group: None, windows: &[], outer };
        if let Some(filter) = &select.filter {
            let mut left = Vec::new();
            for row in rows {
                let passes = self.keep(self.passes(filter, &Scope { row: &row, ..sight }))?;
                if passes == Some(true) {
                    left.push(row);
                }
            }
            rows = left;
        }
        let found = Found::of(select);
        let groups = match (&select.group, found.aggregates) {
            (Group::None, false) => None,
            _ => Some(self.groups(select, &rows, &sight)?),
        };
        let mut scopes: Vec<Scope<'_>> = match &groups {
            None => rows.iter().map(|row| Scope { row, ..sight }).collect(),
            Some(groups) => {
                groups.iter().map(|group| Scope { group: Some(group), ..sight }).collect()
            }
        };
        if let Some(having) = &select.having {
            let mut left = Vec::new();
            for scope in scopes {
                if self.keep(self.passes(having, &scope))? == Some(true) {
                    left.push(scope);
                }
            }
            scopes = left;
        }
        let mut windows: Vec<Vec<(&Window, Value)>> = vec![Vec::new(); scopes.len()];
        for window in &found.windows {
            for (place, value) in self.windowed(window, &scopes)?.into_iter().enumerate() {
                windows[place].push((window, value));
            }
        }
        let mut answer = Vec::new();
        let mut order_of = Vec::new();
        for (scope, windows) in scopes.iter().zip(&windows) {
            let scope = Scope { windows, ..*scope };
            if let Some(qualify) = &select.qualify
                && self.keep(self.passes(qualify, &scope))? != Some(true)
            {
                continue;
            }
            let Some(mut given) = self.keep(self.items(select, &scope))? else { continue };
            if let Distinct::On(on, order) = &select.distinct {
                let value = |expr: &Expr| self.value(expr, &scope);
                let on = on.iter().map(value).collect::<Outcome<Vec<_>>>()?;
                let order =
                    order.iter().map(|order| value(&order.expr)).collect::<Outcome<Vec<_>>>()?;
                order_of.push((on, order, answer.len()));
            }
            answer.append(&mut given);
        }
        match &select.distinct {
            Distinct::All => {}
            Distinct::Rows => {
                answer.sort();
                answer.dedup();
            }
            Distinct::On(_, orders) => {
                order_of.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| ordered(orders, &a.1, &b.1)));
                order_of.dedup_by(|b, a| a.0 == b.0);
                answer = order_of.iter().map(|(.., place)| answer[*place].clone()).collect();
            }
        }
        Ok(answer)
    }

    /// The rows that SELECT returns for one input row: several if it unnests a list.
    fn items(&self, select: &Select, scope: &Scope<'_>) -> Outcome<Vec<Row>> {
        let mut row = Row::new();
        let mut lists = Vec::new();
        for (place, item) in select.items.iter().enumerate() {
            row.push(match &item.expr {
                Expr::Unnest(inner) => {
                    if let Value::List(values) = self.value(inner, scope)? {
                        lists.push((place, values));
                    } else {
                        lists.push((place, Vec::new()));
                    }
                    Value::Null
                }
                expr => self.value(expr, scope)?,
            });
        }
        if lists.is_empty() {
            return Ok(vec![row]);
        }
        let length = lists.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        let element = |number: usize| {
            let mut row = row.clone();
            for (place, values) in &lists {
                row[*place] = values.get(number).cloned().unwrap_or(Value::Null);
            }
            row
        };
        Ok((0..length).map(element).collect())
    }

    fn groups<'b>(
        &self,
        select: &'b Select,
        rows: &'b [Row],
        sight: &Scope<'_>,
    ) -> Outcome<Vec<GroupOf<'b>>> {
        let (keys, sets): (&[Expr], Vec<Vec<usize>>) = match &select.group {
            Group::None => (&[], vec![Vec::new()]),
            Group::Keys(keys) => (keys, vec![(0..keys.len()).collect()]),
            Group::Sets(keys, sets) => (keys, sets.listed(keys.len())),
        };
        let mut inputs = Vec::new();
        for row in rows {
            let scope = Scope { row, ..*sight };
            let values =
                keys.iter().map(|key| self.value(key, &scope)).collect::<Outcome<Vec<_>>>();
            let Some(values) = self.keep(values)? else { continue };
            // A row that fails in one aggregate is left out of the others too.
            let found = Found::of(select);
            let computed = found.inputs.iter().try_for_each(|(filter, inputs)| {
                if let Some(filter) = filter
                    && self.truth(filter, &scope)? != Some(true)
                {
                    return Ok(());
                }
                inputs.iter().try_for_each(|input| self.value(input, &scope).map(drop))
            });
            if self.keep(computed)?.is_some() {
                inputs.push((values, row));
            }
        }
        let mut groups = Vec::new();
        for set in sets {
            let mut of_set: BTreeMap<Vec<Value>, Vec<&Row>> = BTreeMap::new();
            if set.is_empty() {
                of_set.insert(Vec::new(), Vec::new());
            }
            for (values, row) in &inputs {
                let key = set.iter().map(|key| values[*key].clone()).collect();
                of_set.entry(key).or_default().push(row);
            }
            for (values, rows) in of_set {
                let value = |place: usize| {
                    let at = set.iter().position(|key| *key == place);
                    at.map(|at| values[at].clone())
                };
                let keys = keys.iter().enumerate().map(|(place, key)| (key, value(place)));
                groups.push(GroupOf { keys: keys.collect(), rows });
            }
        }
        Ok(groups)
    }
}

/// The expressions in the items and conditions of a SELECT, without subqueries.
#[derive(Default)]
struct Found {
    aggregates: bool,
    windows: Vec<Window>,
    /// The filters and the arguments of its aggregates.
    inputs: Vec<(Option<Expr>, Vec<Expr>)>,
}

impl Found {
    fn of(select: &Select) -> Self {
        let mut found = Self::default();
        let items = select.items.iter().map(|item| &item.expr);
        for expr in items.chain(&select.having).chain(&select.qualify) {
            visit::expr(expr, &mut found);
        }
        found
    }
}

impl Visitor for Found {
    fn enters(&self) -> bool {
        false
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Aggregate(aggregate) => {
                self.aggregates = true;
                let order = aggregate.order.iter().map(|order| order.expr.clone());
                let inputs = aggregate.arguments.iter().cloned().chain(order).collect();
                self.inputs.push((aggregate.filter.clone(), inputs));
            }
            Expr::Window(window) if !self.windows.contains(window) => {
                self.windows.push((**window).clone());
            }
            _ => {}
        }
    }
}

fn set(operation: SetOperation, all: bool, left: Vec<Row>, right: Vec<Row>) -> Vec<Row> {
    let mut counts: BTreeMap<Row, (usize, usize)> = BTreeMap::new();
    left.into_iter().for_each(|row| counts.entry(row).or_default().0 += 1);
    right.into_iter().for_each(|row| counts.entry(row).or_default().1 += 1);
    let mut rows = Vec::new();
    for (row, (m, n)) in counts {
        let copies = match (operation, all) {
            (SetOperation::Union, true) => m + n,
            (SetOperation::Union, false) => 1,
            (SetOperation::Intersect, true) => m.min(n),
            (SetOperation::Intersect, false) => m.min(n).min(1),
            (SetOperation::Except, true) => m.saturating_sub(n),
            (SetOperation::Except, false) => usize::from(n == 0),
        };
        rows.extend(std::iter::repeat_n(row, copies));
    }
    rows
}
