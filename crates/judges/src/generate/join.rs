//! Generating trees of joins, up to depth four.

use super::{Maker, Sight, keys, named};
use crate::query::{Expr, From, Join, JoinKind, Kind, Op, Query, Select};

/// The largest number of rows that a tree may be expected to have.
const MOST: f64 = 600.0;

impl Maker {
    /// A join of at most `most` relations.
    pub(super) fn tree(&mut self, relations: usize) -> (From, Sight, f64) {
        let relations = 2 + self.below(relations - 1);
        let (mut from, mut sight, mut size) = self.relation(40.0);
        for _ in 1..relations {
            let most = (MOST / size.max(1.0) * 3.0).max(14.0);
            let (right, right_sight, right_size) = match self.once_in(8) {
                true => self.derived(most.min(40.0)),
                false => self.relation(most.min(40.0)),
            };
            if self.once_in(10)
                && let Some(on) = self.asof_on(&sight, &right_sight)
            {
                (from, sight) = self.asof_joined((from, sight), (right, right_sight), on);
                continue;
            }
            let kind = self.one_of(&[
                JoinKind::Inner,
                JoinKind::Inner,
                JoinKind::Inner,
                JoinKind::Inner,
                JoinKind::Inner,
                JoinKind::Inner,
                JoinKind::Left,
                JoinKind::Left,
                JoinKind::Right,
                JoinKind::Right,
                JoinKind::Full,
                JoinKind::Full,
                JoinKind::Cross,
                JoinKind::Cross,
                JoinKind::LeftSemi,
                JoinKind::LeftSemi,
                JoinKind::LeftAnti,
                JoinKind::LeftAnti,
                JoinKind::RightSemi,
                JoinKind::RightSemi,
                JoinKind::RightAnti,
                JoinKind::RightAnti,
            ]);
            let is_cross = kind == JoinKind::Cross;
            if is_cross && size * right_size > MOST {
                continue;
            }
            let on = (!is_cross).then(|| self.on(&sight, &right_sight));
            let using = match kind {
                JoinKind::Inner | JoinKind::Left if self.once_in(2) => {
                    self.using(&sight, &right_sight)
                }
                _ => None,
            };
            let (on, using) = match using {
                Some((on, name)) => (Some(on), vec![name]),
                None => (on, Vec::new()),
            };
            // Swapped, so that the tree is on the right.
            let turned = !kind.is_filter() && using.is_empty() && self.once_in(8);
            match kind {
                JoinKind::LeftSemi | JoinKind::LeftAnti => {}
                JoinKind::RightSemi | JoinKind::RightAnti => {
                    sight = right_sight;
                    size = right_size;
                }
                JoinKind::Cross => {
                    sight.extend(right_sight);
                    size *= right_size;
                }
                _ => {
                    sight.extend(right_sight);
                    size = (size * right_size / 4.0).max(size).max(right_size);
                }
            }
            let (left, right) = if turned { (right, from) } else { (from, right) };
            from = From::Join(Box::new(Join { kind, left, right, on, using }));
        }
        (from, sight, size)
    }

    fn on(&mut self, left: &Sight, right: &Sight) -> Expr {
        let op = self.one_of(&[Op::Equal, Op::Equal, Op::Equal, Op::Equal, Op::Same]);
        let equal = self.pair(left, right, op);
        let mut on = match equal {
            Some(equal) if !self.once_in(12) => equal,
            // Joins without an equality of columns.
            _ => {
                let op = self.one_of(&[Op::Less, Op::GreaterEqual, Op::Unequal]);
                match self.pair(left, right, op) {
                    Some(on) => on,
                    None => self.condition(right, 0),
                }
            }
        };
        if self.once_in(6)
            && let Some(more) = self.pair(left, right, Op::Equal)
        {
            on = Expr::binary(on, Op::And, more);
        }
        if !self.once_in(3) {
            let residual = match self.below(4) {
                0 => self.condition(right, 0),
                1 => self.condition(left, 0),
                _ => {
                    let op = self.comparison();
                    let pair = self.pair(left, right, op);
                    pair.unwrap_or_else(|| self.condition(left, 0))
                }
            };
            on = Expr::binary(on, Op::And, residual);
        }
        on
    }

    /// Rows of a relation or a join with the nearest rows of one or two others.
    pub(super) fn nearest_rows(&mut self) -> Option<(From, Sight, f64)> {
        let (mut from, mut sight, size) = match self.once_in(4) {
            true => self.tree(2),
            false => self.relation(60.0),
        };
        for _ in 0..1 + usize::from(self.once_in(4)) {
            let (right, right_sight, _) = self.relation(40.0);
            let (right, right_sight) = self.sorting(right, right_sight)?;
            let on = self.asof_on(&sight, &right_sight)?;
            (from, sight) = self.asof_joined((from, sight), (right, right_sight), on);
        }
        Some((from, sight, size))
    }

    fn asof_joined(
        &mut self,
        (left, mut sight): (From, Sight),
        (right, right_sight): (From, Sight),
        on: Expr,
    ) -> (From, Sight) {
        let kind = self.one_of(&[JoinKind::Asof, JoinKind::LeftAsof]);
        sight.extend(right_sight);
        let join = Join { kind, left, right, on: Some(on), using: Vec::new() };
        (From::Join(Box::new(join)), sight)
    }

    /// A relation without columns that do not sort, if others are left.
    fn sorting(&mut self, from: From, sight: Sight) -> Option<(From, Sight)> {
        let columns = Self::columns(&sight, super::sorts);
        if columns.is_empty() {
            return None;
        }
        let alias = self.alias();
        let query = Query::select(Select::of(named(columns), from));
        let sight = vec![(alias.clone(), query.columns())];
        Some((From::Derived(Box::new(query), alias), sight))
    }

    /// The condition of an ASOF join, if both sides have something like a time, and rows of the right side sort.
    pub(super) fn asof_on(&mut self, left: &Sight, right: &Sight) -> Option<Expr> {
        let is_time = |kind: Kind| {
            !matches!(kind, Kind::Boolean | Kind::Text | Kind::Bytes) && super::sorts(kind)
        };
        if right.iter().flat_map(|(_, columns)| columns).any(|(_, kind)| !super::sorts(*kind)) {
            return None;
        }
        let there = self.column(right, is_time)?;
        let here = self.column(left, |kind| kind == there.kind())?;
        self.asof(left, right, here, there)
    }

    /// The condition of an ASOF join by these times.
    pub(super) fn asof(
        &mut self,
        left: &Sight,
        right: &Sight,
        here: Expr,
        there: Expr,
    ) -> Option<Expr> {
        let op = self.one_of(&[
            Op::GreaterEqual,
            Op::GreaterEqual,
            Op::Greater,
            Op::LessEqual,
            Op::Less,
        ]);
        let time = Expr::binary(here, op, there);
        let mut on = match self.once_in(6) {
            true => return Some(time),
            false => self.pair(left, right, Op::Equal)?,
        };
        if self.once_in(6)
            && let Some(more) = self.pair(left, right, Op::Equal)
        {
            on = Expr::binary(on, Op::And, more);
        }
        Some(Expr::binary(on, Op::And, time))
    }

    /// A comparison of a column of each side, of the same type.
    pub(super) fn pair(&mut self, left: &Sight, right: &Sight, op: Op) -> Option<Expr> {
        // The first columns have values in common.
        let kind = match self.once_in(if self.has_nan { 2 } else { 3 }) {
            true => self.column(right, keys)?.kind(),
            false => right[0].1.first()?.1,
        };
        let fits = |other: Kind| other == kind && keys(kind);
        let (a, b) = (self.column(left, fits)?, self.column(right, fits)?);
        let orders = !matches!(op, Op::Equal | Op::Same | Op::Unequal | Op::Differs);
        (!orders || super::sorts(kind)).then(|| Expr::binary(a, op, b))
    }

    /// A column that both sides have with the same name and type, unambiguous on the left.
    fn using(&mut self, left: &Sight, right: &Sight) -> Option<(Expr, String)> {
        let (alias, columns) = &right[0];
        let both = columns.iter().find(|(name, kind)| {
            let same = left.iter().flat_map(|(_, columns)| columns);
            same.clone().filter(|(other, _)| other == name).count() == 1
                && same.clone().any(|(other, kind_there)| other == name && kind_there == kind)
                && keys(*kind)
        })?;
        let owner = left.iter().find(|(_, columns)| columns.contains(both))?;
        let column = |alias: &str| Expr::Column(alias.to_owned(), both.0.clone(), both.1);
        Some((Expr::binary(column(&owner.0), Op::Equal, column(alias)), both.0.clone()))
    }
}
