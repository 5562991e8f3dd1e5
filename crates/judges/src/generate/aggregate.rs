//! Generating GROUP BY and aggregates.

use crate::query::visit::{self, Visitor};

use super::{Maker, Sight, keys, named, sorts};
use crate::query::{Aggregate, Expr, From, Group, Kind, Op, Order, Query, Select, Sets, Value};

/// Aggregates that the naive evaluator does not know.
const STATISTICS: [&str; 10] = [
    "median",
    "stddev",
    "stddev_pop",
    "var_samp",
    "var_pop",
    "corr",
    "covar_samp",
    "regr_slope",
    "percentile_cont",
    "approx_distinct",
];

/// Others whose groups are computed from all of their rows.
const FALLBACKS: [&str; 11] = [
    "regr_count",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "string_agg",
    "array_agg",
    "first_value",
    "last_value",
    "nth_value",
];

impl Maker {
    /// A GROUP BY.
    pub(super) fn grouped(&mut self, from: From, sight: &Sight, re_evaluated: bool) -> Query {
        let mut group_keys: Vec<Expr> = Vec::new();
        for _ in 0..self.below(3) {
            let key = match self.once_in(4) {
                true => self.scalar(sight, Kind::Integer, 1),
                false => self.column(sight, keys).unwrap_or_else(|| self.constant(Kind::Integer)),
            };
            // A constant in GROUP BY would be the position of a column.
            if has_column(&key) && !group_keys.contains(&key) {
                group_keys.push(key);
            }
        }
        let mut exprs = group_keys.clone();
        if exprs.len() == 2 && self.once_in(4) {
            exprs.pop();
        }
        // Not beside each other, because no judge knows all of them.
        let functions: &[&'static str] = if self.once_in(2) { &STATISTICS } else { &FALLBACKS };
        for _ in 0..1 + 11 * usize::from(re_evaluated) + self.below(2) {
            let aggregate = self.aggregate(sight, re_evaluated.then_some(functions));
            exprs.push(Expr::Aggregate(Box::new(aggregate)));
        }
        // An expression over aggregates.
        if self.once_in(6) {
            let count = Expr::Aggregate(Box::new(count()));
            exprs.push(Expr::binary(count, Op::Add, Expr::whole(1)));
        }
        let mut select = Select::of(named(exprs), from);
        select.group = if group_keys.is_empty() { Group::None } else { Group::Keys(group_keys) };
        if self.once_in(3) {
            select.filter = Some(self.condition(sight, 1));
        }
        if self.once_in(5) {
            select.having = Some(self.having(sight));
        }
        Query::select(select)
    }

    fn having(&mut self, sight: &Sight) -> Expr {
        let number = self.below(3) as i64;
        match self.column(sight, |kind| kind == Kind::Integer) {
            Some(column) if self.once_in(2) => {
                let least = plain("min", column, Kind::Integer);
                let op = self.comparison();
                Expr::binary(Expr::Aggregate(Box::new(least)), op, Expr::whole(number))
            }
            _ => Expr::binary(Expr::Aggregate(Box::new(count())), Op::Greater, Expr::whole(number)),
        }
    }

    /// GROUPING SETS, ROLLUP or CUBE.
    pub(super) fn sets(&mut self, from: From, sight: &Sight) -> Query {
        let mut group_keys: Vec<Expr> = Vec::new();
        while group_keys.len() < 2 {
            let Some(key) = self.column(sight, |kind| keys(kind) && sorts(kind)) else { break };
            if !group_keys.contains(&key) {
                group_keys.push(key);
            } else if self.once_in(4) {
                break;
            }
        }
        if group_keys.is_empty() {
            return self.grouped(from, sight, false);
        }
        let sets = match self.below(3) {
            0 => Sets::Rollup,
            1 => Sets::Cube,
            _ => {
                let all: Vec<Vec<usize>> = vec![
                    vec![0],
                    vec![group_keys.len() - 1],
                    Vec::new(),
                    (0..group_keys.len()).collect(),
                ];
                let every = (0..group_keys.len()).collect();
                let mut chosen = vec![self.one_of(&all), self.one_of(&all), every];
                chosen.sort();
                chosen.dedup();
                Sets::Listed(chosen)
            }
        };
        let mut exprs = group_keys.clone();
        if self.once_in(2) {
            let key = self.one_of(&group_keys);
            exprs.push(Expr::Grouping(Box::new(key)));
        }
        for _ in 0..1 + self.below(2) {
            let aggregate = self.aggregate(sight, None);
            exprs.push(Expr::Aggregate(Box::new(aggregate)));
        }
        let mut select = Select::of(named(exprs), from);
        select.group = Group::Sets(group_keys, sets);
        if self.once_in(3) {
            select.filter = Some(self.condition(sight, 1));
        }
        if self.once_in(6) {
            select.having = Some(self.having(sight));
        }
        Query::select(select)
    }

    /// An aggregate, mostly one of these functions if there are any.
    fn aggregate(&mut self, sight: &Sight, functions: Option<&[&'static str]>) -> Aggregate {
        let mut aggregate = match functions {
            Some(functions) if !self.once_in(8) => self.fallback(sight, functions),
            _ => self.totalled(sight),
        };
        if self.once_in(5) || aggregate.distinct && self.once_in(2) {
            aggregate.filter = Some(self.condition(sight, 1));
        }
        aggregate
    }

    fn totalled(&mut self, sight: &Sight) -> Aggregate {
        let kind = self.one_of(&[Kind::Integer, Kind::Big, Kind::Real, Kind::Decimal]);
        let number = self.column(sight, |other| other == kind);
        let number = match number {
            Some(number) if !self.once_in(5) => number,
            _ => {
                let kind = self.one_of(&[Kind::Integer, Kind::Big, Kind::Real]);
                self.scalar(sight, kind, 1)
            }
        };
        let distinct = self.once_in(4);
        let kind = match number.kind() {
            Kind::Real => Kind::Real,
            Kind::Decimal => Kind::Decimal,
            _ => Kind::Big,
        };
        match self.below(8) {
            0 => count(),
            1 | 2 => {
                let column = self.column(sight, keys).unwrap_or(number);
                let mut aggregate = plain("count", column, Kind::Big);
                aggregate.distinct = distinct || self.once_in(4);
                if self.once_in(3)
                    && let Some(other) = self.column(sight, |kind| keys(kind) && sorts(kind))
                {
                    aggregate.arguments.push(other);
                }
                aggregate
            }
            3 | 4 => Aggregate { distinct, ..plain("sum", number, kind) },
            5 => {
                let kind = if kind == Kind::Decimal { kind } else { Kind::Real };
                Aggregate { distinct, ..plain("avg", number, kind) }
            }
            place => {
                let column = self.column(sight, sorts).unwrap_or(number);
                let kind = column.kind();
                Aggregate {
                    distinct: self.once_in(12),
                    ..plain(["min", "max"][place - 6], column, kind)
                }
            }
        }
    }

    fn fallback(&mut self, sight: &Sight, functions: &[&'static str]) -> Aggregate {
        let whole = self.scalar(sight, Kind::Integer, 0);
        let real = match self.once_in(2) {
            true => self.scalar(sight, Kind::Real, 0),
            false => whole.clone(),
        };
        let text = self.scalar(sight, Kind::Text, 0);
        let truth = self.condition(sight, 0);
        let any = self.column(sight, sorts).unwrap_or_else(|| whole.clone());
        let descending = self.once_in(3);
        let order =
            |expr: &Expr| vec![Order { expr: expr.clone(), descending, nulls_first: descending }];
        let function = self.one_of(functions);
        match function {
            "bool_and" | "bool_or" => plain(function, truth, Kind::Boolean),
            "bit_and" | "bit_or" | "bit_xor" => plain(function, whole, Kind::Integer),
            "string_agg" => {
                let mut aggregate = plain(function, text.clone(), Kind::Text);
                aggregate.arguments.push(Expr::literal(Value::Text(",".to_owned()), Kind::Text));
                if !self.once_in(3) {
                    aggregate.order = order(&text);
                }
                aggregate
            }
            "array_agg" | "first_value" | "last_value" | "nth_value" => {
                let of = if function == "array_agg" { whole } else { any };
                let kind = if function == "array_agg" { Kind::List } else { of.kind() };
                let mut aggregate = plain(function, of.clone(), kind);
                if function == "nth_value" {
                    aggregate.arguments.push(Expr::whole(2));
                }
                if !self.once_in(3) {
                    aggregate.order = order(&of);
                }
                aggregate
            }
            "corr" | "covar_samp" | "regr_slope" | "regr_count" => {
                let cast = |expr: Expr| Expr::Cast(Box::new(expr), Kind::Real, false);
                let kind = if function == "regr_count" { Kind::Unsigned } else { Kind::Real };
                // Of small numbers: with large ones, cancellation destroys the result in every database.
                let other = self.scalar(sight, Kind::Big, 0);
                let mut aggregate = plain(function, cast(other), kind);
                aggregate.arguments.push(cast(whole));
                aggregate
            }
            "approx_distinct" => plain(function, whole, Kind::Unsigned),
            "percentile_cont" => {
                let number = Expr::Cast(Box::new(real), Kind::Real, false);
                let mut aggregate = plain(function, number, Kind::Real);
                aggregate.arguments.push(Expr::literal(Value::Float(0.5), Kind::Real));
                aggregate
            }
            _ => plain(function, Expr::Cast(Box::new(real), Kind::Real, false), Kind::Real),
        }
    }
}

struct Columns(bool);

impl Visitor for Columns {
    fn expr(&mut self, expr: &Expr) {
        self.0 |= matches!(expr, Expr::Column(..));
    }
}

fn has_column(expr: &Expr) -> bool {
    let mut columns = Columns(false);
    visit::expr(expr, &mut columns);
    columns.0
}

pub(super) fn count() -> Aggregate {
    Aggregate {
        function: "count",
        arguments: Vec::new(),
        distinct: false,
        order: Vec::new(),
        filter: None,
        kind: Kind::Big,
    }
}

pub(super) fn plain(function: &'static str, argument: Expr, kind: Kind) -> Aggregate {
    Aggregate { function, arguments: vec![argument], kind, ..count() }
}
