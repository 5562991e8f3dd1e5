//! Scalar expressions.

use super::{Dialect, Text};
use crate::own;
use crate::query::expression::{Expr, Function, Op};
use crate::query::kind::Kind;
use crate::query::select::{Body, Distinct, From, Group, Query};
use crate::query::value::Value;
use crate::query::visit::{self, Visitor};
use crate::query::zone::Length;

impl Text {
    /// Writes an operand, in parentheses unless it is a single token or a call.
    fn operand_of(&mut self, expr: &Expr) {
        let is_simple =
            matches!(expr, Expr::Column(..) | Expr::Call(..) | Expr::Cast(..) | Expr::Aggregate(_))
                || matches!(expr, Expr::Literal(value, _) if !value.literal().starts_with('-'));
        if is_simple {
            return self.expr(expr);
        }
        self.push("(");
        self.expr(expr);
        self.push(")");
    }

    fn with_operand(&mut self, before: &str, expr: &Expr, after: &str) {
        self.push(before);
        self.operand_of(expr);
        self.push(after);
    }

    pub(super) fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Column(relation, name, _) => {
                if !relation.is_empty() {
                    self.push(&format!("{relation}."));
                }
                self.push(name);
            }
            Expr::Literal(value, kind) => self.literal(value, *kind),
            Expr::Binary(left, op, right) => self.binary(left, *op, right),
            Expr::Not(inner) => self.with_operand("NOT ", inner, ""),
            Expr::Minus(inner) => self.with_operand("-", inner, ""),
            Expr::IsNull(inner, negated) => {
                self.with_operand("", inner, &format!(" IS {}NULL", not(*negated)));
            }
            Expr::IsTrue(inner, negated) => {
                self.with_operand("", inner, &format!(" IS {}TRUE", not(*negated)));
            }
            Expr::Between(inner, low, high, negated) => {
                self.with_operand("", inner, &format!(" {}BETWEEN ", not(*negated)));
                self.with_operand("", low, " AND ");
                self.operand_of(high);
            }
            Expr::In(inner, list, negated) => {
                self.with_operand("", inner, &format!(" {}IN (", not(*negated)));
                self.exprs(list);
                self.push(")");
            }
            Expr::Like(inner, pattern, negated) => {
                self.with_operand("", inner, &format!(" {}LIKE '{pattern}'", not(*negated)));
            }
            Expr::Case(operand, branches, otherwise) => {
                self.case(operand.as_deref(), branches, otherwise.as_deref())
            }
            Expr::Call(function, arguments) => self.call(*function, arguments),
            Expr::Cast(inner, kind, try_it) => self.cast(inner, *kind, *try_it),
            Expr::Shift(inner, seconds) => self.shift(inner, *seconds),
            Expr::Move(inner, length) => self.moved(inner, *length),
            Expr::Days(inner, days) => {
                let (sign, days) = (if *days < 0 { '-' } else { '+' }, days.abs());
                match self.dialect {
                    Dialect::Sqlite => {
                        self.push("date(");
                        self.expr(inner);
                        self.push(&format!(", '{sign}{days} days')"));
                    }
                    _ => {
                        self.only(&[Dialect::DuckDb]);
                        self.with_operand("", inner, &format!(" {sign} {days}"));
                    }
                }
            }
            Expr::Apart(a, b) => self.apart(a, b),
            Expr::AtZone(inner, zone) => {
                // DataFusion gives an instant another zone, and has no wall clock.
                self.only(&[]);
                self.with_operand("", inner, &format!(" AT TIME ZONE '{}'", zone.sql()));
            }
            Expr::Element(inner, place) => {
                self.only(&[Dialect::DataFusion]);
                self.with_operand("", inner, &format!("[{place}]"));
            }
            Expr::Field(inner, name, _) => {
                self.only(&[Dialect::DataFusion]);
                self.with_operand("", inner, &format!("['{name}']"));
            }
            Expr::MakeList(items) => {
                self.only(&[Dialect::DataFusion]);
                self.push("[");
                self.exprs(items);
                self.push("]");
            }
            Expr::MakeStruct(items) => self.make_struct(items),
            Expr::Now => match self.dialect {
                // A timestamp without a time zone; NOW() has one.
                Dialect::Alluvium => self.push("CAST(NOW() AS TIMESTAMP)"),
                _ => self.literal(&Value::Moment(self.now), Kind::Moment),
            },
            Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            Expr::Window(window) => self.window(window),
            Expr::Grouping(inner) => {
                self.push("GROUPING(");
                self.expr(inner);
                self.push(")");
            }
            Expr::Unnest(inner) => {
                self.only(&[Dialect::DataFusion]);
                self.push("UNNEST(");
                self.expr(inner);
                self.push(")");
            }
            Expr::Exists(query, negated) => {
                self.only_if_plain(query, false);
                self.push(&format!("{}EXISTS (", not(*negated)));
                self.query(query);
                self.push(")");
            }
            Expr::Among(inner, query, negated) => self.among(inner, query, *negated),
            Expr::Scalar(query, _) => self.scalar(query),
            Expr::Rows(left, op, right) => {
                self.row(left);
                self.push(&format!(" {} ", op.sql()));
                self.row(right);
            }
            Expr::RowAmong(row, query, negated) => {
                self.row(row);
                self.push(&format!(" {}IN (", not(*negated)));
                self.query(query);
                self.push(")");
            }
            Expr::RowScalar(row, op, query) => {
                self.row(row);
                self.push(&format!(" {} (", op.sql()));
                self.query(query);
                self.push(")");
            }
        }
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) {
        self.push("CASE");
        if let Some(operand) = operand {
            self.with_operand(" ", operand, "");
        }
        for (condition, value) in branches {
            self.push(" WHEN ");
            self.expr(condition);
            self.push(" THEN ");
            self.expr(value);
        }
        if let Some(otherwise) = otherwise {
            self.push(" ELSE ");
            self.expr(otherwise);
        }
        self.push(" END");
    }

    fn shift(&mut self, inner: &Expr, seconds: i64) {
        match self.dialect {
            Dialect::Sqlite => {
                self.push("datetime(");
                self.expr(inner);
                self.push(&format!(", '{seconds:+} seconds')"));
            }
            _ => {
                let sign = if seconds < 0 { '-' } else { '+' };
                let length = interval(seconds);
                self.with_operand("", inner, &format!(" {sign} {length}"));
            }
        }
    }

    fn moved(&mut self, inner: &Expr, length: Length) {
        if self.dialect == Dialect::Sqlite {
            // Its months do not end on their last day.
            self.refuse();
        }
        if inner.kind() == Kind::Date {
            // In DataFusion the sum is a date.
            self.only(&[Dialect::DuckDb]);
        }
        let sign = if length.is_negative() { '-' } else { '+' };
        self.with_operand("", inner, &format!(" {sign} {}", length.sql()));
    }

    fn apart(&mut self, a: &Expr, b: &Expr) {
        let of_dates = a.kind() == Kind::Date;
        // DataFusion has another type for the difference, and SQLite none.
        self.only(if of_dates { &[Dialect::DuckDb] } else { &[] });
        self.push(if of_dates { "(" } else { "EXTRACT(EPOCH FROM (" });
        self.operand_of(a);
        self.push(" - ");
        self.operand_of(b);
        self.push(if of_dates { ")" } else { "))" });
    }

    /// A row of values, which DataFusion takes for a struct.
    fn row(&mut self, exprs: &[Expr]) {
        self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
        self.push("(");
        self.exprs(exprs);
        self.push(")");
    }

    fn make_struct(&mut self, items: &[Expr]) {
        self.only(&[Dialect::DataFusion]);
        let names = ["x", "y"];
        self.push("{");
        for (place, item) in items.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            self.push(&format!("{comma}'{}': ", names[place]));
            self.expr(item);
        }
        self.push("}");
    }

    fn among(&mut self, inner: &Expr, query: &Query, negated: bool) {
        // DataFusion ignores a NULL among the values if this is only a part of the condition.
        if negated {
            self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
        }
        self.only_if_plain(query, false);
        self.with_operand("", inner, &format!(" {}IN (", not(negated)));
        self.query(query);
        self.push(")");
    }

    /// DataFusion rewrites subqueries of plain selections only, and not all others without errors: to EXISTS and IN, an aggregate
    /// without GROUP BY has no row where it finds nothing.
    fn only_if_plain(&mut self, query: &Query, is_scalar: bool) {
        let is_plain = query.top.is_none()
            && matches!(&query.body, Body::Select(select)
                if matches!(select.from, Some(From::Relation(_, _)))
                    && select.distinct == Distinct::All
                    && select.group == Group::None
                    && select.having.is_none()
                    && (is_scalar || !matches!(select.items[0].expr, Expr::Aggregate(_)))
                    && select.filter.as_ref().is_none_or(|filter| !has_subquery(filter)));
        if !is_plain {
            self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
        }
    }

    fn scalar(&mut self, query: &Query) {
        // DataFusion assumes that a constant of a subquery is never NULL, and refuses correlated subqueries.
        let is_aggregate = matches!(&query.body, Body::Select(select)
                    if matches!(select.items[0].expr, Expr::Aggregate(_)));
        if !is_aggregate {
            self.only(&[]);
        }
        self.only_if_plain(query, true);
        self.push("(");
        self.query(query);
        self.push(")");
    }

    fn literal(&mut self, value: &Value, kind: Kind) {
        let text = value.literal();
        if value.is_null() {
            return match (self.dialect, kind.sqlite()) {
                (Dialect::Sqlite, None) => self.push("NULL"),
                (Dialect::Sqlite, Some(name)) => self.push(&format!("CAST(NULL AS {name})")),
                _ => self.push(&format!("CAST(NULL AS {})", kind.sql())),
            };
        }
        if kind.is_nested() {
            self.only(&[Dialect::DataFusion]);
        }
        if value.is_special() && self.dialect != Dialect::Alluvium {
            // SQLite has no NaN, and DataFusion tells zeros apart.
            self.only(&[Dialect::DuckDb]);
        }
        match kind {
            Kind::Real if value.is_special() => self.push(&text),
            Kind::Date | Kind::Clock | Kind::Moment | Kind::Zoned | Kind::Decimal
                if self.dialect != Dialect::Sqlite =>
            {
                self.push(&format!("CAST({text} AS {})", kind.sql()));
            }
            // Without the cast, the literal would be a BIGINT or a DECIMAL.
            Kind::Tiny
            | Kind::Small
            | Kind::Integer
            | Kind::Unsigned
            | Kind::Float
            | Kind::Real
                if self.dialect != Dialect::Sqlite =>
            {
                self.push(&format!("CAST({text} AS {})", kind.sql()));
            }
            _ => self.push(&text),
        }
    }

    fn binary(&mut self, left: &Expr, op: Op, right: &Expr) {
        if self.dialect == Dialect::Sqlite && op.is_arithmetic() && op != Op::Add {
            let decimal = [left, right].iter().any(|side| side.kind() == Kind::Decimal);
            let real = [left, right].iter().any(|side| !side.kind().is_whole());
            // In SQLite, % truncates its operands to integers, and / divides decimals without a fraction as integers.
            if op == Op::Modulo && real || op == Op::Divide && decimal {
                self.refuse();
            }
        }
        if matches!(op, Op::And | Op::Or)
            && let (Expr::In(one, ..), Expr::In(other, ..)) = (left, right)
            && one == other
        {
            // DataFusion forgets that the operand of both lists may be NULL.
            self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
        }
        let start = self.text.len();
        self.operand_of(left);
        self.push(&format!(" {} ", op.sql()));
        self.operand_of(right);
        // As for functions of the engine's own, the text decides.
        let is_called = self.calls_own && (self.text.len() - start).is_multiple_of(4);
        if is_called && let Some(function) = own::defined(op) {
            self.text.truncate(start);
            self.push(&format!("{function}("));
            self.exprs_of(&[left, right]);
            self.push(")");
        }
    }

    fn exprs_of(&mut self, exprs: &[&Expr]) {
        self.list(exprs, |text, expr| text.expr(expr));
    }

    fn cast(&mut self, inner: &Expr, kind: Kind, try_it: bool) {
        if self.dialect == Dialect::Sqlite {
            let from = inner.kind();
            let is_same = from.is_whole() && (kind.is_whole() || kind == Kind::Text)
                || from.is_whole() && kind == Kind::Real
                || from == kind;
            match kind.sqlite() {
                Some(name) if is_same => {
                    self.push("CAST(");
                    self.expr(inner);
                    self.push(&format!(" AS {name})"));
                }
                _ => self.refuse(),
            }
            return;
        }
        if matches!(inner.kind(), Kind::Float | Kind::Real) && kind.is_whole() {
            // DataFusion cuts the fraction off.
            self.only(&[Dialect::DuckDb]);
        }
        self.push(if try_it { "TRY_CAST(" } else { "CAST(" });
        self.expr(inner);
        self.push(&format!(" AS {})", kind.sql()));
    }

    fn call(&mut self, function: Function, arguments: &[Expr]) {
        let (name, in_sqlite) = match function {
            Function::Abs => ("ABS", Some("ABS")),
            Function::Upper => ("UPPER", Some("UPPER")),
            Function::Lower => ("LOWER", Some("LOWER")),
            Function::Length => ("LENGTH", Some("LENGTH")),
            Function::Substr => ("SUBSTR", Some("SUBSTR")),
            Function::Replace => ("REPLACE", Some("REPLACE")),
            Function::Coalesce => ("COALESCE", Some("COALESCE")),
            Function::NullIf => ("NULLIF", Some("NULLIF")),
            // In SQLite these return NULL if any argument is NULL.
            Function::Greatest => ("GREATEST", None),
            Function::Least => ("LEAST", None),
            Function::TruncateHour | Function::TruncateDay | Function::TruncateMonth => {
                ("DATE_TRUNC", None)
            }
            Function::Minute => ("DATE_PART", None),
            Function::Hour | Function::Day => ("EXTRACT", None),
            Function::Cardinality => ("CARDINALITY", None),
            Function::ArrayHas => ("ARRAY_HAS", None),
            Function::ArrayAppend => ("ARRAY_APPEND", None),
            Function::ArrayToString => ("ARRAY_TO_STRING", None),
        };
        let start = self.text.len();
        match (self.dialect, in_sqlite) {
            (Dialect::Sqlite, None) => self.refuse(),
            (Dialect::Sqlite, Some(name)) => self.push(name),
            _ => self.push(name),
        }
        self.push(match function {
            Function::TruncateHour => "('hour', ",
            Function::TruncateDay => "('day', ",
            Function::TruncateMonth => "('month', ",
            Function::Minute => "('minute', ",
            Function::Hour => "(HOUR FROM ",
            Function::Day => "(DAY FROM ",
            _ => "(",
        });
        self.exprs(arguments);
        self.push(match function {
            Function::ArrayToString => ", '+')",
            _ => ")",
        });
        self.own(start, &name.to_lowercase());
    }
}

/// A length of time, in all dialects but SQLite's.
pub(super) fn interval(seconds: i64) -> String {
    format!("INTERVAL '{} seconds'", seconds.abs())
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

fn has_subquery(expr: &Expr) -> bool {
    struct Finder(bool);
    impl Visitor for Finder {
        fn expr(&mut self, expr: &Expr) {
            self.0 |= matches!(
                expr,
                Expr::Exists(..)
                    | Expr::Among(..)
                    | Expr::Scalar(..)
                    | Expr::RowAmong(..)
                    | Expr::RowScalar(..)
            );
        }
    }
    let mut finder = Finder(false);
    visit::expr(expr, &mut finder);
    finder.0
}
