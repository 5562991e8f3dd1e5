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
use crate::own;

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
    let mut text = Text { dialect, now, text: String::new(), refused: false, calls_own: false };
    text.query(query);
    (!text.refused).then_some(text.text)
}

/// Writes a query for an engine that has [functions of its own](own), in some of whose calls their names stand.
pub(crate) fn sql_with_own(query: &Query) -> Option<String> {
    let dialect = Dialect::Alluvium;
    let mut text = Text { dialect, now: 0, text: String::new(), refused: false, calls_own: true };
    text.query(query);
    (!text.refused).then_some(text.text)
}

/// Writes a condition of a statement, which is the same in all dialects.
pub(crate) fn condition(expr: &Expr) -> String {
    let dialect = Dialect::Alluvium;
    let mut text = Text { dialect, now: 0, text: String::new(), refused: false, calls_own: false };
    text.expr(expr);
    text.text
}

struct Text {
    dialect: Dialect,
    now: i64,
    text: String,
    refused: bool,
    /// Whether the engine has functions of its own.
    calls_own: bool,
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

    /// Makes the call of `name` that was written from `start` on one of the engine's own function of the name, if there is one.
    /// The text of the call decides, so that equal calls stay equal; one in three is.
    fn own(&mut self, start: usize, name: &str) {
        let written = self.text.len() - start;
        if self.calls_own && written.is_multiple_of(3) && own::is_own(name) {
            self.text.insert_str(start, own::PREFIX);
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
