//! Expressions.

use super::kind::Kind;
use super::select::Query;
use super::value::Value;
use super::zone::{Length, Zone};

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Concat,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Same,
    Differs,
    And,
    Or,
}

impl Op {
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Subtract => "-",
            Op::Multiply => "*",
            Op::Divide => "/",
            Op::Modulo => "%",
            Op::Concat => "||",
            Op::Equal => "=",
            Op::Unequal => "<>",
            Op::Less => "<",
            Op::LessEqual => "<=",
            Op::Greater => ">",
            Op::GreaterEqual => ">=",
            Op::Same => "IS NOT DISTINCT FROM",
            Op::Differs => "IS DISTINCT FROM",
            Op::And => "AND",
            Op::Or => "OR",
        }
    }

    pub(crate) fn is_arithmetic(self) -> bool {
        matches!(self, Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Modulo)
    }
}

/// A scalar function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Upper,
    Lower,
    Length,
    Substr,
    Replace,
    Coalesce,
    NullIf,
    Greatest,
    Least,
    /// `date_trunc('hour', x)`
    TruncateHour,
    /// `date_trunc('day', x)`
    TruncateDay,
    /// `date_trunc('month', x)`
    TruncateMonth,
    /// `date_part('minute', x)`
    Minute,
    /// `EXTRACT(HOUR FROM x)`
    Hour,
    /// `EXTRACT(DAY FROM x)`
    Day,
    Cardinality,
    ArrayHas,
    ArrayAppend,
    ArrayToString,
}

/// One expression of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// An aggregate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    /// In lower case: `sum`.
    pub(crate) function: &'static str,
    /// None for COUNT(*).
    pub(crate) arguments: Vec<Expr>,
    pub(crate) distinct: bool,
    pub(crate) order: Vec<Order>,
    pub(crate) filter: Option<Expr>,
    pub(crate) kind: Kind,
}

/// The units of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Units {
    Rows,
    Range,
    Groups,
}

/// One end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Start,
    Preceding(u32),
    Current,
    Following(u32),
    End,
}

/// A window frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) units: Units,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
}

/// A window function, or an aggregate over a window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    /// In lower case; may be an aggregate.
    pub(crate) function: &'static str,
    pub(crate) arguments: Vec<Expr>,
    pub(crate) ignore_nulls: bool,
    pub(crate) filter: Option<Expr>,
    pub(crate) partition: Vec<Expr>,
    pub(crate) order: Vec<Order>,
    pub(crate) frame: Option<Frame>,
    pub(crate) kind: Kind,
}

/// An expression. A correlated subquery refers to outer columns by alias.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    /// Relation (empty if the name is unambiguous), column.
    Column(String, String, Kind),
    Literal(Value, Kind),
    Binary(Box<Expr>, Op, Box<Expr>),
    Not(Box<Expr>),
    Minus(Box<Expr>),
    /// IS [NOT] NULL
    IsNull(Box<Expr>, bool),
    /// IS [NOT] TRUE
    IsTrue(Box<Expr>, bool),
    Between(Box<Expr>, Box<Expr>, Box<Expr>, bool),
    In(Box<Expr>, Vec<Expr>, bool),
    Like(Box<Expr>, String, bool),
    Case(Option<Box<Expr>>, Vec<(Expr, Expr)>, Option<Box<Expr>>),
    Call(Function, Vec<Expr>),
    Cast(Box<Expr>, Kind, bool),
    /// A time, shifted by seconds.
    Shift(Box<Expr>, i64),
    /// A date or a time, plus a length of time.
    Move(Box<Expr>, Length),
    /// A date, plus a number of days.
    Days(Box<Expr>, i64),
    /// The difference of two dates, in days, or of two times, in seconds.
    Apart(Box<Expr>, Box<Expr>),
    /// AT TIME ZONE
    AtZone(Box<Expr>, Zone),
    Element(Box<Expr>, i64),
    Field(Box<Expr>, &'static str, Kind),
    MakeList(Vec<Expr>),
    MakeStruct(Vec<Expr>),
    Now,
    Aggregate(Box<Aggregate>),
    Window(Box<Window>),
    Grouping(Box<Expr>),
    Unnest(Box<Expr>),
    Exists(Box<Query>, bool),
    Among(Box<Expr>, Box<Query>, bool),
    Scalar(Box<Query>, Kind),
    /// A comparison of two rows of values.
    Rows(Vec<Expr>, Op, Vec<Expr>),
    /// A row of values [NOT] IN a query.
    RowAmong(Vec<Expr>, Box<Query>, bool),
    /// A comparison of a row of values with the row of a query.
    RowScalar(Vec<Expr>, Op, Box<Query>),
}

impl Expr {
    /// Its type.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Expr::Column(_, _, kind)
            | Expr::Literal(_, kind)
            | Expr::Cast(_, kind, _)
            | Expr::Field(_, _, kind)
            | Expr::Scalar(_, kind) => *kind,
            Expr::Binary(left, op, right) if op.is_arithmetic() => {
                wider(left.kind(), right.kind(), *op)
            }
            Expr::Binary(_, Op::Concat, _) => Kind::Text,
            Expr::Minus(inner) | Expr::Shift(inner, _) => inner.kind(),
            Expr::Case(_, branches, _) => branches[0].1.kind(),
            Expr::Call(function, arguments) => match function {
                Function::Upper
                | Function::Lower
                | Function::Substr
                | Function::Replace
                | Function::ArrayToString => Kind::Text,
                Function::Length | Function::Minute | Function::Hour | Function::Day => {
                    Kind::Integer
                }
                Function::Cardinality => Kind::Unsigned,
                Function::ArrayHas => Kind::Boolean,
                Function::Coalesce | Function::Greatest | Function::Least => {
                    let kinds = arguments.iter().map(Expr::kind);
                    kinds.reduce(|a, b| wider(a, b, Op::Add)).unwrap_or(Kind::Integer)
                }
                _ => arguments[0].kind(),
            },
            Expr::Move(inner, _) => match inner.kind() {
                Kind::Date => Kind::Moment,
                kind => kind,
            },
            Expr::Days(..) => Kind::Date,
            Expr::Apart(a, _) => match a.kind() {
                Kind::Date => Kind::Big,
                _ => Kind::Real,
            },
            Expr::AtZone(inner, _) => match inner.kind() {
                Kind::Zoned => Kind::Moment,
                _ => Kind::Zoned,
            },
            Expr::Element(..) => Kind::Integer,
            Expr::Unnest(_) => Kind::Integer,
            Expr::MakeList(_) => Kind::List,
            Expr::MakeStruct(_) => Kind::Struct,
            Expr::Now => Kind::Moment,
            Expr::Aggregate(aggregate) => aggregate.kind,
            Expr::Window(window) => window.kind,
            Expr::Grouping(_) => Kind::Integer,
            _ => Kind::Boolean,
        }
    }

    pub(crate) fn literal(value: Value, kind: Kind) -> Expr {
        Expr::Literal(value, kind)
    }

    /// A whole number, which is a BIGINT.
    pub(crate) fn whole(value: i64) -> Expr {
        Expr::Literal(Value::Whole(value.into()), Kind::Big)
    }

    pub(crate) fn binary(left: Expr, op: Op, right: Expr) -> Expr {
        Expr::Binary(Box::new(left), op, Box::new(right))
    }
}

/// The result type of an operator.
fn wider(left: Kind, right: Kind, op: Op) -> Kind {
    match (left, right) {
        (Kind::Real, _) | (_, Kind::Real) | (Kind::Float, _) | (_, Kind::Float) => Kind::Real,
        (Kind::Decimal, _) | (_, Kind::Decimal) => Kind::Decimal,
        (left, right) if left == right => left,
        (left, right) if left.is_whole() && right.is_whole() => Kind::Big,
        (left, _) => {
            debug_assert!(op != Op::Divide || left.is_number());
            left
        }
    }
}
