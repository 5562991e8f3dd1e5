//! `CHECK (condition)` of columns and tables.

use std::ops::ControlFlow;

use sqlparser::ast::{self, CheckConstraint, Ident, VisitMut, VisitorMut, visit_expressions};

use super::{Unnamed, names};
use crate::error::{Error, Position, Result};
use crate::name;
use crate::name::fold;

/// A condition that the rows of a table have to meet.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name, if it was given one.
    pub name: Option<String>,
    /// The column that it was written with.
    pub column: Option<usize>,
    /// The condition; a row for which it is NULL meets it.
    pub condition: ast::Expr,
    /// Where it is.
    pub position: Option<Position>,
}

impl Check {
    pub(in crate::statement) fn read(
        check: &CheckConstraint,
        name: Option<&Ident>,
        column: Option<usize>,
        position: Option<Position>,
    ) -> Result<Self> {
        let position = Position::of(&*check.expr).or(position);
        if check.enforced == Some(false) {
            return Err(Error::not_supported("CHECK … NOT ENFORCED", position));
        }
        let query = visit_expressions(&*check.expr, |expression| match expression {
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => {
                ControlFlow::Break(Position::of(expression))
            }
            _ => ControlFlow::Continue(()),
        });
        if let ControlFlow::Break(at) = query {
            return Err(Error::not_supported("a query in CHECK", at.or(position)));
        }
        let name = check.name.as_ref().or(name).map(fold);
        Ok(Self { name, column, condition: (*check.expr).clone(), position })
    }

    /// Whether the condition names a column.
    pub(in crate::statement) fn reads(&self, column: &str) -> bool {
        let found = visit_expressions(&self.condition, |expression| {
            let named = match expression {
                ast::Expr::Identifier(named) => Some(named),
                ast::Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            match named.is_some_and(|named| fold(named) == column) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        found.is_break()
    }

    /// The same of a table in which a column has another name, which is given as SQL spells it.
    pub(in crate::statement) fn with_renamed(mut self, column: &str, to: &str) -> Self {
        let _ = self.condition.visit(&mut Renaming { column, to });
        self
    }

    /// Its name, column and condition, which do not depend on how it is written.
    pub(in crate::statement) fn says(&self) -> (Option<String>, Option<usize>, String) {
        (self.name.clone(), self.column, self.condition.to_string())
    }
}

/// The name of each of the conditions of a table: those without one get Postgres's, `table_column_check` or `table_check`, with a number
/// if that is taken.
///
/// # Errors
/// If two were given the same name.
pub fn check_names(table: &str, columns: &[&str], checks: &[Check]) -> Result<Vec<String>> {
    let (_, table) = name::split(table);
    let checks = checks.iter().map(|check| {
        let plain = match check.column.and_then(|column| columns.get(column)) {
            Some(column) => format!("{table}_{column}_check"),
            None => format!("{table}_check"),
        };
        Unnamed { name: check.name.as_deref(), plain, position: check.position }
    });
    names(&checks.collect::<Vec<_>>())
}

struct Renaming<'a> {
    column: &'a str,
    to: &'a str,
}

impl VisitorMut for Renaming<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<()> {
        let named = match expression {
            ast::Expr::Identifier(named) => Some(named),
            ast::Expr::CompoundIdentifier(parts) => parts.last_mut(),
            _ => None,
        };
        if let Some(named) = named
            && fold(named) == self.column
        {
            *named = match self.to.strip_prefix('"').and_then(|to| to.strip_suffix('"')) {
                Some(quoted) => Ident::with_quote('"', quoted.replace("\"\"", "\"")),
                None => Ident::new(self.to),
            };
        }
        ControlFlow::Continue(())
    }
}
