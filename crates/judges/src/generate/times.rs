//! Generating expressions of dates and times: clocks of zones, sums with lengths of time, and differences.

use super::aggregate::{count, plain};
use super::{Maker, Sight, named, sorts};
use crate::query::{
    Expr, From, Function, Group, Join, JoinKind, Kind, Length, Op, Query, Select, Value, Zone,
};

/// Months, days and seconds.
const LENGTHS: [(i64, i64, i64); 9] = [
    (1, 0, 0),
    (-1, 0, 0),
    (13, 0, 0),
    (0, 1, 0),
    (0, 30, 0),
    (1, 2, 3_600),
    (0, 0, -5_400),
    (12, 0, 0),
    (-11, -5, 0),
];

/// From the first day of January to the hours that the clocks of a zone leave out or show twice: days and seconds.
const CHANGES: [(i64, i64, Zone); 4] = [
    (90, 9_000, Zone::Berlin),
    (300, 9_000, Zone::Berlin),
    (69, 7_200, Zone::NewYork),
    (307, 3_600, Zone::NewYork),
];

impl Maker {
    pub(super) fn length(&mut self) -> Length {
        let (months, days, seconds) = self.one_of(&LENGTHS);
        Length { months, days, seconds }
    }

    pub(super) fn zone(&mut self) -> Zone {
        self.one_of(&Zone::ALL)
    }

    /// Rows of a relation with expressions of its times, as a query in FROM; these come first.
    pub(super) fn timely(&mut self, most: f64) -> Option<(From, Sight, f64)> {
        let kind = self.one_of(&[
            Kind::Zoned,
            Kind::Zoned,
            Kind::Zoned,
            Kind::Zoned,
            Kind::Date,
            Kind::Date,
            Kind::Moment,
        ]);
        let (source, column) = self.with_column(kind)?;
        if source.size > most {
            return None;
        }
        let alias = self.alias();
        let sight: Sight = vec![(alias.clone(), source.columns)];
        let column = Expr::Column(alias.clone(), column, kind);
        let mut exprs = self.of_times(&column, kind);
        self.rng.shuffle(&mut exprs);
        exprs.truncate(2);
        for _ in 0..1 + self.below(2) {
            exprs.extend(self.column(&sight, sorts));
        }
        let select = Select::of(named(exprs), From::Relation(source.name, alias));
        let query = Query::select(select);
        let alias = self.alias();
        let sight = vec![(alias.clone(), query.columns())];
        Some((From::Derived(Box::new(query), alias), sight, source.size))
    }

    /// A query over expressions of times: by groups, in windows, joined, or the rows themselves.
    pub(super) fn over_times(&mut self) -> Option<(Query, f64)> {
        let (from, sight, size) = self.timely(40.0)?;
        let (alias, columns) = sight[0].clone();
        let first = Expr::Column(alias, columns[0].0.clone(), columns[0].1);
        match self.below(11) {
            0..4 => {
                let mut exprs = vec![first.clone(), Expr::Aggregate(Box::new(count()))];
                if let Some(other) = self.column(&sight, sorts) {
                    let kind = other.kind();
                    exprs.push(Expr::Aggregate(Box::new(plain("max", other, kind))));
                }
                let mut select = Select::of(named(exprs), from);
                select.group = Group::Keys(vec![first]);
                if self.once_in(3) {
                    select.filter = Some(self.condition(&sight, 0));
                }
                Some((Query::select(select), size / 2.0))
            }
            4..8 => Some((self.windows(from, &sight), size)),
            8 | 9 => self.joined_by_clocks(),
            _ => {
                let mut exprs = Self::columns(&sight, |_| true);
                exprs.truncate(4);
                let mut select = Select::of(named(exprs), from);
                if self.once_in(2) {
                    select.filter = Some(self.condition(&sight, 1));
                }
                Some((Query::select(select), size))
            }
        }
    }

    /// Rows that have a day, or an hour, on the clocks of two zones in common.
    fn joined_by_clocks(&mut self) -> Option<(Query, f64)> {
        let by_day = self.once_in(2);
        let (left, mut sight, size, here) = self.clocked(by_day)?;
        let (right, right_sight, right_size, there) = self.clocked(by_day)?;
        sight.extend(right_sight);
        let on = Some(Expr::binary(here, Op::Equal, there));
        let kind = self.one_of(&[JoinKind::Inner, JoinKind::Left, JoinKind::Full]);
        let items = self.items(&sight, 4);
        let join = Join { kind, left, right, on, using: Vec::new() };
        let select = Select::of(named(items), From::Join(Box::new(join)));
        Some((Query::select(select), size * right_size / 4.0))
    }

    /// Rows with the day or the hour on the clocks of a zone, as a query in FROM, and that column.
    fn clocked(&mut self, by_day: bool) -> Option<(From, Sight, f64, Expr)> {
        let (source, column) = self.with_column(Kind::Zoned)?;
        let alias = self.alias();
        let sight: Sight = vec![(alias.clone(), source.columns)];
        let instant = Expr::Column(alias.clone(), column, Kind::Zoned);
        let clock = Expr::AtZone(Box::new(instant), self.zone());
        let mut exprs = vec![match by_day {
            true => Expr::Cast(Box::new(clock), Kind::Date, false),
            false => Expr::Call(Function::TruncateHour, vec![clock]),
        }];
        for _ in 0..2 {
            exprs.extend(self.column(&sight, |_| true));
        }
        let from = From::Relation(source.name, alias);
        let query = Query::select(Select::of(named(exprs), from));
        let (alias, columns) = (self.alias(), query.columns());
        let first = Expr::Column(alias.clone(), columns[0].0.clone(), columns[0].1);
        let from = From::Derived(Box::new(query), alias.clone());
        Some((from, vec![(alias, columns)], source.size, first))
    }

    /// Expressions of a column of times.
    pub(super) fn of_times(&mut self, column: &Expr, kind: Kind) -> Vec<Expr> {
        let boxed = |expr: &Expr| Box::new(expr.clone());
        let call = |function, expr: &Expr| Expr::Call(function, vec![expr.clone()]);
        let cast = |expr: &Expr, kind| Expr::Cast(boxed(expr), kind, false);
        let (length, zone, other) = (self.length(), self.zone(), self.zone());
        match kind {
            Kind::Date => {
                let moved = Expr::Move(boxed(column), length);
                let days = self.one_of(&[1, -1, 28, -400, 3]);
                let days = Expr::Days(boxed(column), days);
                vec![
                    call(Function::Day, &days),
                    call(Function::TruncateMonth, &moved),
                    Expr::Apart(boxed(column), Box::new(self.constant(kind))),
                    Expr::Apart(boxed(&days), boxed(column)),
                    Expr::AtZone(Box::new(cast(column, Kind::Moment)), zone),
                    days.clone(),
                    days,
                    moved.clone(),
                    moved,
                ]
            }
            Kind::Zoned => {
                let clock = Expr::AtZone(boxed(column), zone);
                vec![
                    call(Function::Hour, &clock),
                    call(Function::Day, &clock),
                    call(Function::TruncateDay, &clock),
                    call(Function::TruncateHour, &clock),
                    cast(&clock, Kind::Date),
                    cast(&clock, Kind::Date),
                    cast(&clock, Kind::Clock),
                    cast(&clock, Kind::Text),
                    Expr::AtZone(boxed(&clock), other),
                    Expr::Move(boxed(&clock), length),
                    Expr::Move(boxed(column), length),
                    Expr::Apart(boxed(column), Box::new(self.constant(kind))),
                    clock.clone(),
                    clock,
                ]
            }
            _ => {
                let (days, seconds, changed) = self.one_of(&CHANGES);
                let near = Expr::Move(boxed(column), Length { months: 0, days, seconds });
                vec![
                    Expr::AtZone(boxed(&near), changed),
                    Expr::AtZone(boxed(&near), zone),
                    Expr::AtZone(Box::new(Expr::AtZone(boxed(&near), changed)), other),
                    Expr::Move(boxed(column), length),
                    Expr::Apart(boxed(&near), Box::new(self.constant(kind))),
                    call(Function::Hour, &near),
                    cast(&near, Kind::Clock),
                    Expr::AtZone(boxed(column), zone),
                ]
            }
        }
    }

    /// A condition that compares a time that is computed from a column.
    pub(super) fn of_time(&mut self, column: &Expr) -> Expr {
        let exprs = self.of_times(column, column.kind());
        let expr = self.one_of(&exprs);
        let constant = match expr.kind() {
            Kind::Text => Expr::literal(Value::Text("2024-04".to_owned()), Kind::Text),
            kind => self.constant(kind),
        };
        let op = self.comparison();
        Expr::binary(expr, op, constant)
    }
}
