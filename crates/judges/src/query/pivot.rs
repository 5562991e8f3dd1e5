//! Queries that PIVOT stands for.

use super::{Aggregate, Body, Distinct, Expr, From, Group, Op, Query};

/// The parts of a query that is a PIVOT, written out: `SELECT keys, aggregate FILTER (WHERE by = value) AS name, … FROM rows
/// GROUP BY keys`, where the rows have no other columns.
pub(crate) struct Pivot<'a> {
    /// The derived query that is pivoted.
    pub(crate) rows: &'a Query,
    /// Its alias.
    pub(crate) alias: &'a str,
    /// The aggregate, without a filter.
    pub(crate) aggregate: Aggregate,
    /// The column of the values.
    pub(crate) by: &'a Expr,
    /// The values and the names of their columns.
    pub(crate) values: Vec<(&'a Expr, &'a str)>,
}

impl<'a> Pivot<'a> {
    /// The parts of a query, if it is a PIVOT.
    pub(crate) fn of(query: &'a Query) -> Option<Pivot<'a>> {
        let Query { with, body: Body::Select(select), top: None } = query else { return None };
        let Some(From::Derived(rows, alias)) = &select.from else { return None };
        let is_plain = with.is_empty()
            && select.distinct == Distinct::All
            && select.filter.is_none()
            && select.having.is_none()
            && select.qualify.is_none();
        let keys: &[Expr] = match &select.group {
            Group::None => &[],
            Group::Keys(keys) => keys,
            Group::Sets(..) => return None,
        };
        let (groups, cells) = select.items.split_at_checked(keys.len())?;
        let is_key = |(item, key): (&super::Item, &Expr)| {
            item.expr == *key && matches!(key, Expr::Column(_, name, _) if *name == item.name)
        };
        if !is_plain || cells.is_empty() || !groups.iter().zip(keys).all(is_key) {
            return None;
        }
        let mut found: Option<(Aggregate, &Expr)> = None;
        let mut values = Vec::with_capacity(cells.len());
        for cell in cells {
            let Expr::Aggregate(aggregate) = &cell.expr else { return None };
            let Some(Expr::Binary(by, Op::Equal, value)) = &aggregate.filter else { return None };
            let (Expr::Column(..), Expr::Literal(..)) = (&**by, &**value) else { return None };
            let bare = Aggregate { filter: None, ..aggregate.as_ref().clone() };
            let (first, first_by) = found.get_or_insert((bare.clone(), by));
            if *first != bare || *first_by != &**by {
                return None;
            }
            values.push((&**value, cell.name.as_str()));
        }
        let (aggregate, by) = found?;
        let used = keys.iter().chain([by]).chain(&aggregate.arguments);
        let columns: Vec<&str> = used
            .filter_map(|expr| match expr {
                Expr::Column(_, name, _) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let there = rows.columns();
        let has_all = there.iter().map(|(name, _)| name.as_str()).eq(columns);
        has_all.then_some(Pivot { rows, alias, aggregate, by, values })
    }
}
