//! Generating comparisons with values that move: aggregates of other rows.

use super::aggregate::{count, plain};
use super::{Maker, Sight, named, sorts};
use crate::query::{Aggregate, Expr, From, Group, Join, JoinKind, Kind, Op, Query, Select};

impl Maker {
    /// Rows above or below an aggregate of all rows of a relation, of their group, or of a table of them, or between two.
    pub(super) fn beside_thresholds(&mut self, from: From, sight: &Sight) -> Option<Query> {
        let numeric = |kind: Kind| matches!(kind, Kind::Integer | Kind::Big | Kind::Real);
        let value = match self.once_in(5) {
            false => self.column(sight, numeric)?,
            true => self.column(sight, sorts)?,
        };
        let items = self.items(sight, 3);
        let op = self.inequality();
        let mut condition = match self.below(9) {
            0 | 1 => {
                let threshold = self.threshold(value.kind(), None)?;
                Expr::binary(value, op, threshold)
            }
            2..5 => {
                let low = self.threshold(value.kind(), None)?;
                let high = self.threshold(value.kind(), None)?;
                Expr::Between(Box::new(value), Box::new(low), Box::new(high), self.once_in(4))
            }
            5 | 6 => {
                let threshold = self.threshold(value.kind(), Some(sight))?;
                Expr::binary(value, op, threshold)
            }
            _ => return self.joined_with_thresholds(from, sight, value),
        };
        // Beside another one, of each group.
        if self.once_in(3)
            && let Some(value) = self.column(sight, numeric)
            && let Some(threshold) = self.threshold(value.kind(), Some(sight))
        {
            condition = Expr::binary(condition, Op::And, Expr::binary(value, op, threshold));
        }
        let mut select = Select::of(named(items), from);
        select.filter = Some(self.beside_rows(sight, condition));
        Some(Query::select(select))
    }

    /// A condition, mostly beside one that asks for a row of values.
    fn beside_rows(&mut self, sight: &Sight, condition: Expr) -> Expr {
        let other = match self.once_in(8) {
            false => self.row_among(sight),
            true => Some(self.condition(sight, 0)),
        };
        match other {
            Some(other) if self.once_in(5) => Expr::binary(condition, Op::Or, other),
            Some(other) => Expr::binary(condition, Op::And, other),
            None => condition,
        }
    }

    /// Rows with each of a few thresholds that they are beyond.
    fn joined_with_thresholds(&mut self, from: From, sight: &Sight, value: Expr) -> Option<Query> {
        let (other, other_sight, _) = self.relation(20.0);
        let aggregate = self.extreme(&other_sight, value.kind())?;
        let mut exprs = vec![Expr::Aggregate(Box::new(aggregate))];
        let key = match self.once_in(2) {
            true => self.column(&other_sight, sorts),
            false => None,
        };
        exprs.extend(key.clone());
        let mut select = Select::of(named(exprs), other);
        select.group = key.map_or(Group::None, |key| Group::Keys(vec![key]));
        let query = Query::select(select);
        let alias = self.alias();
        let (name, kind) = query.columns()[0].clone();
        let threshold = Expr::Column(alias.clone(), name, kind);
        let right = From::Derived(Box::new(query), alias);
        let op = self.inequality();
        let on = Some(Expr::binary(value, op, threshold.clone()));
        let kind = self.one_of(&[JoinKind::Inner, JoinKind::Inner, JoinKind::Left]);
        let mut items = self.items(sight, 2);
        items.push(threshold);
        let join = Join { kind, left: from, right, on, using: Vec::new() };
        let mut select = Select::of(named(items), From::Join(Box::new(join)));
        select.filter = self.row_among(sight);
        Some(Query::select(select))
    }

    fn inequality(&mut self) -> Op {
        self.one_of(&[Op::Less, Op::LessEqual, Op::Greater, Op::GreaterEqual])
    }

    /// An aggregate of a relation that can be compared with a type; of those rows alone that have a value in common with a row
    /// outside, if one is given.
    fn threshold(&mut self, kind: Kind, outer: Option<&Sight>) -> Option<Expr> {
        let (other, other_sight, _) = self.relation(25.0);
        let aggregate = self.extreme(&other_sight, kind)?;
        let of = aggregate.kind;
        let mut select = Select::of(named(vec![Expr::Aggregate(Box::new(aggregate))]), other);
        if let Some(outer) = outer {
            select.filter = Some(self.pair(outer, &other_sight, Op::Equal)?);
        }
        Some(Expr::Scalar(Box::new(Query::select(select)), of))
    }

    /// An aggregate whose value can be compared with a type.
    fn extreme(&mut self, sight: &Sight, kind: Kind) -> Option<Aggregate> {
        let is_number = matches!(kind, Kind::Integer | Kind::Big | Kind::Real);
        if is_number && self.once_in(8) {
            return Some(count());
        }
        let column = self.column(sight, |other| match is_number {
            true => matches!(other, Kind::Integer | Kind::Big | Kind::Real),
            false => other == kind,
        })?;
        let kind = column.kind();
        let function = match is_number {
            true => self.one_of(&["avg", "avg", "min", "max"]),
            false => self.one_of(&["min", "max"]),
        };
        Some(plain(function, column, if function == "avg" { Kind::Real } else { kind }))
    }
}
