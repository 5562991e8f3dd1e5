//! Queries that PIVOT and UNPIVOT stand for.

use super::{Aggregate, Body, Distinct, Expr, From, Group, Op, Query, Select, SetOperation, Value};

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

/// The parts of a query that is an UNPIVOT, written out: `SELECT others, 'column' AS name, column AS value FROM rows WHERE column IS
/// NOT NULL` for each of some columns, with UNION ALL, where the rows have no other columns.
pub(crate) struct Unpivot<'a> {
    /// The derived query that is unpivoted.
    pub(crate) rows: &'a Query,
    /// Its alias.
    pub(crate) alias: &'a str,
    /// The column of the names.
    pub(crate) name: &'a str,
    /// The column of the values.
    pub(crate) value: &'a str,
    /// The columns whose values these are.
    pub(crate) columns: Vec<&'a str>,
}

impl<'a> Unpivot<'a> {
    /// The parts of a query, if it is an UNPIVOT.
    pub(crate) fn of(query: &'a Query) -> Option<Unpivot<'a>> {
        let found = Unpivot::start(query)?;
        let others = query.columns().len() - 2;
        let there = found.rows.columns();
        let has_all = there[others..].iter().map(|(name, _)| name).eq(&found.columns);
        has_all.then_some(found)
    }

    /// The parts of what may be the first branches of one.
    fn start(query: &'a Query) -> Option<Unpivot<'a>> {
        let Body::Set(SetOperation::Union, true, left, right) = &query.body else {
            return Unpivot::branch(query);
        };
        let (mut found, last) = (Unpivot::start(left)?, Unpivot::branch(right)?);
        found.columns.extend(last.columns);
        let is_same = query.with.is_empty()
            && query.top.is_none()
            && (found.rows, found.alias) == (last.rows, last.alias)
            && (found.name, found.value) == (last.name, last.value);
        is_same.then_some(found)
    }

    /// The rows for one column.
    fn branch(query: &'a Query) -> Option<Unpivot<'a>> {
        let Query { with, body: Body::Select(select), top: None } = query else { return None };
        let Select { items, from: Some(From::Derived(rows, alias)), .. } = &**select else {
            return None;
        };
        let is_plain = with.is_empty()
            && select.distinct == Distinct::All
            && select.group == Group::None
            && select.having.is_none()
            && select.qualify.is_none();
        let [others @ .., name, value] = &items[..] else { return None };
        let Expr::Literal(Value::Text(text), _) = &name.expr else { return None };
        let Expr::Column(_, column, _) = &value.expr else { return None };
        let Some(Expr::IsNull(filtered, true)) = &select.filter else { return None };
        let columns = rows.columns();
        let is_kept = |(item, (column, _)): (&super::Item, &(String, super::Kind))| {
            item.name == *column && matches!(&item.expr, Expr::Column(_, name, _) if name == column)
        };
        let is_branch = is_plain
            && text == column
            && **filtered == value.expr
            && others.len() < columns.len()
            && others.iter().zip(&columns).all(is_kept);
        let (name, value, columns) = (&*name.name, &*value.name, vec![column.as_str()]);
        is_branch.then_some(Unpivot { rows, alias, name, value, columns })
    }
}
