//! Writing query trees in the SQL dialect of each database.
//!
//! [`query`] writes queries and SELECT, [`from`] the relations they read, [`expression`] scalar expressions, and
//! [`aggregate`] aggregates and window functions. Where a dialect cannot express a tree, or is known to give it another
//! meaning, writing is refused, and that database is not consulted. Comments name the bugs and differences.

mod aggregate;
mod expression;
mod from;
mod query;

use super::expression::Expr;
use super::select::Query;

/// A database's SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Alluvium,
    DataFusion,
    Sqlite,
    DuckDb,
}

/// Writes a query in a dialect, with `now` as the time; `None` if the dialect refuses it.
pub(crate) fn sql(query: &Query, dialect: Dialect, now: i64) -> Option<String> {
    let mut text = Text { dialect, now, text: String::new(), refused: false };
    text.query(query);
    (!text.refused).then_some(text.text)
}

/// Writes a condition of a statement, which is the same in all dialects.
pub(crate) fn condition(expr: &Expr) -> String {
    let mut text = Text { dialect: Dialect::Alluvium, now: 0, text: String::new(), refused: false };
    text.expr(expr);
    text.text
}

struct Text {
    dialect: Dialect,
    now: i64,
    text: String,
    refused: bool,
}

impl Text {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn refuse(&mut self) {
        self.refused = true;
    }

    /// Refuses every dialect but Alluvium's and those listed.
    fn only(&mut self, others: &[Dialect]) {
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

    fn exprs(&mut self, exprs: &[Expr]) {
        self.list(exprs, Self::expr);
    }
}
