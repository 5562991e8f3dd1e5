//! Generating subqueries, and LATERAL, that refer to what is around them in any way.

use super::aggregate::{count, plain};
use super::{Maker, Sight, keys, named, sorts};
use crate::query::{
    Body, Distinct, Expr, From, Group, Join, JoinKind, Kind, Op, Query, Select, SetOperation, Top,
};

impl Maker {
    /// A query whose items, conditions or relations depend on its rows.
    pub(super) fn with_correlated(&mut self, from: From, sight: &Sight) -> Query {
        let mut exprs = self.items(sight, 2);
        match self.below(7) {
            0..4 => {
                let kind = self.one_of(&[Kind::Integer, Kind::Text]);
                let alias = self.alias();
                let query = self.dependent(sight, kind, 1);
                exprs.push(Expr::Column(alias.clone(), "c0".to_owned(), query.columns()[0].1));
                if self.once_in(2) {
                    exprs.push(self.dependent_truth(sight, 1));
                }
                let keeps_left = self.once_in(2);
                let from = From::Lateral(Box::new(from), Box::new(query), alias, keeps_left);
                Query::select(Select::of(named(exprs), from))
            }
            4 => {
                let kind = self.one_of(&[Kind::Integer, Kind::Text, Kind::Big]);
                exprs.push(self.dependent_value(sight, kind));
                Query::select(Select::of(named(exprs), from))
            }
            5 => {
                exprs.push(self.dependent_truth(sight, 2));
                Query::select(Select::of(named(exprs), from))
            }
            _ => {
                let mut select = Select::of(named(exprs), from);
                select.filter = Some(match self.once_in(3) {
                    true => {
                        let value = self.dependent_value(sight, Kind::Integer);
                        let op = self.comparison();
                        Expr::binary(value, op, Expr::whole(self.below(4) as i64))
                    }
                    false => self.dependent_truth(sight, 2),
                });
                Query::select(select)
            }
        }
    }

    /// EXISTS, or IN.
    fn dependent_truth(&mut self, outer: &Sight, depth: usize) -> Expr {
        let not = self.once_in(2);
        let kind = self.one_of(&[Kind::Integer, Kind::Text]);
        let value = self.column(outer, |other| other == kind);
        let query = Box::new(self.dependent(outer, kind, depth));
        match value {
            Some(value) if query.columns()[0].1 == kind && self.once_in(2) => {
                Expr::Among(Box::new(value), query, not)
            }
            _ => Expr::Exists(query, not),
        }
    }

    /// A scalar subquery of at most one row, mostly.
    fn dependent_value(&mut self, outer: &Sight, kind: Kind) -> Expr {
        let mut query = self.dependent(outer, kind, 2);
        let has_group = match &query.body {
            Body::Select(select) => select.group != Group::None,
            Body::Set(..) => true,
        };
        let is_aggregate = matches!(&query.body, Body::Select(select)
            if matches!(select.items[0].expr, Expr::Aggregate(_)));
        match &mut query.top {
            Some(top) => top.limit = 1,
            None if is_aggregate && !has_group => {}
            None if self.once_in(8) => {}
            top => {
                *top = Some(Top {
                    order: vec![(0, false, false)],
                    limit: 1,
                    offset: 0,
                    with_ties: false,
                })
            }
        }
        let kind = query.columns()[0].1;
        Expr::Scalar(Box::new(query), kind)
    }

    /// A query of one column, whose rows depend on those of `outer`.
    fn dependent(&mut self, outer: &Sight, kind: Kind, depth: usize) -> Query {
        let (mut from, mut sight, _) = self.relation(25.0);
        if self.once_in(6) {
            let (other, other_sight, _) = self.relation(15.0);
            let on = self.pair(&sight, &other_sight, Op::Equal);
            if let Some(on) = on {
                let kind = self.one_of(&[JoinKind::Inner, JoinKind::Left]);
                let (left, right) = (from, other);
                let join = Join { kind, left, right, on: Some(on), using: Vec::new() };
                from = From::Join(Box::new(join));
                sight.extend(other_sight);
            }
        }
        let own = self.column(&sight, |other| other == kind);
        let (value, is_outer) = match self.column(outer, |other| other == kind) {
            Some(outer) if own.is_none() || self.once_in(6) => (outer, true),
            _ => (own.unwrap_or_else(|| self.constant(kind)), false),
        };
        let mut conditions = Vec::new();
        for _ in 0..1 + self.below(2) {
            let op = match self.below(6) {
                0..3 => Op::Equal,
                3 => self.one_of(&[Op::Same, Op::Differs]),
                _ => self.comparison(),
            };
            conditions.extend(self.pair(outer, &sight, op));
        }
        if depth > 0 && self.once_in(3) {
            let both: Sight = sight.iter().chain(outer).cloned().collect();
            conditions.push(self.dependent_truth(&both, depth - 1));
        }
        let mut select = Select::of(named(vec![value.clone()]), from);
        let op = if self.once_in(5) { Op::Or } else { Op::And };
        select.filter = conditions.into_iter().reduce(|left, right| Expr::binary(left, op, right));
        let can_sort = sorts(kind);
        match self.below(9) {
            0 | 1 => {
                // An aggregate of columns outside belongs to the query outside.
                let aggregate = match self.below(if is_outer { 1 } else { 3 }) {
                    0 => count(),
                    1 => plain("min", value, kind),
                    _ => plain("max", value, kind),
                };
                select.items = named(vec![Expr::Aggregate(Box::new(aggregate))]);
                if self.once_in(5) {
                    let rows = Expr::Aggregate(Box::new(count()));
                    select.having = Some(Expr::binary(rows, Op::Greater, Expr::whole(1)));
                }
                Query::select(select)
            }
            2 | 3 if can_sort => {
                let mut query = Query::select(select);
                let order = vec![(0, self.once_in(2), self.once_in(2))];
                let (limit, offset) = (1 + self.below(2) as u64, self.below(2) as u64);
                query.top = Some(Top { order, limit, offset, with_ties: false });
                query
            }
            4 if keys(kind) => {
                select.distinct = Distinct::Rows;
                Query::select(select)
            }
            5 if matches!(value, Expr::Column(..)) => {
                select.group = Group::Keys(vec![value]);
                let rows = Expr::Aggregate(Box::new(count()));
                select.having = Some(Expr::binary(rows, Op::Greater, Expr::whole(1)));
                Query::select(select)
            }
            6 if depth > 0 => {
                let other = self.dependent(outer, kind, 0);
                let mine = Query::select(select);
                if other.top.is_some() || other.columns()[0].1 != kind {
                    return mine;
                }
                let operation = self.one_of(&[
                    SetOperation::Union,
                    SetOperation::Intersect,
                    SetOperation::Except,
                ]);
                let body = Body::Set(operation, self.once_in(2), Box::new(mine), Box::new(other));
                Query { with: Vec::new(), body, top: None }
            }
            7 => {
                select.distinct = Distinct::Rows;
                let alias = self.alias();
                let column = Expr::Column(alias.clone(), "c0".to_owned(), kind);
                let inner = From::Derived(Box::new(Query::select(select)), alias);
                let aggregate = plain("count", column, Kind::Big);
                let items = named(vec![Expr::Aggregate(Box::new(aggregate))]);
                Query::select(Select::of(items, inner))
            }
            _ => Query::select(select),
        }
    }
}
