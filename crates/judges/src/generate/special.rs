//! Generating time windows, NOW(), UNNEST, function calls, and rows that fail.

use super::aggregate::{count, plain};
use super::{Maker, Sight, named, sorts};
use crate::query::{Expr, From, Function, Group, Kind, Op, Query, Select, Span};

impl Maker {
    /// A source with a column of some type.
    pub(super) fn with_column(&mut self, kind: Kind) -> Option<(super::Source, String)> {
        let fitting: Vec<super::Source> = self
            .sources
            .iter()
            .filter(|source| source.columns.iter().any(|column| column.1 == kind))
            .filter(|source| {
                // Time windows add columns of these names.
                !source.columns.iter().any(|column| column.0.starts_with("window_"))
            })
            .cloned()
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let source = self.one_of(&fitting);
        let columns: Vec<String> = source
            .columns
            .iter()
            .filter(|column| column.1 == kind)
            .map(|column| column.0.clone())
            .collect();
        let column = self.one_of(&columns);
        Some((source, column))
    }

    /// The rows of time windows, or counts per window.
    pub(super) fn windows_of_time(&mut self) -> Option<Query> {
        let (source, time) = self.with_column(Kind::Moment)?;
        let span = match self.below(3) {
            0 => {
                let size = self.one_of(&[10, 60, 3600]);
                Span::Tumble(size, if self.once_in(2) { 3 } else { 0 })
            }
            1 => {
                let (slide, size) = self.one_of(&[(5, 10), (2, 10), (3, 4), (20, 10)]);
                Span::Hop(slide, size)
            }
            _ => {
                let keys: Vec<String> = source
                    .columns
                    .iter()
                    .filter(|column| sorts(column.1) && column.0 != time)
                    .map(|column| column.0.clone())
                    .collect();
                if keys.is_empty() {
                    return None;
                }
                Span::Session(self.one_of(&keys), self.one_of(&[5, 10, 60]))
            }
        };
        let alias = self.alias();
        let mut columns = source.columns.clone();
        for name in ["window_start", "window_end"] {
            columns.push((name.to_owned(), Kind::Moment));
        }
        let start = Expr::Column(alias.clone(), "window_start".to_owned(), Kind::Moment);
        let sight: Sight = vec![(alias.clone(), columns)];
        let from = From::Windowed(source.name, alias, time, span);
        let mut select = match self.below(2) {
            0 => {
                let mut exprs = self.items(&sight, 2);
                exprs.push(start);
                Select::of(named(exprs), from)
            }
            _ => {
                let mut group = vec![start];
                if self.once_in(2)
                    && let Some(key) = self.column(&sight, sorts)
                    && !group.contains(&key)
                {
                    group.push(key);
                }
                let mut exprs = group.clone();
                exprs.push(Expr::Aggregate(Box::new(count())));
                let number = self.scalar(&sight, Kind::Integer, 0);
                exprs.push(Expr::Aggregate(Box::new(plain("max", number, Kind::Integer))));
                let mut select = Select::of(named(exprs), from);
                select.group = Group::Keys(group);
                select
            }
        };
        if self.once_in(3) {
            select.filter = Some(self.condition(&sight, 1));
        }
        Some(Query::select(select))
    }

    /// Rows filtered by age.
    pub(super) fn by_now(&mut self) -> Option<Query> {
        let (source, time) = self.with_column(Kind::Moment)?;
        let alias = self.alias();
        let time = Expr::Column(alias.clone(), time, Kind::Moment);
        let sight: Sight = vec![(alias.clone(), source.columns)];
        let from = From::Relation(source.name, alias);
        let recent = self.recent(&time);
        let mut select = match self.below(3) {
            0 => {
                let exprs = vec![Expr::Aggregate(Box::new(count()))];
                Select::of(named(exprs), from)
            }
            1 => {
                let mut exprs = self.items(&sight, 2);
                exprs.push(recent.clone());
                return Some(Query::select(Select::of(named(exprs), from)));
            }
            _ => Select::of(named(self.items(&sight, 3)), from),
        };
        select.filter = Some(match self.once_in(2) {
            true => Expr::binary(recent, Op::And, self.condition(&sight, 0)),
            false => recent,
        });
        Some(Query::select(select))
    }

    /// Whether a time is before or after a moving time, or between two such.
    pub(super) fn recent(&mut self, time: &Expr) -> Expr {
        let moved = |maker: &mut Self| match maker.one_of(&[-3600, -60, -30, -10, 0, 20, 60]) {
            0 => Expr::Now,
            by => Expr::Shift(Box::new(Expr::Now), by),
        };
        let (now, op) = (moved(self), self.comparison());
        let recent = match self.once_in(4) {
            // The same from the other side.
            true => Expr::binary(now, op, time.clone()),
            false => Expr::binary(time.clone(), op, now),
        };
        match self.once_in(3) {
            true => {
                let (now, op) = (moved(self), self.one_of(&[Op::LessEqual, Op::Less]));
                Expr::binary(recent, Op::And, Expr::binary(time.clone(), op, now))
            }
            false => recent,
        }
    }

    /// The elements of lists, beside values from lists, structs and maps.
    pub(super) fn nested(&mut self) -> Option<Query> {
        let (source, list) = self.with_column(Kind::List)?;
        let alias = self.alias();
        let list = Expr::Column(alias.clone(), list, Kind::List);
        let mut sight: Sight = vec![(alias.clone(), source.columns)];
        let form = self.below(4);
        if form == 0 {
            let from = From::Relation(source.name, alias);
            let mut exprs = self.items(&sight, 2);
            exprs.push(Expr::Unnest(Box::new(list)));
            return Some(Query::select(Select::of(named(exprs), from)));
        }
        if form == 1 {
            let from = From::Relation(source.name, alias);
            let element = self.constant(Kind::Integer);
            let exprs = [
                Expr::Element(Box::new(list.clone()), 1 + self.below(2) as i64),
                Expr::Call(Function::Cardinality, vec![list.clone()]),
                Expr::Call(Function::ArrayToString, vec![list.clone()]),
                Expr::Call(Function::ArrayHas, vec![list.clone(), element]),
                list,
            ];
            let start = self.below(4);
            return Some(Query::select(Select::of(named(exprs[start..].to_vec()), from)));
        }
        // Without an alias, the columns of the unnested relation are in scope.
        let element = Expr::Column(String::new(), "element".to_owned(), Kind::Integer);
        let place = self.once_in(2).then(|| "place".to_owned());
        let keeps_left = self.once_in(2);
        let element_name = "element".to_owned();
        let from =
            From::Unnested(source.name, alias, list, element_name, place.clone(), keeps_left);
        let mut exprs = vec![element.clone()];
        if form == 2 {
            exprs.push(Expr::Aggregate(Box::new(count())));
            let mut select = Select::of(named(exprs), from);
            select.group = Group::Keys(vec![element]);
            return Some(Query::select(select));
        }
        exprs.extend(place.map(|place| {
            let place = Expr::Column(String::new(), place, Kind::Big);
            Expr::Cast(Box::new(place), Kind::Integer, false)
        }));
        sight[0].1.retain(|column| !column.1.is_nested());
        exprs.extend(self.items(&sight, 2));
        let mut select = Select::of(named(exprs), from);
        if self.once_in(2) {
            let op = self.comparison();
            let filter = Expr::binary(element, op, self.constant(Kind::Integer));
            select.filter = Some(filter);
        }
        Some(Query::select(select))
    }

    /// Calls of functions that other expressions rarely use.
    pub(super) fn functions(&mut self) -> Option<Query> {
        let kind = self.one_of(&[
            Kind::List,
            Kind::List,
            Kind::Struct,
            Kind::Map,
            Kind::Moment,
            Kind::Text,
            Kind::Text,
            Kind::Integer,
            Kind::Date,
        ]);
        let (source, column) = self.with_column(kind)?;
        let alias = self.alias();
        let column = Expr::Column(alias.clone(), column, kind);
        let sight: Sight = vec![(alias.clone(), source.columns)];
        let mut exprs = self.calls(&sight, column, kind);
        let nested = |kind| matches!(kind, Kind::Struct | Kind::Map | Kind::Text | Kind::Moment);
        if let Some(other) = self.column(&sight, nested) {
            let kind = other.kind();
            exprs.extend(self.calls(&sight, other, kind));
        }
        self.rng.shuffle(&mut exprs);
        exprs.truncate(7);
        if !self.once_in(4)
            && let (Some(a), Some(b)) = (
                self.column(&sight, |kind| kind == Kind::Integer),
                self.column(&sight, |kind| kind == Kind::Text),
            )
        {
            exprs.push(Expr::MakeList(vec![a.clone(), a.clone()]));
            exprs.push(Expr::MakeStruct(vec![a, b]));
        }
        let from = From::Relation(source.name, alias);
        let mut select = Select::of(named(exprs), from);
        if self.once_in(3) {
            select.filter = Some(self.condition(&sight, 1));
        }
        Some(Query::select(select))
    }

    /// Expressions of a column that other generators rarely make.
    fn calls(&mut self, sight: &Sight, column: Expr, kind: Kind) -> Vec<Expr> {
        let boxed = |expr: &Expr| Box::new(expr.clone());
        let whole = self.scalar(sight, Kind::Integer, 0);
        let call = |function, arguments: &[&Expr]| {
            Expr::Call(function, arguments.iter().map(|argument| (*argument).clone()).collect())
        };
        let (one, two) = (Expr::whole(1), Expr::whole(2));
        let text = self.constant(Kind::Text);
        match kind {
            Kind::List => vec![
                call(Function::Cardinality, &[&column]),
                call(Function::ArrayAppend, &[&column, &whole]),
                call(Function::ArrayToString, &[&column]),
                Expr::Element(boxed(&column), 2),
                call(Function::ArrayHas, &[&column, &whole]),
            ],
            Kind::Struct => vec![
                Expr::Field(boxed(&column), "x", Kind::Integer),
                Expr::Field(boxed(&column), "y", Kind::Text),
            ],
            Kind::Map => vec![Expr::Field(boxed(&column), "k", Kind::Integer)],
            Kind::Date => self.of_times(&column, kind),
            Kind::Moment => vec![
                call(Function::Minute, &[&column]),
                call(Function::TruncateHour, &[&column]),
                Expr::Shift(boxed(&column), -3600),
                Expr::Cast(boxed(&column), Kind::Date, false),
            ],
            Kind::Integer => vec![
                Expr::Minus(boxed(&column)),
                call(Function::NullIf, &[&column, &one]),
                call(Function::Greatest, &[&column, &whole]),
                call(Function::Least, &[&column, &two]),
                Expr::binary(column.clone(), Op::Multiply, two.clone()),
            ],
            _ => vec![
                call(Function::Upper, &[&column]),
                call(Function::Lower, &[&column]),
                call(Function::Substr, &[&column, &one, &two]),
                call(Function::Length, &[&column]),
                call(
                    Function::Replace,
                    &[
                        &column,
                        &Expr::literal(crate::query::Value::Text("a".to_owned()), Kind::Text),
                        &column,
                    ],
                ),
                Expr::binary(column.clone(), Op::Concat, text),
                Expr::Cast(boxed(&column), Kind::Integer, true),
                Expr::Like(boxed(&column), "%b%".to_owned(), false),
            ],
        }
    }

    /// A query that fails for some rows.
    pub(super) fn failing(&mut self, from: From, sight: &Sight) -> Query {
        let number = self
            .column(sight, |kind| matches!(kind, Kind::Integer | Kind::Big))
            .unwrap_or_else(|| Expr::whole(0));
        let text = self.column(sight, |kind| kind == Kind::Text);
        let fails = match (self.below(5), text) {
            (0, Some(text)) => Expr::Cast(Box::new(text), Kind::Integer, false),
            (1, Some(text)) => Expr::Cast(Box::new(text), Kind::Integer, true),
            (2, _) => {
                let number = Expr::Cast(Box::new(number), Kind::Big, false);
                Expr::binary(Expr::whole(i64::MAX - 1), Op::Add, number)
            }
            (3, _) => Expr::binary(self.constant(number.kind()), Op::Modulo, number),
            _ => {
                let numerator = Expr::literal(crate::query::Value::Whole(10), number.kind());
                Expr::binary(numerator, Op::Divide, number)
            }
        };
        match self.below(4) {
            0 => {
                let mut select = Select::of(named(self.items(sight, 3)), from);
                let op = self.comparison();
                select.filter = Some(Expr::binary(fails, op, Expr::whole(1)));
                Query::select(select)
            }
            1 => {
                let Some(key) = self.column(sight, sorts) else {
                    return Query::select(Select::of(named(vec![fails]), from));
                };
                let sum = Expr::Aggregate(Box::new(plain("sum", fails, Kind::Big)));
                let rows = Expr::Aggregate(Box::new(count()));
                let mut select = Select::of(named(vec![key.clone(), sum, rows]), from);
                select.group = Group::Keys(vec![key]);
                Query::select(select)
            }
            _ => {
                let mut exprs = self.items(sight, 2);
                exprs.push(fails);
                Query::select(Select::of(named(exprs), from))
            }
        }
    }
}
