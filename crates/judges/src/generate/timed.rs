//! Generating queries whose state can be pruned: over the times of tables that have lateness.

use super::aggregate::{count, plain};
use super::{Maker, Sight, Source, named, sorts};
use crate::query::{
    Body, Bound, Expr, Frame, From, Group, Join, JoinKind, Kind, Op, Query, Select, SetOperation,
    Span, Units, Value, Window,
};

/// A relation with an alias, and its time.
struct Timed {
    from: From,
    sight: Sight,
    time: Expr,
    /// The columns of its primary key.
    key: Vec<Expr>,
}

impl Maker {
    /// A query of such tables; `None` if there are none.
    pub(super) fn timed(&mut self) -> Option<Query> {
        let one = self.table_with_time(|_| true)?;
        let kind = one.time.kind();
        let other = self.table_with_time(|other| other == kind)?;
        // Intervals that end at another time of the row are rare, and only some of their pairs may be forgotten.
        let ends = Self::interval_ends(&one);
        let kinds = if ends.is_empty() { 11 } else { 16 };
        Some(match self.below(kinds) {
            0 | 1 => self.band(one, other),
            2 => self.same_time(one, other),
            3 => self.union_by_time(&one, &other),
            4 => self.set_operation_by_time(&one, &other),
            5 | 6 if kind == Kind::Moment => self.sessions(one),
            7 | 8 if kind == Kind::Moment => self.recent_by_time(one),
            9 => self.nearest(one, other),
            11.. => self.by_end(one, other, &ends),
            _ => {
                let Timed { from, sight, time, .. } = one;
                match kind.is_whole() && self.once_in(2) {
                    true => self.in_ranges(from, &sight, time),
                    false => self.by_time(from, &sight, time),
                }
            }
        })
    }

    fn table_with_time(&mut self, fits: impl Fn(Kind) -> bool) -> Option<Timed> {
        let fitting = |source: &&Source| source.time.as_ref().is_some_and(|(_, kind)| fits(*kind));
        let sources: Vec<Source> = self.sources.iter().filter(fitting).cloned().collect();
        if sources.is_empty() {
            return None;
        }
        let source = self.one_of(&sources);
        let alias = self.alias();
        let column = |(name, kind)| Expr::Column(alias.clone(), name, kind);
        Some(Timed {
            time: column(source.time?),
            key: source.key.into_iter().map(column).collect(),
            sight: vec![(alias.clone(), source.columns)],
            from: From::Relation(source.name, alias),
        })
    }

    /// Sessions of a key, or groups of them.
    fn sessions(&mut self, one: Timed) -> Query {
        let Timed { from, mut sight, time, .. } = one;
        let keys = sight.iter().flat_map(|(_, columns)| columns);
        let keys = keys.filter(|column| sorts(column.1) && column.1 != Kind::Moment);
        let keys: Vec<String> = keys.map(|column| column.0.clone()).collect();
        let (From::Relation(name, alias), Expr::Column(_, by, kind), false) =
            (&from, &time, keys.is_empty())
        else {
            return self.by_time(from, &sight, time);
        };
        let span = Span::Session(self.one_of(&keys), self.one_of(&[5, 20, 60]));
        let from = From::Windowed(name.clone(), alias.clone(), by.clone(), span);
        let [start, end] = ["window_start", "window_end"]
            .map(|bound| Expr::Column(alias.clone(), bound.to_owned(), *kind));
        sight.iter_mut().for_each(|(_, columns)| {
            columns.extend(["window_start", "window_end"].map(|bound| (bound.to_owned(), *kind)));
        });
        match self.below(3) {
            0 => self.by_time(from, &sight, end),
            1 => self.by_time(from, &sight, start),
            _ => {
                let mut exprs = self.items(&sight, 3);
                exprs.extend([start, end]);
                Query::select(Select::of(named(exprs), from))
            }
        }
    }

    /// Rows that come into view and leave it as time passes, or groups of them.
    fn recent_by_time(&mut self, one: Timed) -> Query {
        let Timed { from, sight, time, .. } = one;
        let moments = self.column(&sight, |kind| kind == Kind::Moment);
        let filter = match self.once_in(3) {
            true => self.recent(&moments.unwrap_or_else(|| time.clone())),
            false => self.recent(&time),
        };
        let mut query = match self.once_in(2) {
            true => self.by_time(from, &sight, time),
            false => Query::select(Select::of(named(self.items(&sight, 4)), from)),
        };
        if let Body::Select(select) = &mut query.body {
            select.filter = Some(filter);
        }
        query
    }

    /// Pairs whose times are close to each other, or groups of such pairs.
    fn band(&mut self, one: Timed, other: Timed) -> Query {
        let least = Expr::binary(
            self.moved(other.time.clone()),
            self.one_of(&[Op::GreaterEqual, Op::Greater]),
            self.moved(one.time.clone()),
        );
        // Until a time that is computed, or another one of the row.
        let ends = Self::interval_ends(&one);
        let end = match !ends.is_empty() && !self.once_in(3) {
            true => Some(self.one_of(&ends)),
            false => None,
        };
        let end = end.unwrap_or_else(|| self.moved(one.time.clone()));
        let most =
            Expr::binary(self.moved(other.time), self.one_of(&[Op::LessEqual, Op::Less]), end);
        let mut on = match self.once_in(4) {
            true => self.one_of(&[least, most]),
            false => Expr::binary(least, Op::And, most),
        };
        if !self.once_in(4)
            && let Some(equal) = self.pair(&one.sight, &other.sight, Op::Equal)
        {
            on = Expr::binary(equal, Op::And, on);
        }
        let kind = match self.once_in(2) {
            true => JoinKind::Inner,
            false => self.one_of(&[
                JoinKind::Left,
                JoinKind::Right,
                JoinKind::Full,
                JoinKind::LeftSemi,
                JoinKind::LeftAnti,
            ]),
        };
        let from = joined(kind, one.from, other.from, on);
        let mut sight = one.sight;
        if !kind.is_filter() {
            sight.extend(other.sight);
        }
        if self.once_in(3) {
            return match !one.key.is_empty() && self.once_in(2) {
                true => self.by(one.key, from, &sight),
                false => self.by_time(from, &sight, one.time),
            };
        }
        Query::select(Select::of(named(self.items(&sight, 4)), from))
    }

    /// The columns that can be the end of what begins at the time of a row.
    fn interval_ends(one: &Timed) -> Vec<Expr> {
        let kind = one.time.kind();
        let mut ends = Self::columns(&one.sight, |other| other == kind);
        ends.retain(|end| *end != one.time);
        ends
    }

    /// Groups by the end of an interval, of its pairs and of rows without any: the end of a pair is not before the time of
    /// its other row, and that of a row without a pair may be at any time.
    fn by_end(&mut self, one: Timed, other: Timed, ends: &[Expr]) -> Query {
        let end = self.one_of(ends);
        let begun = Expr::binary(other.time.clone(), Op::GreaterEqual, one.time);
        let mut on =
            Expr::binary(begun, Op::And, Expr::binary(other.time, Op::LessEqual, end.clone()));
        if self.once_in(2)
            && let Some(equal) = self.pair(&one.sight, &other.sight, Op::Equal)
        {
            on = Expr::binary(equal, Op::And, on);
        }
        let kind = self.one_of(&[JoinKind::Left, JoinKind::Full, JoinKind::LeftAnti]);
        let from = joined(kind, one.from, other.from, on);
        let mut sight = one.sight;
        if !kind.is_filter() {
            sight.extend(other.sight);
        }
        self.by(vec![end], from, &sight)
    }

    /// Rows with the nearest one of another table.
    fn nearest(&mut self, one: Timed, other: Timed) -> Query {
        let mut columns = other.sight.iter().flat_map(|(_, columns)| columns);
        let all_sort = columns.all(|(_, kind)| super::sorts(*kind));
        let (here, there) = (one.time.clone(), other.time.clone());
        let on = match all_sort {
            true => self.asof(&one.sight, &other.sight, here, there),
            false => None,
        };
        let Some(on) = on else { return self.same_time(one, other) };
        let kind = self.one_of(&[JoinKind::Asof, JoinKind::LeftAsof]);
        let from = joined(kind, one.from, other.from, on);
        let mut sight = one.sight;
        sight.extend(other.sight);
        match self.once_in(3) {
            true => self.by_time(from, &sight, one.time),
            false => Query::select(Select::of(named(self.items(&sight, 4)), from)),
        }
    }

    /// A join of rows of the same time.
    fn same_time(&mut self, one: Timed, other: Timed) -> Query {
        let mut on = Expr::binary(one.time.clone(), Op::Equal, other.time);
        if self.once_in(2)
            && let Some(pair) = self.pair(&one.sight, &other.sight, Op::Equal)
        {
            on = Expr::binary(on, Op::And, pair);
        }
        let kind = self.one_of(&[
            JoinKind::Inner,
            JoinKind::Left,
            JoinKind::Full,
            JoinKind::LeftSemi,
            JoinKind::LeftAnti,
        ]);
        let from = joined(kind, one.from, other.from, on);
        let mut sight = one.sight;
        if !kind.is_filter() {
            sight.extend(other.sight);
        }
        match self.once_in(3) {
            true => self.by_time(from, &sight, one.time),
            false => Query::select(Select::of(named(self.items(&sight, 4)), from)),
        }
    }

    /// Times and numbers of a relation.
    fn times_and_numbers(&mut self, timed: &Timed) -> Box<Query> {
        let number = self.scalar(&timed.sight, Kind::Integer, 0);
        let items = named(vec![timed.time.clone(), number]);
        Box::new(Query::select(Select::of(items, timed.from.clone())))
    }

    /// Rows of two tables, with their times, that are in one of them or in both.
    fn set_operation_by_time(&mut self, one: &Timed, other: &Timed) -> Query {
        let (left, right) = (self.times_and_numbers(one), self.times_and_numbers(other));
        let operation =
            self.one_of(&[SetOperation::Union, SetOperation::Intersect, SetOperation::Except]);
        let body = Body::Set(operation, self.once_in(2), left, right);
        Query { with: Vec::new(), body, top: None }
    }

    /// Groups by time of the rows of two tables.
    fn union_by_time(&mut self, one: &Timed, other: &Timed) -> Query {
        let (left, right) = (self.times_and_numbers(one), self.times_and_numbers(other));
        let all = Body::Set(SetOperation::Union, self.once_in(2), left, right);
        let query = Query { with: Vec::new(), body: all, top: None };
        let alias = self.alias();
        let columns = query.columns();
        let time = Expr::Column(alias.clone(), columns[0].0.clone(), columns[0].1);
        let sight: Sight = vec![(alias.clone(), columns)];
        self.by_time(From::Derived(Box::new(query), alias), &sight, time)
    }

    /// Groups, or distinct rows, by time and perhaps another column.
    fn by_time(&mut self, from: From, sight: &Sight, time: Expr) -> Query {
        let mut keys = vec![self.moved(time)];
        if self.once_in(2)
            && let Some(key) = self.column(sight, sorts)
            && !keys.contains(&key)
        {
            keys.insert(self.below(2), key);
        }
        self.by(keys, from, sight)
    }

    /// Groups by these expressions.
    fn by(&mut self, keys: Vec<Expr>, from: From, sight: &Sight) -> Query {
        let mut exprs = keys.clone();
        let number = self.scalar(sight, Kind::Integer, 0);
        exprs.push(Expr::Aggregate(Box::new(count())));
        let function = self.one_of(&["max", "min"]);
        exprs.push(Expr::Aggregate(Box::new(plain(function, number, Kind::Integer))));
        let mut select = Select::of(named(exprs), from);
        select.group = Group::Keys(keys);
        Query::select(select)
    }

    /// Rows with sums and other aggregates of those that are near them in time, a whole number.
    fn in_ranges(&mut self, from: From, sight: &Sight, time: Expr) -> Query {
        let mut exprs = self.items(sight, 3);
        for _ in 0..1 + self.below(2) {
            let number = self.column(sight, |kind| matches!(kind, Kind::Integer | Kind::Big));
            let number = number.unwrap_or_else(|| time.clone());
            let (function, kind) = self.one_of(&[
                ("sum", Kind::Big),
                ("count", Kind::Big),
                ("min", number.kind()),
                ("max", number.kind()),
            ]);
            let partition = match self.once_in(2) {
                true => self.column(sight, sorts).into_iter().collect(),
                false => Vec::new(),
            };
            let start = self.one_of(&[Bound::Preceding(2), Bound::Preceding(5), Bound::Current]);
            let end = self.one_of(&[Bound::Current, Bound::Following(1), Bound::Following(3)]);
            let window = Window {
                function,
                arguments: vec![number],
                ignore_nulls: false,
                filter: None,
                partition,
                order: vec![self.order(time.clone())],
                frame: Some(Frame { units: Units::Range, start, end }),
                kind,
            };
            exprs.push(Expr::Window(Box::new(window)));
        }
        Query::select(Select::of(named(exprs), from))
    }

    /// A time, or one that is always as much later or earlier.
    fn moved(&mut self, time: Expr) -> Expr {
        if self.once_in(3) {
            return time;
        }
        match time.kind() {
            Kind::Moment => Expr::Shift(Box::new(time), self.one_of(&[-20, 10, 30])),
            kind => {
                let op = self.one_of(&[Op::Add, Op::Subtract]);
                let by = self.one_of(&[1, 3]);
                Expr::binary(time, op, Expr::literal(Value::Whole(by), kind))
            }
        }
    }
}

fn joined(kind: JoinKind, left: From, right: From, on: Expr) -> From {
    From::Join(Box::new(Join { kind, left, right, on: Some(on), using: Vec::new() }))
}
