//! Functions that views, and functions that SQL defines, call and this program has not registered.
//!
//! Without them a view cannot be made again, so an engine looks for them before it does anything else.

use std::collections::BTreeSet;

use alluvium_sql::planner::Planner;
use alluvium_sql::stack;
use alluvium_sql::statement::{self, StatementKind};

use super::record::Record;
use crate::error::{Error, Result};

/// Looks for them in definitions, in the order in which these are executed.
pub(super) struct MissingFunctions<'a> {
    planner: &'a Planner,
    /// The functions that SQL has defined so far.
    defined: BTreeSet<String>,
}

impl<'a> MissingFunctions<'a> {
    pub(super) fn new(planner: &'a Planner) -> Self {
        Self { planner, defined: BTreeSet::new() }
    }

    /// Fails if a definition calls one. It may define a function by SQL.
    pub(super) fn check(&mut self, definition: &Record) -> Result<()> {
        let sql = match definition {
            Record::Definition { sql, .. } => sql,
            Record::Transaction { definitions, .. } => {
                let definitions = definitions.iter().map(|bytes| Record::decode(bytes));
                // Unreadable definitions are reported when they are replayed.
                return definitions.flatten().try_for_each(|definition| self.check(&definition));
            }
            _ => return Ok(()),
        };
        for statement in statement::parse(sql).map_while(std::result::Result::ok) {
            let caller = match &statement.kind {
                StatementKind::CreateView(view) => format!("the view \"{}\"", view.name),
                StatementKind::CreateFunction(function) => {
                    format!("the function {}()", function.name)
                }
                _ => continue,
            };
            let is_defined = |name: &str| self.defined.contains(name);
            let unknown = || self.planner.unknown_function(&statement.kind, &is_defined);
            if let Some(function) = stack::with_room(statement.depth, unknown) {
                return Err(Error::Start {
                    message: format!(
                        "{caller} calls {function}(), which this program has not registered; register it with \
                     Builder::function or Builder::aggregate and open the directory again"
                    ),
                });
            }
            if let StatementKind::CreateFunction(function) = &statement.kind {
                self.defined.insert(function.name.clone());
            }
        }
        Ok(())
    }
}
