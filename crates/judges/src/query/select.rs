//! Queries.

use super::expression::{Expr, Order};
use super::kind::Kind;

/// A query: WITH, a body, and LIMIT.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    pub(crate) with: Vec<(String, Query)>,
    pub(crate) body: Body,
    pub(crate) top: Option<Top>,
}

/// SELECT, or a set operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    Select(Box<Select>),
    Set(SetOperation, bool, Box<Query>, Box<Query>),
}

/// A set operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// ORDER BY columns of the result, LIMIT and OFFSET.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Top {
    /// Column, descending, NULLs first.
    pub(crate) order: Vec<(usize, bool, bool)>,
    pub(crate) limit: u64,
    pub(crate) offset: u64,
    /// Whether rows that are equal in the order to the last one are there as well.
    pub(crate) with_ties: bool,
}

/// A SELECT.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Select {
    pub(crate) distinct: Distinct,
    pub(crate) items: Vec<Item>,
    pub(crate) from: Option<From>,
    pub(crate) filter: Option<Expr>,
    pub(crate) group: Group,
    pub(crate) having: Option<Expr>,
    pub(crate) qualify: Option<Expr>,
}

/// DISTINCT.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Distinct {
    All,
    Rows,
    /// DISTINCT ON (…), and its ORDER BY, which starts with the same expressions.
    On(Vec<Expr>, Vec<Order>),
}

/// An expression and its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) expr: Expr,
    pub(crate) name: String,
}

/// GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Group {
    None,
    Keys(Vec<Expr>),
    Sets(Vec<Expr>, Sets),
}

/// Grouping sets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sets {
    Rollup,
    Cube,
    /// Each set as the positions of its keys.
    Listed(Vec<Vec<usize>>),
}

impl Sets {
    /// Each set as the positions of its keys.
    pub(crate) fn listed(&self, keys: usize) -> Vec<Vec<usize>> {
        match self {
            Sets::Rollup => (0..=keys).rev().map(|length| (0..length).collect()).collect(),
            Sets::Cube => (0..1usize << keys)
                .rev()
                .map(|set| (0..keys).filter(|key| set >> (keys - 1 - key) & 1 == 1).collect())
                .collect(),
            Sets::Listed(sets) => sets.clone(),
        }
    }
}

/// An item of FROM.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum From {
    /// A relation with an alias.
    Relation(String, String),
    /// A derived query with an alias.
    Derived(Box<Query>, String),
    Join(Box<Join>),
    /// The rows of a recursion with an alias.
    Recursive(Box<Recursion>, String),
    /// Relations, and a query with an alias that is evaluated for each of their rows; whether rows without result stay.
    Lateral(Box<From>, Box<Query>, String, bool),
    /// A relation with an alias, its time column, and the windows it is assigned to.
    Windowed(String, String, String, Span),
    /// A relation with an alias, a list, the name for its elements, and optionally the name for their ordinality; whether rows
    /// without elements stay.
    Unnested(String, String, Expr, String, Option<String>, bool),
}

/// WITH RECURSIVE: rows of a base, and what a step makes of them. The step reads them by the name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recursion {
    pub(crate) name: String,
    /// Whether each way by which a row is made counts: UNION ALL.
    pub(crate) all: bool,
    pub(crate) base: Query,
    pub(crate) step: Query,
}

/// Time windows, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Span {
    /// Size, offset.
    Tumble(i64, i64),
    /// Slide, size.
    Hop(i64, i64),
    /// Key, gap.
    Session(String, i64),
}

/// A join.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Join {
    pub(crate) kind: JoinKind,
    pub(crate) left: From,
    pub(crate) right: From,
    /// None for CROSS JOIN.
    pub(crate) on: Option<Expr>,
    /// The columns of USING; `on` compares them as well.
    pub(crate) using: Vec<String>,
}

/// The kind of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    Cross,
    LeftSemi,
    RightSemi,
    LeftAnti,
    RightAnti,
    /// The last conjunct of the condition compares the times, the left one first.
    Asof,
    LeftAsof,
}

impl JoinKind {
    pub(crate) fn sql(self) -> &'static str {
        match self {
            JoinKind::Inner => "JOIN",
            JoinKind::Left => "LEFT JOIN",
            JoinKind::Right => "RIGHT JOIN",
            JoinKind::Full => "FULL JOIN",
            JoinKind::Cross => "CROSS JOIN",
            JoinKind::LeftSemi => "LEFT SEMI JOIN",
            JoinKind::RightSemi => "RIGHT SEMI JOIN",
            JoinKind::LeftAnti => "LEFT ANTI JOIN",
            JoinKind::RightAnti => "RIGHT ANTI JOIN",
            JoinKind::Asof => "ASOF JOIN",
            JoinKind::LeftAsof => "LEFT ASOF JOIN",
        }
    }

    /// Whether a left row has at most one match, the nearest.
    pub(crate) fn is_asof(self) -> bool {
        matches!(self, JoinKind::Asof | JoinKind::LeftAsof)
    }

    /// Whether the result has the columns of only one side.
    pub(crate) fn is_filter(self) -> bool {
        matches!(
            self,
            JoinKind::LeftSemi | JoinKind::RightSemi | JoinKind::LeftAnti | JoinKind::RightAnti
        )
    }
}

impl Query {
    /// A query that is a SELECT.
    pub(crate) fn select(select: Select) -> Query {
        Query { with: Vec::new(), body: Body::Select(Box::new(select)), top: None }
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> Vec<(String, Kind)> {
        match &self.body {
            Body::Select(select) => {
                let items = select.items.iter();
                items.map(|item| (item.name.clone(), item.expr.kind())).collect()
            }
            Body::Set(_, _, left, right) => {
                let both = left.columns().into_iter().zip(right.columns());
                both.map(|((name, left), (_, right))| {
                    let kind = if left != right && left.is_whole() { Kind::Big } else { left };
                    (name, kind)
                })
                .collect()
            }
        }
    }
}

impl Select {
    /// A SELECT of these items from these rows.
    pub(crate) fn of(items: Vec<Item>, from: From) -> Select {
        Select {
            distinct: Distinct::All,
            items,
            from: Some(from),
            filter: None,
            group: Group::None,
            having: None,
            qualify: None,
        }
    }
}
