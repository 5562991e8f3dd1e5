//! Generating expressions that do not fail and that all dialects interpret alike.

use super::{Maker, Sight};
use crate::query::{Expr, Function, Kind, Op, Value};

impl Maker {
    /// An expression of a type.
    pub(super) fn scalar(&mut self, sight: &Sight, kind: Kind, depth: usize) -> Expr {
        let simple = |maker: &mut Self| match maker.column(sight, |other| other == kind) {
            Some(column) => column,
            None => maker.constant(kind),
        };
        if depth == 0 || self.once_in(3) {
            return simple(self);
        }
        let boxed = |expr: Expr| Box::new(expr);
        match kind {
            Kind::Integer | Kind::Big => self.whole(sight, kind, depth),
            Kind::Real => {
                let (a, b) =
                    (self.scalar(sight, kind, depth - 1), self.scalar(sight, kind, depth - 1));
                match self.below(4) {
                    0 => Expr::binary(a, Op::Add, b),
                    1 => Expr::binary(a, Op::Subtract, b),
                    2 => Expr::Call(Function::Coalesce, vec![a, b]),
                    _ => {
                        let whole = self.scalar(sight, Kind::Integer, depth - 1);
                        Expr::Cast(boxed(whole), Kind::Real, false)
                    }
                }
            }
            Kind::Text => self.text(sight, depth),
            Kind::Boolean => self.condition(sight, depth),
            Kind::Moment => match self.below(3) {
                0 => {
                    let inner = self.scalar(sight, kind, depth - 1);
                    Expr::Call(Function::TruncateHour, vec![inner])
                }
                1 => {
                    let seconds = self.one_of(&[10, 3600, -60, 86_400]);
                    Expr::Shift(boxed(self.scalar(sight, kind, depth - 1)), seconds)
                }
                _ => simple(self),
            },
            Kind::List => match self.below(3) {
                0 => {
                    let list = simple(self);
                    let element = self.scalar(sight, Kind::Integer, 0);
                    Expr::Call(Function::ArrayAppend, vec![list, element])
                }
                1 => {
                    // Of columns, because a list of constants has another type.
                    let items = Self::columns(sight, |kind| kind == Kind::Integer);
                    match items.is_empty() {
                        true => simple(self),
                        false => Expr::MakeList((0..2).map(|_| self.one_of(&items)).collect()),
                    }
                }
                _ => simple(self),
            },
            Kind::Struct => {
                let whole = self.column(sight, |kind| kind == Kind::Integer);
                let text = self.column(sight, |kind| kind == Kind::Text);
                match (whole, text) {
                    (Some(whole), Some(text)) if self.once_in(2) => {
                        Expr::MakeStruct(vec![whole, text])
                    }
                    _ => simple(self),
                }
            }
            Kind::Decimal => {
                let (a, b) = (simple(self), simple(self));
                match self.below(3) {
                    0 => Expr::Call(Function::Coalesce, vec![a, b]),
                    1 => Expr::Call(Function::Abs, vec![a]),
                    _ => a,
                }
            }
            _ => simple(self),
        }
    }

    fn whole(&mut self, sight: &Sight, kind: Kind, depth: usize) -> Expr {
        let a = self.scalar(sight, kind, depth - 1);
        let boxed = |expr: Expr| Box::new(expr);
        match self.below(15) {
            0 => Expr::binary(a, Op::Add, self.constant(kind)),
            1 => {
                let b = self.scalar(sight, kind, depth - 1);
                Expr::binary(a, Op::Subtract, b)
            }
            2 => Expr::binary(a, Op::Multiply, self.constant(kind)),
            3 => Expr::binary(a, Op::Modulo, Expr::literal(Value::Whole(3), kind)),
            4 => Expr::binary(a, Op::Divide, Expr::literal(Value::Whole(2), kind)),
            5 => Expr::Call(Function::Abs, vec![a]),
            6 => Expr::Call(Function::Coalesce, vec![a, self.constant(kind)]),
            7 => Expr::Call(Function::NullIf, vec![a, self.constant(kind)]),
            8 => {
                let b = self.scalar(sight, kind, depth - 1);
                Expr::Call(self.one_of(&[Function::Greatest, Function::Least]), vec![a, b])
            }
            9 => {
                let condition = self.condition(sight, depth - 1);
                Expr::Case(None, vec![(condition, a)], Some(boxed(self.constant(kind))))
            }
            10 => {
                let (when, then) = (self.constant(kind), self.constant(kind));
                Expr::Case(Some(boxed(a)), vec![(when, then)], None)
            }
            11 => Expr::Minus(boxed(a)),
            12 if kind == Kind::Big => {
                let list = self.column(sight, |kind| kind == Kind::List);
                list.map_or(a, |list| {
                    let length = Expr::Call(Function::Cardinality, vec![list]);
                    Expr::Cast(boxed(length), Kind::Big, false)
                })
            }
            12 => {
                let text = self.scalar(sight, Kind::Text, 0);
                Expr::Call(Function::Length, vec![text])
            }
            13 if kind == Kind::Integer => {
                let list = self.column(sight, |kind| kind == Kind::List);
                let place = 1 + self.below(3) as i64;
                list.map_or(a, |list| Expr::Element(boxed(list), place))
            }
            14 if kind == Kind::Integer => {
                let inner = self.column(sight, |kind| matches!(kind, Kind::Struct | Kind::Map));
                match inner {
                    Some(inner) if inner.kind() == Kind::Struct => {
                        Expr::Field(boxed(inner), "x", Kind::Integer)
                    }
                    Some(inner) => Expr::Field(boxed(inner), "k", Kind::Integer),
                    None => match self.column(sight, |kind| kind == Kind::Moment) {
                        Some(moment) => Expr::Call(Function::Minute, vec![moment]),
                        None => a,
                    },
                }
            }
            _ => Expr::Cast(boxed(self.scalar(sight, Kind::Integer, depth - 1)), kind, false),
        }
    }

    fn text(&mut self, sight: &Sight, depth: usize) -> Expr {
        let a = self.scalar(sight, Kind::Text, depth - 1);
        let number = |value| Expr::whole(value);
        match self.below(10) {
            0 => Expr::Call(Function::Upper, vec![a]),
            1 => Expr::Call(Function::Lower, vec![a]),
            2 => Expr::binary(a, Op::Concat, self.constant(Kind::Text)),
            3 => Expr::Call(Function::Substr, vec![a, number(1), number(2)]),
            4 => {
                let to = self.constant(Kind::Text);
                let from = Expr::literal(Value::Text("a".to_owned()), Kind::Text);
                Expr::Call(Function::Replace, vec![a, from, to])
            }
            5 => Expr::Call(Function::Coalesce, vec![a, self.constant(Kind::Text)]),
            6 => {
                let condition = self.condition(sight, depth - 1);
                let otherwise = self.constant(Kind::Text);
                Expr::Case(None, vec![(condition, a)], Some(Box::new(otherwise)))
            }
            7 => {
                let inner = self.scalar(sight, Kind::Integer, depth - 1);
                let inner = match inner {
                    Expr::Column(..) => inner,
                    // Not a bare literal, which planners convert to text themselves.
                    inner => Expr::Cast(Box::new(inner), Kind::Big, false),
                };
                Expr::Cast(Box::new(inner), Kind::Text, false)
            }
            8 => match self.column(sight, |kind| kind == Kind::List) {
                Some(list) => Expr::Call(Function::ArrayToString, vec![list]),
                None => a,
            },
            _ => match self.column(sight, |kind| kind == Kind::Struct) {
                Some(inner) => Expr::Field(Box::new(inner), "y", Kind::Text),
                None => a,
            },
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self, sight: &Sight, depth: usize) -> Expr {
        let boxed = |expr: Expr| Box::new(expr);
        if depth > 0 && self.once_in(3) {
            let a = self.condition(sight, depth - 1);
            return match self.below(4) {
                0 => Expr::Not(boxed(a)),
                1 => Expr::IsTrue(boxed(a), self.once_in(2)),
                2 => Expr::binary(a, Op::And, self.condition(sight, depth - 1)),
                _ => Expr::binary(a, Op::Or, self.condition(sight, depth - 1)),
            };
        }
        let Some(column) = self.condition_column(sight) else {
            return Expr::literal(Value::Boolean(true), Kind::Boolean);
        };
        let kind = column.kind();
        if self.once_in(12)
            && let Some(rows) = self.rows(sight, &column)
        {
            return rows;
        }
        if matches!(kind, Kind::Date | Kind::Moment | Kind::Zoned) && self.once_in(4) {
            return self.of_time(&column);
        }
        if kind == Kind::List {
            let element = self.constant(Kind::Integer);
            return Expr::Call(Function::ArrayHas, vec![column, element]);
        }
        if kind == Kind::Boolean && self.once_in(2) {
            return column;
        }
        let not = self.once_in(3);
        match self.below(8) {
            0 => Expr::IsNull(boxed(column), not),
            1 => {
                let (a, b) = (self.constant(kind), self.constant(kind));
                let ordered =
                    matches!((&a, &b), (Expr::Literal(a, _), Expr::Literal(b, _)) if a <= b);
                let (low, high) = if ordered { (a, b) } else { (b, a) };
                Expr::Between(boxed(column), boxed(low), boxed(high), not)
            }
            2 => {
                let list = (0..1 + self.below(3)).map(|_| self.constant(kind)).collect();
                Expr::In(boxed(column), list, not)
            }
            3 if kind == Kind::Text => {
                let pattern = self.one_of(&["a%", "%b%", "_", "abcdefghi_", "%"]);
                Expr::Like(boxed(column), pattern.to_owned(), not)
            }
            4 => {
                let op = self.one_of(&[Op::Same, Op::Differs]);
                let other = self.scalar(sight, kind, 0);
                Expr::binary(column, op, other)
            }
            5 => {
                let expr = self.scalar(sight, kind, depth.min(1));
                let op = self.comparison();
                Expr::binary(expr, op, self.constant(kind))
            }
            6 => {
                let op = self.comparison();
                let other = self.scalar(sight, kind, 0);
                Expr::binary(column, op, other)
            }
            _ => {
                let op = self.comparison();
                Expr::binary(column, op, self.constant(kind))
            }
        }
    }

    /// A comparison of a row of a column and others with a row of other columns or constants.
    fn rows(&mut self, sight: &Sight, first: &Expr) -> Option<Expr> {
        if !super::sorts(first.kind()) {
            return None;
        }
        let mut left = vec![first.clone()];
        for _ in 0..1 + usize::from(self.once_in(4)) {
            left.push(self.column(sight, super::sorts)?);
        }
        let right = left.iter().map(|column| match self.once_in(3) {
            true => self.scalar(sight, column.kind(), 0),
            false => self.constant(column.kind()),
        });
        let right = right.collect();
        Some(Expr::Rows(left, self.comparison(), right))
    }

    /// A column that conditions can compare, if there is one.
    fn condition_column(&mut self, sight: &Sight) -> Option<Expr> {
        let kinds = [
            Kind::Integer,
            Kind::Integer,
            Kind::Text,
            Kind::Text,
            Kind::Big,
            Kind::Real,
            if self.has_nan { Kind::Real } else { Kind::Text },
            Kind::Boolean,
            Kind::Moment,
            Kind::Date,
            Kind::Zoned,
            Kind::Decimal,
            Kind::List,
        ];
        let mut kind = self.one_of(&kinds);
        if self.column(sight, |other| other == kind).is_none() {
            kind = self.column(sight, super::sorts)?.kind();
        }
        self.column(sight, |other| other == kind)
    }

    pub(super) fn comparison(&mut self) -> Op {
        self.one_of(&[
            Op::Equal,
            Op::Unequal,
            Op::Less,
            Op::LessEqual,
            Op::Greater,
            Op::GreaterEqual,
        ])
    }

    /// Expressions for SELECT, most of them plain columns.
    pub(super) fn items(&mut self, sight: &Sight, most: usize) -> Vec<Expr> {
        let mut exprs = Vec::new();
        for _ in 0..1 + self.below(most) {
            let column = self.column(sight, |_| true);
            exprs.push(match column {
                Some(column) if !self.once_in(3) => column,
                _ => {
                    let kind = self.one_of(&[
                        Kind::Integer,
                        Kind::Integer,
                        Kind::Text,
                        Kind::Text,
                        Kind::Big,
                        Kind::Real,
                        Kind::Boolean,
                        Kind::Moment,
                        Kind::List,
                        Kind::Struct,
                        Kind::Decimal,
                    ]);
                    let there = self.column(sight, |other| other == kind).is_some();
                    // A list or struct of constants has another type.
                    let kind = if kind.is_nested() && !there { Kind::Integer } else { kind };
                    self.scalar(sight, kind, 2)
                }
            });
        }
        exprs
    }
}
