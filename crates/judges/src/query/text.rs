//! Trees written as SQL, for who is asked.

use super::expression::{Aggregate, Bound, Expr, Frame, Function, Op, Order, Units, Window};
use super::kind::Kind;
use super::select::{Body, Distinct, From, Group, JoinKind, Query, Select, SetOperation, Sets};
use super::value::Value;

/// Whose SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Alluvium,
    DataFusion,
    Sqlite,
    DuckDb,
}

/// A query in a dialect, `now` being the time; `None` if it cannot be said there, or means something else.
pub(crate) fn sql(query: &Query, dialect: Dialect, now: i64) -> Option<String> {
    let mut text = Text { dialect, now, text: String::new(), refused: false };
    text.query(query);
    (!text.refused).then_some(text.text)
}

/// A condition of a statement, as all say it.
pub(crate) fn condition(expr: &Expr) -> String {
    let mut text = Text { dialect: Dialect::Alluvium, now: 0, text: String::new(), refused: false };
    text.expr(expr);
    text.text
}

pub(super) struct Text {
    pub(super) dialect: Dialect,
    now: i64,
    text: String,
    refused: bool,
}

impl Text {
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn refuse(&mut self) {
        self.refused = true;
    }

    /// Refuses unless this is Alluvium, or one of these.
    pub(super) fn only(&mut self, others: &[Dialect]) {
        if self.dialect != Dialect::Alluvium && !others.contains(&self.dialect) {
            self.refuse();
        }
    }

    fn list<N>(&mut self, nodes: &[N], mut write: impl FnMut(&mut Self, &N)) {
        for (place, node) in nodes.iter().enumerate() {
            if place > 0 {
                self.push(", ");
            }
            write(self, node);
        }
    }

    pub(super) fn exprs(&mut self, exprs: &[Expr]) {
        self.list(exprs, Self::expr);
    }

    pub(super) fn query(&mut self, query: &Query) {
        if !query.with.is_empty() {
            self.push("WITH ");
            self.list(&query.with, |text, (name, inner)| {
                text.push(&format!("{name} AS ("));
                text.query(inner);
                text.push(")");
            });
            self.push(" ");
        }
        match &query.body {
            Body::Select(select) => self.select(select),
            Body::Set(operation, all, left, right) => {
                if *all && *operation != SetOperation::Union {
                    // DataFusion joins, and does not count.
                    self.only(&[Dialect::DuckDb]);
                }
                self.operand(left);
                let word = match operation {
                    SetOperation::Union => " UNION ",
                    SetOperation::Intersect => " INTERSECT ",
                    SetOperation::Except => " EXCEPT ",
                };
                self.push(word);
                self.push(if *all { "ALL " } else { "" });
                self.operand(right);
            }
        }
        if let Some(top) = &query.top {
            match &query.body {
                Body::Select(select) if matches!(select.group, Group::Sets(..)) => {
                    // DataFusion takes a key that a condition makes one value for that value in all sets.
                    self.only(&[Dialect::DuckDb]);
                }
                Body::Select(select) if select.from.as_ref().is_some_and(has_outer_join) => {
                    // DataFusion takes what ON makes one value for that value in rows without a partner.
                    self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
                }
                Body::Set(..) => {
                    // DataFusion takes what is one constant in each part for one in all of them.
                    self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
                }
                Body::Select(_) => {}
            }
            let columns = query.columns();
            if !top.order.is_empty() {
                self.push(" ORDER BY ");
                self.list(&top.order, |text, (column, descending, nulls_first)| {
                    text.push(&columns[*column].0);
                    text.direction(*descending, *nulls_first);
                });
            }
            self.push(&format!(" LIMIT {}", top.limit));
            if top.offset > 0 {
                self.push(&format!(" OFFSET {}", top.offset));
            }
        }
    }

    fn operand(&mut self, query: &Query) {
        let is_plain = query.with.is_empty()
            && query.top.is_none()
            && matches!(&query.body, Body::Select(select) if !matches!(select.distinct, Distinct::On(..)));
        if is_plain {
            return self.query(query);
        }
        self.push("SELECT * FROM (");
        self.query(query);
        self.push(") AS operand");
    }

    fn direction(&mut self, descending: bool, nulls_first: bool) {
        self.push(if descending { " DESC" } else { "" });
        // What is not said is NULLs last, and first if descending.
        if self.dialect != Dialect::Alluvium || nulls_first != descending {
            self.push(if nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
    }

    fn orders(&mut self, orders: &[Order]) {
        self.list(orders, |text, order| {
            text.expr(&order.expr);
            text.direction(order.descending, order.nulls_first);
        });
    }

    fn select(&mut self, select: &Select) {
        self.push("SELECT ");
        match &select.distinct {
            Distinct::All => {}
            Distinct::Rows => self.push("DISTINCT "),
            Distinct::On(on, _) => {
                self.only(&[Dialect::DataFusion, Dialect::DuckDb]);
                self.push("DISTINCT ON (");
                self.exprs(on);
                self.push(") ");
            }
        }
        self.list(&select.items, |text, item| {
            if matches!(item.expr, Expr::Exists(..) | Expr::Among(..)) {
                // DataFusion has these in conditions only.
                text.only(&[Dialect::Sqlite, Dialect::DuckDb]);
            }
            text.expr(&item.expr);
            text.push(&format!(" AS {}", item.name));
        });
        if let Some(from) = &select.from {
            self.push(" FROM ");
            self.from(from);
        }
        if let Some(filter) = &select.filter {
            if select.from.as_ref().is_some_and(has_row_of_nothing) {
                // DataFusion loses the condition where it is the same for all rows.
                self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
            }
            self.push(" WHERE ");
            self.expr(filter);
        }
        match &select.group {
            Group::None => {}
            Group::Keys(keys) => {
                self.push(" GROUP BY ");
                self.exprs(keys);
            }
            Group::Sets(keys, sets) => {
                if matches!(&select.from, Some(From::Derived(query, _)) if matches!(query.body, Body::Set(..)))
                {
                    // DataFusion has a total for each part where a key is one constant in all of them.
                    self.only(&[Dialect::DuckDb]);
                }
                self.sets(keys, sets);
            }
        }
        if let Some(having) = &select.having {
            self.push(" HAVING ");
            self.expr(having);
        }
        if let Some(qualify) = &select.qualify {
            self.only(&[Dialect::DataFusion, Dialect::DuckDb]);
            self.push(" QUALIFY ");
            self.expr(qualify);
        }
        if let Distinct::On(_, order) = &select.distinct {
            self.push(" ORDER BY ");
            self.orders(order);
        }
    }

    fn sets(&mut self, keys: &[Expr], sets: &Sets) {
        self.only(&[Dialect::DataFusion, Dialect::DuckDb]);
        match sets {
            Sets::Rollup | Sets::Cube => {
                let word = if *sets == Sets::Rollup { "ROLLUP" } else { "CUBE" };
                self.push(&format!(" GROUP BY {word} ("));
                self.exprs(keys);
            }
            Sets::Listed(sets) => {
                self.push(" GROUP BY GROUPING SETS (");
                self.list(sets, |text, set| {
                    text.push("(");
                    text.list(set, |text, key| text.expr(&keys[*key]));
                    text.push(")");
                });
            }
        }
        self.push(")");
    }

    /// An operand: in parentheses unless it is one word.
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
        let word = |negated: bool| if negated { "NOT " } else { "" };
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
                self.with_operand("", inner, &format!(" IS {}NULL", word(*negated)));
            }
            Expr::IsTrue(inner, negated) => {
                self.with_operand("", inner, &format!(" IS {}TRUE", word(*negated)));
            }
            Expr::Between(inner, low, high, negated) => {
                self.with_operand("", inner, &format!(" {}BETWEEN ", word(*negated)));
                self.with_operand("", low, " AND ");
                self.operand_of(high);
            }
            Expr::In(inner, list, negated) => {
                self.with_operand("", inner, &format!(" {}IN (", word(*negated)));
                self.exprs(list);
                self.push(")");
            }
            Expr::Like(inner, pattern, negated) => {
                self.with_operand("", inner, &format!(" {}LIKE '{pattern}'", word(*negated)));
            }
            Expr::Case(operand, branches, otherwise) => {
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
            Expr::Call(function, arguments) => self.call(*function, arguments),
            Expr::Cast(inner, kind, try_it) => self.cast(inner, *kind, *try_it),
            Expr::Shift(inner, seconds) => match self.dialect {
                Dialect::Sqlite => {
                    self.push("datetime(");
                    self.expr(inner);
                    self.push(&format!(", '{seconds:+} seconds')"));
                }
                _ => {
                    let sign = if *seconds < 0 { '-' } else { '+' };
                    let length = interval(*seconds);
                    self.with_operand("", inner, &format!(" {sign} {length}"));
                }
            },
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
            Expr::MakeStruct(items) => {
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
            Expr::Now => match self.dialect {
                // A moment without a time zone, which NOW() is not.
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
                self.push(&format!("{}EXISTS (", word(*negated)));
                self.query(query);
                self.push(")");
            }
            Expr::Among(inner, query, negated) => {
                // DataFusion takes a NULL among the values for none where this is not all that is asked.
                if *negated {
                    self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
                }
                self.with_operand("", inner, &format!(" {}IN (", word(*negated)));
                self.query(query);
                self.push(")");
            }
            Expr::Scalar(query, _) => {
                // DataFusion takes a constant of a subquery for never NULL, and refuses a correlated one.
                let is_aggregate = matches!(&query.body, Body::Select(select)
                    if matches!(select.items[0].expr, Expr::Aggregate(_)));
                if !is_aggregate {
                    self.only(&[]);
                }
                self.push("(");
                self.query(query);
                self.push(")");
            }
        }
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
        match kind {
            Kind::Date | Kind::Clock | Kind::Moment | Kind::Zoned | Kind::Decimal
                if self.dialect != Dialect::Sqlite =>
            {
                self.push(&format!("CAST({text} AS {})", kind.sql()));
            }
            // Not what it is made of: BIGINT.
            Kind::Tiny | Kind::Small | Kind::Integer | Kind::Unsigned | Kind::Float
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
            // Its modulo is of whole numbers only, and so are its divisions without a point.
            if op == Op::Modulo && real || op == Op::Divide && decimal {
                self.refuse();
            }
        }
        if matches!(op, Op::And | Op::Or)
            && let (Expr::In(one, ..), Expr::In(other, ..)) = (left, right)
            && one == other
        {
            // DataFusion forgets that what is in two lists may be NULL.
            self.only(&[Dialect::Sqlite, Dialect::DuckDb]);
        }
        self.operand_of(left);
        self.push(&format!(" {} ", op.sql()));
        self.operand_of(right);
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
            // Those of SQLite are NULL if any argument is.
            Function::Greatest => ("GREATEST", None),
            Function::Least => ("LEAST", None),
            Function::TruncateHour => ("DATE_TRUNC", None),
            Function::Minute => ("DATE_PART", None),
            Function::Cardinality => ("CARDINALITY", None),
            Function::ArrayHas => ("ARRAY_HAS", None),
            Function::ArrayAppend => ("ARRAY_APPEND", None),
            Function::ArrayToString => ("ARRAY_TO_STRING", None),
        };
        match (self.dialect, in_sqlite) {
            (Dialect::Sqlite, None) => self.refuse(),
            (Dialect::Sqlite, Some(name)) => self.push(name),
            _ => self.push(name),
        }
        self.push(match function {
            Function::TruncateHour => "('hour', ",
            Function::Minute => "('minute', ",
            _ => "(",
        });
        self.exprs(arguments);
        self.push(match function {
            Function::ArrayToString => ", '+')",
            _ => ")",
        });
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        let name = aggregate.function;
        if self.dialect == Dialect::Sqlite {
            let known = ["count", "sum", "avg", "min", "max", "string_agg"];
            let decimal = aggregate.kind == Kind::Decimal;
            if !known.contains(&name)
                || name == "avg" && decimal
                || aggregate.arguments.len() > 1 && name != "string_agg"
                || aggregate.distinct && name == "string_agg"
            {
                self.refuse();
            }
        }
        // Others take equal values in any order.
        let ordered = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];
        if aggregate.order.is_empty() && ordered.contains(&name) {
            self.only(&[]);
        }
        // DataFusion counts a pair with a NULL.
        if name == "count" && aggregate.arguments.len() > 1 {
            self.only(&[]);
        }
        self.push(&name.to_uppercase());
        self.push("(");
        if name == "percentile_cont" {
            self.exprs(&aggregate.arguments[1..]);
            self.push(") WITHIN GROUP (ORDER BY ");
            self.expr(&aggregate.arguments[0]);
            self.push(")");
        } else {
            self.push(if aggregate.distinct { "DISTINCT " } else { "" });
            self.exprs(&aggregate.arguments);
            self.push(if aggregate.arguments.is_empty() { "*" } else { "" });
            if !aggregate.order.is_empty() {
                self.push(" ORDER BY ");
                self.orders(&aggregate.order);
            }
            self.push(")");
        }
        self.filter(aggregate.filter.as_ref());
    }

    fn filter(&mut self, filter: Option<&Expr>) {
        if let Some(filter) = filter {
            self.push(" FILTER (WHERE ");
            self.expr(filter);
            self.push(")");
        }
    }

    fn window(&mut self, window: &Window) {
        self.push(&window.function.to_uppercase());
        self.push("(");
        self.exprs(&window.arguments);
        if window.function == "count" && window.arguments.is_empty() {
            self.push("*");
        }
        self.push(")");
        self.filter(window.filter.as_ref());
        if window.ignore_nulls {
            self.only(&[Dialect::DataFusion]);
            self.push(" IGNORE NULLS");
        }
        self.push(" OVER (");
        let mut space = "";
        if !window.partition.is_empty() {
            self.push("PARTITION BY ");
            self.exprs(&window.partition);
            space = " ";
        }
        if !window.order.is_empty() {
            self.push(&format!("{space}ORDER BY "));
            self.orders(&window.order);
            space = " ";
        }
        if let Some(Frame { units, start, end }) = &window.frame {
            let units = match units {
                Units::Rows => "ROWS",
                Units::Range => "RANGE",
                Units::Groups => "GROUPS",
            };
            self.push(&format!("{space}{units} BETWEEN {} AND {}", bound(*start), bound(*end)));
        }
        self.push(")");
    }
}

fn bound(bound: Bound) -> String {
    match bound {
        Bound::Start => "UNBOUNDED PRECEDING".to_owned(),
        Bound::Preceding(rows) => format!("{rows} PRECEDING"),
        Bound::Current => "CURRENT ROW".to_owned(),
        Bound::Following(rows) => format!("{rows} FOLLOWING"),
        Bound::End => "UNBOUNDED FOLLOWING".to_owned(),
    }
}

/// A length of time, as all but SQLite write it.
pub(super) fn interval(seconds: i64) -> String {
    format!("INTERVAL '{} seconds'", seconds.abs())
}

/// Whether rows without a partner are kept.
fn has_outer_join(from: &From) -> bool {
    let From::Join(join) = from else { return false };
    matches!(join.kind, JoinKind::Left | JoinKind::Right | JoinKind::Full)
        || has_outer_join(&join.left)
        || has_outer_join(&join.right)
}

/// Whether an aggregate in FROM has a row where there is nothing.
fn has_row_of_nothing(from: &From) -> bool {
    match from {
        From::Derived(query, _) => match &query.body {
            Body::Select(select) => match &select.group {
                Group::None
                    if select.items.iter().any(|item| matches!(item.expr, Expr::Aggregate(_))) =>
                {
                    true
                }
                Group::Sets(keys, sets) => sets.listed(keys.len()).iter().any(Vec::is_empty),
                Group::None => select.from.as_ref().is_some_and(has_row_of_nothing),
                Group::Keys(_) => false,
            },
            Body::Set(..) => false,
        },
        From::Join(join) => has_row_of_nothing(&join.left) || has_row_of_nothing(&join.right),
        From::Relation(..) | From::Windowed(..) | From::Unnested(..) => false,
    }
}
