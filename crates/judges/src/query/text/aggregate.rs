//! Aggregates and window functions.

use super::{Dialect, Text};
use crate::query::expression::{Aggregate, Bound, Expr, Frame, Units, Window};
use crate::query::kind::Kind;

impl Text {
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) {
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
        // Without ORDER BY, other databases aggregate rows in any order.
        let ordered = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];
        if aggregate.order.is_empty() && ordered.contains(&name) {
            self.only(&[]);
        }
        // DataFusion also counts rows in which some argument is NULL.
        if name == "count" && aggregate.arguments.len() > 1 {
            self.only(&[]);
        }
        let start = self.text.len();
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
        self.own(start, name);
        self.filter(aggregate.filter.as_ref());
    }

    fn filter(&mut self, filter: Option<&Expr>) {
        if let Some(filter) = filter {
            self.push(" FILTER (WHERE ");
            self.expr(filter);
            self.push(")");
        }
    }

    pub(super) fn window(&mut self, window: &Window) {
        let start = self.text.len();
        self.push(&window.function.to_uppercase());
        self.push("(");
        self.exprs(&window.arguments);
        if window.function == "count" && window.arguments.is_empty() {
            self.push("*");
        }
        self.push(")");
        self.own(start, window.function);
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
