//! The names of the SQL constructs that a query uses.

use std::collections::BTreeSet;

use super::pivot::{Pivot, Unpivot};
use super::uses;
use super::visit::{self, Visitor};
use super::{
    Aggregate, Body, Distinct, Expr, From, Function, Group, JoinKind, Kind, Op, Query, Select,
    SetOperation, Sets, Span, Units, Window,
};

/// The constructs of a query.
pub(crate) fn of(query: &Query) -> BTreeSet<String> {
    let mut finder = Finder::default();
    visit::query(query, &mut finder);
    finder.found
}

#[derive(Default)]
struct Finder {
    found: BTreeSet<String>,
}

impl Finder {
    fn note(&mut self, name: impl Into<String>) {
        self.found.insert(name.into());
    }

    fn note_all(&mut self, names: Vec<&'static str>) {
        names.into_iter().for_each(|name| self.note(name));
    }

    fn binary(&mut self, left: &Expr, op: Op, right: &Expr) {
        match op {
            Op::Add => self.note("+"),
            Op::Subtract => self.note("-"),
            Op::Multiply => self.note("*"),
            Op::Divide => self.note("/"),
            Op::Modulo => self.note("%"),
            Op::Concat => self.note("||"),
            Op::Same | Op::Differs => self.note("is distinct from"),
            Op::And => self.note("and"),
            Op::Or => self.note("or"),
            _ => self.note("comparison"),
        }
        let large = |side: &Expr| matches!(side, Expr::Literal(super::Value::Whole(value), _) if value.abs() > i128::from(u32::MAX));
        let divides = matches!(op, Op::Divide | Op::Modulo);
        let sure = matches!(right, Expr::Literal(value, _) if *value != super::Value::Whole(0));
        if divides && !sure && left.kind().is_whole() {
            self.note("error");
        }
        if op.is_arithmetic() && (large(left) || large(right)) {
            self.note("error");
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        self.note(aggregate.function);
        for (name, is_there) in [
            ("distinct in an aggregate", aggregate.distinct),
            ("filter", aggregate.filter.is_some()),
            ("order by in an aggregate", !aggregate.order.is_empty()),
        ] {
            if is_there {
                self.note(name);
            }
        }
        let cancel =
            ["corr", "covar_samp", "regr_slope", "var_samp", "var_pop", "stddev", "stddev_pop"];
        if cancel.contains(&aggregate.function) {
            self.note("sums that cancel");
        }
        let ordered = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];
        if ordered.contains(&aggregate.function) && aggregate.order.is_empty() {
            self.note("in no order");
        }
        if aggregate.function == "count" && aggregate.arguments.len() > 1 {
            self.note("count of several columns");
        }
    }

    fn window(&mut self, window: &Window) {
        self.note(format!("{} over", window.function));
        if window.ignore_nulls {
            self.note("ignore nulls");
        }
        if !window.partition.is_empty() {
            self.note("partition by");
        }
        if let Some(frame) = window.frame {
            self.note(match frame.units {
                Units::Rows => "frame of rows",
                Units::Range => "frame of a range",
                Units::Groups => "frame of groups",
            });
        }
    }
}

fn function_name(function: Function) -> &'static str {
    match function {
        Function::Abs => "abs",
        Function::Upper | Function::Lower => "upper, lower",
        Function::Length => "length",
        Function::Substr => "substr",
        Function::Replace => "replace",
        Function::Coalesce => "coalesce",
        Function::NullIf => "nullif",
        Function::Greatest | Function::Least => "greatest, least",
        Function::TruncateHour | Function::TruncateDay | Function::TruncateMonth => "date_trunc",
        Function::Minute => "date_part",
        Function::Hour | Function::Day => "extract",
        Function::Cardinality => "cardinality",
        Function::ArrayHas => "array_has",
        Function::ArrayAppend => "array_append",
        Function::ArrayToString => "array_to_string",
    }
}

fn relations(from: &From) -> usize {
    match from {
        From::Join(join) => relations(&join.left) + relations(&join.right),
        _ => 1,
    }
}

fn conjuncts(on: &Expr) -> Vec<&Expr> {
    match on {
        Expr::Binary(left, Op::And, right) => {
            conjuncts(left).into_iter().chain(conjuncts(right)).collect()
        }
        other => vec![other],
    }
}

fn names(from: &From, names_found: &mut Vec<String>) {
    match from {
        From::Relation(name, _) => names_found.push(name.clone()),
        From::Join(join) => {
            names(&join.left, names_found);
            names(&join.right, names_found);
        }
        _ => {}
    }
}

impl Visitor for Finder {
    fn query(&mut self, query: &Query) {
        if !query.with.is_empty() {
            self.note("with");
        }
        if let Some(top) = &query.top {
            self.note(if top.with_ties { "with ties" } else { "limit" });
            if top.offset > 0 {
                self.note("offset");
            }
        }
        self.note_all(uses::of_floats_in_query(query));
        if let Body::Set(operation, all, ..) = &query.body {
            let name = match operation {
                SetOperation::Union => "union",
                SetOperation::Intersect => "intersect",
                SetOperation::Except => "except",
            };
            self.note(format!("{name}{}", if *all { " all" } else { "" }));
        }
    }

    fn select(&mut self, select: &Select) {
        self.note_all(uses::of_floats(select));
        self.note_all(uses::of_clocks(select));
        let parts = select.filter.iter().flat_map(conjuncts);
        self.note_all(parts.filter_map(uses::of_thresholds).collect());
        match &select.distinct {
            Distinct::All => {}
            Distinct::Rows => self.note("distinct"),
            Distinct::On(..) => self.note("distinct on"),
        }
        match &select.group {
            Group::None => {}
            Group::Keys(_) => self.note("group by"),
            Group::Sets(_, Sets::Rollup) => self.note("rollup"),
            Group::Sets(_, Sets::Cube) => self.note("cube"),
            Group::Sets(_, Sets::Listed(_)) => self.note("grouping sets"),
        }
        let aggregates = select.items.iter().any(|item| matches!(item.expr, Expr::Aggregate(_)));
        if aggregates && select.group == Group::None {
            self.note("aggregate without group by");
        }
        for (name, is_there) in [
            ("where", select.filter.is_some()),
            ("having", select.having.is_some()),
            ("qualify", select.qualify.is_some()),
        ] {
            if is_there {
                self.note(name);
            }
        }
        for item in &select.items {
            if matches!(item.expr, Expr::Exists(..) | Expr::Among(..) | Expr::Scalar(..)) {
                self.note("subquery in select");
            }
        }
        let asks_first = |expr: &Expr| {
            matches!(expr, Expr::Binary(window, Op::LessEqual | Op::Less | Op::Equal, _)
                if matches!(&**window, Expr::Window(_)))
        };
        if select.qualify.as_ref().is_some_and(asks_first) {
            self.note("first rows by number");
        }
        if let (Some(From::Derived(inner, alias)), Some(filter)) = (&select.from, &select.filter)
            && let Body::Select(inner) = &inner.body
            && let Some(last) = inner.items.last()
            && matches!(last.expr, Expr::Window(_))
            && conjuncts(filter).iter().any(|part| {
                matches!(part, Expr::Binary(column, _, _)
                    if matches!(&**column, Expr::Column(relation, name, _) if relation == alias && *name == last.name))
            })
        {
            self.note("first rows by number");
        }
        if let Some(from) = &select.from {
            let joined = relations(from);
            if joined > 1 {
                self.note(format!("join of {joined} relations"));
                let mut all = Vec::new();
                names(from, &mut all);
                let different: BTreeSet<&String> = all.iter().collect();
                if different.len() < all.len() {
                    self.note("join with itself");
                }
            }
        }
    }

    fn from(&mut self, from: &From) {
        match from {
            From::Relation(name, _) => {
                if name.starts_with('v') {
                    self.note("view over a view");
                }
            }
            From::Recursive(recursion, _) => {
                self.note(if recursion.all { "recursion of all" } else { "recursion" });
            }
            From::Derived(query, _) => {
                self.note("subquery in from");
                if Unpivot::of(query).is_some() {
                    self.note("unpivot");
                }
                if Pivot::of(query).is_some() {
                    self.note("pivot");
                }
            }
            From::Lateral(.., keeps_left) => {
                self.note(if *keeps_left { "left lateral join" } else { "lateral join" });
            }
            From::Join(join) => {
                self.note(match join.kind {
                    JoinKind::Inner => "join",
                    JoinKind::Left => "left join",
                    JoinKind::Right => "right join",
                    JoinKind::Full => "full join",
                    JoinKind::Cross => "cross join",
                    JoinKind::LeftSemi => "left semi join",
                    JoinKind::RightSemi => "right semi join",
                    JoinKind::LeftAnti => "left anti join",
                    JoinKind::RightAnti => "right anti join",
                    JoinKind::Asof => "asof join",
                    JoinKind::LeftAsof => "left asof join",
                });
                if !join.using.is_empty() {
                    self.note("join using");
                }
                if uses::joins_thresholds(join) {
                    self.note("table of thresholds");
                }
                if let Some(on) = &join.on
                    && !join.kind.is_asof()
                {
                    let parts = conjuncts(on);
                    if uses::joins_floats(&parts) {
                        self.note("floats: join");
                    }
                    let equal = |part: &&&Expr| {
                        matches!(part, Expr::Binary(a, Op::Equal | Op::Same, b)
                            if matches!((&**a, &**b), (Expr::Column(..), Expr::Column(..))))
                    };
                    match parts.iter().filter(equal).count() {
                        0 => self.note("join without equality"),
                        count if count < parts.len() => {
                            self.note(match join.kind {
                                JoinKind::Inner => "further condition of an inner join",
                                kind if kind.is_filter() => {
                                    "further condition of a semi or anti join"
                                }
                                _ => "further condition of an outer join",
                            });
                        }
                        _ => {}
                    }
                    let same = |part: &&Expr| matches!(part, Expr::Binary(_, Op::Same, _));
                    if parts.iter().any(same) {
                        self.note("join on is not distinct from");
                    }
                }
            }
            From::Windowed(.., span) => self.note(match span {
                Span::Tumble(..) => "tumble",
                Span::Hop(..) => "hop",
                Span::Session(..) => "session",
            }),
            From::Unnested(.., place, keeps_left) => {
                self.note(if *keeps_left { "left join unnest" } else { "unnest in from" });
                if place.is_some() {
                    self.note("with ordinality");
                }
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        self.note_all(uses::of_floats_in(expr));
        match expr {
            Expr::Column(_, _, kind) => self.note(format!("type {}", kind.sql())),
            Expr::Literal(..) => {}
            Expr::Binary(left, op, right) => self.binary(left, *op, right),
            Expr::Not(_) => self.note("not"),
            Expr::Minus(_) => self.note("minus"),
            Expr::IsNull(..) => self.note("is null"),
            Expr::IsTrue(..) => self.note("is true"),
            Expr::Between(..) => self.note("between"),
            Expr::In(..) => self.note("in list"),
            Expr::Like(..) => self.note("like"),
            Expr::Case(..) => self.note("case"),
            Expr::Call(function, _) => self.note(function_name(*function)),
            Expr::Cast(inner, kind, try_it) => {
                self.note(if *try_it { "try_cast" } else { "cast" });
                if !try_it && inner.kind() == Kind::Text && *kind != Kind::Text {
                    self.note("error");
                }
            }
            Expr::Shift(..) => self.note("interval"),
            Expr::Move(inner, length) => {
                if inner.kind() == Kind::Date {
                    self.note("date and interval");
                }
                if length.months != 0 {
                    self.note("interval of months");
                }
            }
            Expr::Days(..) => self.note("date and days"),
            Expr::Apart(..) => self.note("difference of times"),
            Expr::AtZone(inner, _) => self.note(match inner.kind() {
                Kind::Zoned => "wall clock of an instant",
                _ => "instant of a wall clock",
            }),
            Expr::Element(..) => self.note("element of a list"),
            Expr::Field(inner, ..) => self.note(match inner.kind() {
                Kind::Map => "value of a map",
                _ => "field of a struct",
            }),
            Expr::MakeList(_) => self.note("list of expressions"),
            Expr::MakeStruct(_) => self.note("struct of expressions"),
            Expr::Now => self.note("now"),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            Expr::Window(window) => self.window(window),
            Expr::Grouping(_) => self.note("grouping()"),
            Expr::Unnest(_) => self.note("unnest in select"),
            Expr::Exists(_, negated) => {
                self.note(if *negated { "not exists" } else { "exists" });
            }
            Expr::Among(_, _, negated) => {
                self.note(if *negated { "not in subquery" } else { "in subquery" });
            }
            Expr::Rows(..) => self.note("comparison of rows"),
            Expr::RowAmong(_, _, negated) => {
                self.note(if *negated { "row not in subquery" } else { "row in subquery" });
            }
            Expr::RowScalar(..) => self.note("row beside a subquery"),
            Expr::Scalar(query, _) => {
                self.note("scalar subquery");
                let aggregated = matches!(&query.body, Body::Select(select)
                    if select.items.iter().any(|item| matches!(item.expr, Expr::Aggregate(_))));
                if !aggregated {
                    self.note("error");
                }
            }
        }
    }
}
