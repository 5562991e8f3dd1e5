//! Generating subqueries in conditions and as values.

use super::aggregate::{count, plain};
use super::{Maker, Sight, named, sorts};
use crate::query::{Expr, From, Group, Kind, Op, Query, Select};

impl Maker {
    /// A query with subqueries in its WHERE, its items or its HAVING.
    pub(super) fn with_subqueries(&mut self, from: From, sight: &Sight) -> Query {
        match self.below(6) {
            0 => {
                let mut exprs = self.items(sight, 2);
                exprs.push(self.asking(sight));
                Query::select(Select::of(named(exprs), from))
            }
            1 => {
                let mut exprs = self.items(sight, 2);
                exprs.push(self.value_of_another(sight));
                Query::select(Select::of(named(exprs), from))
            }
            2 => {
                let Some(key) = self.column(sight, sorts) else {
                    let exprs = self.items(sight, 2);
                    return Query::select(Select::of(named(exprs), from));
                };
                let total = Expr::Aggregate(Box::new(count()));
                let mut select = Select::of(named(vec![key.clone(), total.clone()]), from);
                select.group = Group::Keys(vec![key]);
                let (other, other_sight, _) = self.relation(40.0);
                let inner = self.of_one(other, &other_sight, Kind::Big, None);
                let op = self.comparison();
                let inner = self.aggregated(inner);
                select.having = Some(Expr::binary(total, op, inner));
                Query::select(select)
            }
            _ => {
                let mut select = Select::of(named(self.items(sight, 3)), from);
                let mut filter = self.asking(sight);
                match self.below(5) {
                    0 => filter = Expr::binary(filter, Op::Or, self.condition(sight, 0)),
                    1 | 2 => {
                        let row = self.row_among(sight);
                        let other = row.unwrap_or_else(|| self.condition(sight, 0));
                        filter = Expr::binary(filter, Op::And, other);
                    }
                    3 if self.once_in(2) => {
                        let value = self.value_of_another(sight);
                        let op = self.comparison();
                        filter = Expr::binary(value, op, Expr::whole(self.below(4) as i64));
                    }
                    _ => {}
                }
                select.filter = Some(filter);
                Query::select(select)
            }
        }
    }

    /// EXISTS over another relation, or IN over its values.
    fn asking(&mut self, sight: &Sight) -> Expr {
        let (other, other_sight, _) = self.relation(30.0);
        let not = self.once_in(2);
        let correlated = self.once_in(2);
        let condition = match correlated {
            true => {
                let equal = self.pair(sight, &other_sight, Op::Equal);
                let op = self.comparison();
                match (equal, self.once_in(4)) {
                    (Some(equal), true) => {
                        let more = self.pair(sight, &other_sight, op);
                        Some(more.map_or(equal.clone(), |more| Expr::binary(equal, Op::And, more)))
                    }
                    (equal, _) => equal,
                }
            }
            false if self.once_in(2) => Some(self.condition(&other_sight, 0)),
            false => None,
        };
        if self.once_in(6) {
            let items = named(vec![Expr::whole(1)]);
            let mut select = Select::of(items, other);
            select.filter = condition;
            return Expr::Exists(Box::new(Query::select(select)), not);
        }
        let Some(Expr::Binary(own, _, its)) = self.pair(sight, &other_sight, Op::Equal) else {
            let mut select = Select::of(named(vec![Expr::whole(1)]), other);
            select.filter = condition;
            return Expr::Exists(Box::new(Query::select(select)), not);
        };
        let mut select = Select::of(named(vec![*its]), other);
        select.filter = condition;
        Expr::Among(own, Box::new(Query::select(select)), not)
    }

    /// Whether a row of two values is among those of another relation, if there are columns of the same types.
    pub(super) fn row_among(&mut self, sight: &Sight) -> Option<Expr> {
        let (from, other_sight, _) = self.relation(30.0);
        let Expr::Binary(own, _, its) = self.pair(sight, &other_sight, Op::Equal)? else {
            return None;
        };
        let other = self.column(sight, |kind| {
            sorts(kind)
                && other_sight
                    .iter()
                    .any(|(_, columns)| columns.iter().any(|column| column.1 == kind))
        })?;
        let there = self.column(&other_sight, |kind| kind == other.kind())?;
        let mut select = Select::of(named(vec![Expr::whole(1)]), from);
        if self.once_in(3) {
            let op = self.comparison();
            select.filter = self.pair(sight, &other_sight, op);
        } else if self.once_in(2) {
            select.filter = Some(self.condition(&other_sight, 0));
        }
        let not = self.once_in(2);
        Some(self.row_asking(select, [*own, other], [*its, there], not))
    }

    /// Whether a row of two values is among those of a query, or how it compares with its one row of two aggregates.
    fn row_asking(
        &mut self,
        mut select: Select,
        own: [Expr; 2],
        its: [Expr; 2],
        not: bool,
    ) -> Expr {
        let sorted = its.iter().all(|column| sorts(column.kind()));
        if sorted && self.below(5) < 2 {
            let [one, other] = its.map(|column| {
                let kind = column.kind();
                Expr::Aggregate(Box::new(plain(self.one_of(&["min", "max"]), column, kind)))
            });
            select.items = named(vec![one, other]);
            let op = self.comparison();
            return Expr::RowScalar(own.to_vec(), op, Box::new(Query::select(select)));
        }
        select.items = named(its.to_vec());
        Expr::RowAmong(own.to_vec(), Box::new(Query::select(select)), not)
    }

    /// A query of one column.
    fn of_one(&mut self, from: From, sight: &Sight, kind: Kind, filter: Option<Expr>) -> Query {
        let column = self.column(sight, |other| other == kind);
        let column = column.unwrap_or_else(|| self.constant(kind));
        let mut select = Select::of(named(vec![column]), from);
        select.filter = filter;
        Query::select(select)
    }

    /// An aggregate of a query's one column, as a value.
    fn aggregated(&mut self, mut query: Query) -> Expr {
        if let crate::query::Body::Select(select) = &mut query.body {
            let argument = select.items[0].expr.clone();
            let kind = argument.kind();
            let aggregate = match self.below(4) {
                0 => count(),
                1 => plain("count", argument, Kind::Big),
                2 => plain("min", argument, kind),
                _ => plain("max", argument, kind),
            };
            let kind = aggregate.kind;
            select.items = named(vec![Expr::Aggregate(Box::new(aggregate))]);
            return Expr::Scalar(Box::new(query), kind);
        }
        Expr::whole(0)
    }

    /// A scalar subquery over another relation, correlated or not.
    fn value_of_another(&mut self, sight: &Sight) -> Expr {
        let (other, other_sight, _) = self.relation(30.0);
        let filter = match self.once_in(3) {
            true => None,
            false => self.pair(sight, &other_sight, Op::Equal),
        };
        let kind = self.one_of(&[Kind::Integer, Kind::Big]);
        let inner = self.of_one(other, &other_sight, kind, filter);
        // Without an aggregate there may be several rows, which is an error.
        if self.once_in(6) {
            return Expr::Scalar(Box::new(inner), kind);
        }
        self.aggregated(inner)
    }
}
