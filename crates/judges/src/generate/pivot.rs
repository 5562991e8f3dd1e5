//! Generating aggregates of the values of a column, each in a column: what PIVOT stands for.

use super::aggregate::{count, plain};
use super::{Maker, Sight, keys, named};
use crate::query::{Aggregate, Expr, From, Group, Item, Kind, Op, Query, Select, Value};

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
}
