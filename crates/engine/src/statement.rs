//! Statements of a text.

use std::fmt;

use alluvium_sql::statement;

use crate::error::Result;

/// One statement of SQL, parsed: [`parse`] reads statements, [`Session::run`](crate::Session::run) executes them.
///
/// It is parsed without a look at the relations that there are. Its errors have their positions in the text that it was parsed from.
#[derive(Clone)]
pub struct Statement(statement::Statement);

impl Statement {
    /// Its text, without the semicolon.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Where it starts in the text that it was parsed from, as line and column, both counted from one.
    pub fn position(&self) -> (u64, u64) {
        (self.0.position.line, self.0.position.column)
    }

    /// Its command, as Postgres names it: `SELECT`, `CREATE TABLE`, `ROLLBACK TO`.
    ///
    /// ```
    /// let statement = alluvium::parse("TRUNCATE a, b").next();
    /// assert_eq!(statement.transpose()?.map(|statement| statement.command()), Some("TRUNCATE TABLE"));
    /// # Ok::<(), alluvium::Error>(())
    /// ```
    pub fn command(&self) -> &'static str {
        self.0.command()
    }

    /// A statement of this tree.
    pub(crate) fn new(tree: statement::Statement) -> Self {
        Self(tree)
    }

    /// Its syntax tree.
    pub(crate) fn tree(&self) -> &statement::Statement {
        &self.0
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Statement").field(&self.0.text).finish()
    }
}

/// Reads a text statement by statement. A statement whose syntax is wrong is an error, and ends the iteration.
///
/// ```
/// let texts: Vec<String> = alluvium::parse("SELECT 1; SELECT ';'")
///     .map(|statement| Ok(statement?.text().to_owned()))
///     .collect::<alluvium::Result<_>>()?;
/// assert_eq!(texts, ["SELECT 1", "SELECT ';'"]);
/// # Ok::<(), alluvium::Error>(())
/// ```
pub fn parse(sql: &str) -> Statements {
    Statements(statement::parse(sql))
}

/// The statements of a text, in order.
#[derive(Debug)]
pub struct Statements(statement::Statements);

impl Iterator for Statements {
    type Item = Result<Statement>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map(Statement).map_err(Into::into))
    }
}
