//! Choosing the shape of a view.

use super::{Maker, Sight, keys, named};
use crate::query::{Body, Distinct, Expr, From, Kind, Query, Select, SetOperation};

impl Maker {
    /// A query, and its expected number of rows.
    pub(super) fn query(&mut self) -> (Query, f64) {
        loop {
            let (shape, size) = match self.below(203) {
                0 => {
                    let (from, sight, size) = self.input(60.0);
                    (Some(self.projection(from, &sight)), size)
                }
                1..15 => {
                    let (from, sight, size) = self.tree(5);
                    (Some(self.projection(from, &sight)), size)
                }
                15 => {
                    let (from, sight, size) = self.tree(3);
                    (Some(self.grouped(from, &sight, false)), size / 3.0)
                }
                16 => {
                    let (from, sight, size) = self.input(60.0);
                    (Some(self.grouped(from, &sight, false)), size / 2.0)
                }
                17..27 => {
                    let (from, sight, size) = self.input(60.0);
                    (Some(self.grouped(from, &sight, true)), size / 2.0)
                }
                27..36 => {
                    let (from, sight, size) = self.input(40.0);
                    (Some(self.sets(from, &sight)), size)
                }
                36..52 => {
                    let (from, sight, size) = self.input(40.0);
                    (Some(self.windows(from, &sight)), size)
                }
                52..60 => {
                    let (from, sight, _) = self.input(60.0);
                    (Some(self.first(from, &sight)), 6.0)
                }
                60..70 => {
                    let (from, sight, size) = self.input(60.0);
                    (Some(self.with_subqueries(from, &sight)), size)
                }
                70..78 => (Some(self.set_operation()), 16.0),
                78..88 => (self.windows_of_time(), 25.0),
                88..91 => (self.by_now(), 8.0),
                91..103 => (self.nested(), 16.0),
                103..115 => (self.functions(), 13.0),
                115..121 => (self.timed(), 30.0),
                121..133 => {
                    let (from, sight, size) = self.relation(30.0);
                    (Some(self.with_correlated(from, &sight)), size)
                }
                133..142 => {
                    let Some((from, sight, size)) = self.nearest_rows() else { continue };
                    match self.once_in(4) {
                        true => (Some(self.grouped(from, &sight, false)), size / 2.0),
                        false => (Some(self.projection(from, &sight)), size),
                    }
                }
                142..161 => match self.over_times() {
                    Some((query, size)) => (Some(query), size),
                    None => continue,
                },
                161..181 => {
                    let (from, sight, size) = self.relation(40.0);
                    (self.beside_thresholds(from, &sight), size)
                }
                181..200 => match self.of_floats() {
                    Some((query, size)) => (Some(query), size),
                    None => continue,
                },
                _ => {
                    let (from, sight, size) = self.relation(40.0);
                    (Some(self.failing(from, &sight)), size)
                }
            };
            let Some(mut query) = shape else { continue };
            if query.top.is_none() && self.once_in(20) {
                query = self.limited(query);
            }
            return (query, size);
        }
    }

    /// A relation or a derived query.
    fn input(&mut self, most: f64) -> (From, Sight, f64) {
        if self.once_in(4) { self.derived(most) } else { self.relation(most) }
    }

    /// A query in FROM.
    pub(super) fn derived(&mut self, most: f64) -> (From, Sight, f64) {
        let (from, sight, size) = self.relation(most);
        let query = match self.below(5) {
            0 if !self.once_in(4) => self.pivoted(from, &sight),
            1 if !self.once_in(4) => self.unpivoted(from, &sight),
            0 => self.grouped(from, &sight, false),
            1 => self.first(from, &sight),
            2 => self.set_operation(),
            _ => self.projection(from, &sight),
        };
        let alias = self.alias();
        let sight = vec![(alias.clone(), query.columns())];
        (From::Derived(Box::new(query), alias), sight, size.max(14.0).min(most))
    }

    fn projection(&mut self, from: From, sight: &Sight) -> Query {
        // Otherwise the query is in WITH.
        if self.once_in(2)
            && let From::Relation(..) = from
        {
            let items = self.items(sight, 4);
            let mut inner = Select::of(named(items), from);
            inner.filter = Some(self.condition(sight, 1));
            let inner = Query::select(inner);
            let name = format!("w{}", self.names);
            let alias = self.alias();
            let sight = vec![(alias.clone(), inner.columns())];
            let items = self.items(&sight, 4);
            let from = From::Relation(name.clone(), alias);
            let mut outer = Query::select(Select::of(named(items), from));
            outer.with.push((name, inner));
            return outer;
        }
        let exprs = self.items(sight, 4);
        let distinct = self.once_in(6) && exprs.iter().all(|expr| keys(expr.kind()));
        let mut select = Select::of(named(exprs), from);
        if distinct {
            select.distinct = Distinct::Rows;
        }
        if self.once_in(3) {
            select.filter = Some(self.condition(sight, 2));
        }
        Query::select(select)
    }

    /// UNION, INTERSECT or EXCEPT, with or without ALL, of two or three queries.
    pub(super) fn set_operation(&mut self) -> Query {
        let kinds: Vec<Kind> = (0..1 + self.below(2))
            .map(|_| {
                let often = if self.has_nan { Kind::Real } else { Kind::Integer };
                self.one_of(&[
                    often,
                    Kind::Integer,
                    Kind::Text,
                    Kind::Text,
                    Kind::Big,
                    Kind::Real,
                    Kind::Moment,
                    Kind::List,
                ])
            })
            .collect();
        let mut query = self.side(&kinds);
        for _ in 0..1 + usize::from(self.once_in(4)) {
            let other = self.side(&kinds);
            let operation =
                self.one_of(&[SetOperation::Union, SetOperation::Intersect, SetOperation::Except]);
            let all = self.once_in(2);
            let body = Body::Set(operation, all, Box::new(query), Box::new(other));
            query = Query { with: Vec::new(), body, top: None };
        }
        query
    }

    fn side(&mut self, kinds: &[Kind]) -> Query {
        let (from, sight, _) = self.relation(40.0);
        let exprs: Vec<Expr> = kinds
            .iter()
            .map(|kind| match self.column(&sight, |other| other == *kind) {
                Some(column) => column,
                None => Expr::Cast(Box::new(self.constant(*kind)), *kind, false),
            })
            .collect();
        let mut select = Select::of(named(exprs), from);
        if self.once_in(3) {
            select.filter = Some(self.condition(&sight, 1));
        }
        Query::select(select)
    }
}
