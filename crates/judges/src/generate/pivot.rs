//! Generating aggregates of the values of a column, each in a column: what PIVOT stands for; and the values of columns, each in a
//! row: UNPIVOT.

use super::aggregate::{count, plain};
use super::{Maker, Sight, keys, named};
use crate::query::{
    Aggregate, Body, Expr, From, Group, Item, Kind, Op, Query, Select, SetOperation, Value,
};

impl Maker {
    /// Groups of a derived query, with an aggregate for each of some values of a column. All that Alluvium is given is
    /// [PIVOT](crate::query::pivot::Pivot).
    pub(super) fn pivoted(&mut self, from: From, sight: &Sight) -> Query {
        let is_plain =
            |kind| matches!(kind, Kind::Integer | Kind::Big | Kind::Text | Kind::Boolean);
        let Some(by) = self.column(sight, is_plain) else {
            return self.grouped(from, sight, false);
        };
        let mut columns: Vec<Expr> = Vec::new();
        for _ in 0..self.below(3) {
            columns.extend(self.column(sight, keys));
        }
        let groups = columns.len();
        let number = self.column(sight, |kind| matches!(kind, Kind::Integer | Kind::Big));
        columns.push(by.clone());
        columns.extend(number.clone());
        let mut inner = Select::of(named(columns.clone()), from);
        if self.once_in(3) {
            inner.filter = Some(self.condition(sight, 1));
        }
        let alias = self.alias();
        let column =
            |place: usize, of: &Expr| Expr::Column(alias.clone(), format!("c{place}"), of.kind());
        let aggregate = match number {
            Some(number) => {
                let argument = column(groups + 1, &number);
                let kind = number.kind();
                match self.below(4) {
                    0 => plain("count", argument, Kind::Big),
                    1 => plain("min", argument, kind),
                    2 => plain("max", argument, kind),
                    _ => plain("sum", argument, Kind::Big),
                }
            }
            None => count(),
        };
        let group_keys: Vec<Expr> =
            (0..groups).map(|place| column(place, &columns[place])).collect();
        let mut items = named(group_keys.clone());
        let mut values: Vec<Expr> = Vec::new();
        for _ in 0..1 + self.below(3) {
            let value = self.constant(by.kind());
            if !matches!(value, Expr::Literal(Value::Null, _)) && !values.contains(&value) {
                values.push(value);
            }
        }
        let by = column(groups, &by);
        items.extend(values.into_iter().enumerate().map(|(place, value)| {
            let filter = Some(Expr::binary(by.clone(), Op::Equal, value));
            let cell = Aggregate { filter, ..aggregate.clone() };
            Item { expr: Expr::Aggregate(Box::new(cell)), name: format!("p{place}") }
        }));
        if items.len() == groups {
            // NULL was the only value.
            let expr = Expr::Aggregate(Box::new(aggregate));
            items.push(Item { expr, name: "p0".to_owned() });
        }
        let from = From::Derived(Box::new(Query::select(inner)), alias);
        let group = if groups == 0 { Group::None } else { Group::Keys(group_keys) };
        Query::select(Select { items, group, ..Select::of(Vec::new(), from) })
    }

    /// The values of some columns of a derived query that are not NULL, each in a row of its own. All that Alluvium is given is
    /// [UNPIVOT](crate::query::pivot::Unpivot).
    pub(super) fn unpivoted(&mut self, from: From, sight: &Sight) -> Query {
        let is_plain = |kind| matches!(kind, Kind::Integer | Kind::Big | Kind::Text);
        let Some(first) = self.column(sight, is_plain) else {
            return self.grouped(from, sight, false);
        };
        let kind = first.kind();
        let mut columns: Vec<Expr> = Vec::new();
        for _ in 0..self.below(3) {
            columns.extend(self.column(sight, keys));
        }
        let kept = columns.len();
        columns.push(first);
        for _ in 0..1 + self.below(2) {
            columns.push(self.scalar(sight, kind, 0));
        }
        let kinds: Vec<Kind> = columns.iter().map(Expr::kind).collect();
        if kinds[kept..].iter().any(|other| *other != kind) {
            return self.grouped(from, sight, false);
        }
        let mut inner = Select::of(named(columns), from);
        if self.once_in(3) {
            inner.filter = Some(self.condition(sight, 1));
        }
        let rows = Query::select(inner);
        let alias = self.alias();
        let column = |place: usize| Expr::Column(alias.clone(), format!("c{place}"), kinds[place]);
        let branches = (kept..kinds.len()).map(|place| {
            let name = Value::Text(format!("c{place}"));
            let name = Expr::literal(name, Kind::Text);
            let mut items = named((0..kept).map(column).collect());
            items.push(Item { expr: name, name: "name".to_owned() });
            items.push(Item { expr: column(place), name: "value".to_owned() });
            let from = From::Derived(Box::new(rows.clone()), alias.clone());
            let mut branch = Select::of(items, from);
            branch.filter = Some(Expr::IsNull(Box::new(column(place)), true));
            Query::select(branch)
        });
        let union = |left: Query, right: Query| {
            let body = Body::Set(SetOperation::Union, true, Box::new(left), Box::new(right));
            Query { with: Vec::new(), body, top: None }
        };
        branches.reduce(union).unwrap_or(rows)
    }
}
