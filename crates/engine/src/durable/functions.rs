//! Functions that views, and functions that SQL defines, call and this program has not registered.
//!
//! Without them a view cannot be made again, so an engine looks for them before it does anything else.

use std::collections::BTreeSet;

use alluvium_sql::planner::Planner;
use alluvium_sql::stack;
use alluvium_sql::statement::{self, StatementKind};
use alluvium_storage::{Journal, Position};

use super::record::Record;
use crate::error::{Error, Result};

/// Fails if one is called by a view among these definitions, or among those that the journal has from `start` on.
pub(super) fn check<'a>(
    planner: &Planner,
    definitions: impl IntoIterator<Item = &'a Record>,
    journal: &dyn Journal,
    start: Position,
) -> Result<()> {
    let mut defined = BTreeSet::new();
    let mut check = |definition: &Record| check_one(planner, definition, &mut defined);
    definitions.into_iter().try_for_each(&mut check)?;
    // What cannot be read is reported when it is replayed.
    let Ok(records) = journal.replay(start) else { return Ok(()) };
    for record in records.map_while(std::result::Result::ok) {
        if let Ok(definition) = Record::decode(&record.1) {
            check(&definition)?;
        }
    }
    Ok(())
}

/// Looks for them in a definition, which may define a function by SQL.
fn check_one(planner: &Planner, definition: &Record, defined: &mut BTreeSet<String>) -> Result<()> {
    let Record::Definition { sql, .. } = definition else { return Ok(()) };
    for statement in statement::parse(sql).map_while(std::result::Result::ok) {
        let caller = match &statement.kind {
            StatementKind::CreateView(view) => format!("the view \"{}\"", view.name),
            StatementKind::CreateFunction(function) => format!("the function {}()", function.name),
            _ => continue,
        };
        let is_defined = |name: &str| defined.contains(name);
        let unknown = || planner.unknown_function(&statement.kind, &is_defined);
        if let Some(function) = stack::with_room(statement.depth, unknown) {
            return Err(Error::Start {
                message: format!(
                    "{caller} calls {function}(), which this program has not registered; register it with \
                     Builder::function or Builder::aggregate and open the directory again"
                ),
            });
        }
        if let StatementKind::CreateFunction(function) = &statement.kind {
            defined.insert(function.name.clone());
        }
    }
    Ok(())
}
