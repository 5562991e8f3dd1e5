//! Functions that views call and this program has not registered.
//!
//! Without them a view cannot be made again, so an engine looks for them before it does anything else.

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
    definitions.into_iter().try_for_each(|definition| check_one(planner, definition))?;
    // What cannot be read is reported when it is replayed.
    let Ok(records) = journal.replay(start) else { return Ok(()) };
    for record in records.map_while(std::result::Result::ok) {
        if let Ok(definition) = Record::decode(&record.1) {
            check_one(planner, &definition)?;
        }
    }
    Ok(())
}

fn check_one(planner: &Planner, definition: &Record) -> Result<()> {
    let Record::Definition { sql, .. } = definition else { return Ok(()) };
    for statement in statement::parse(sql).map_while(std::result::Result::ok) {
        if let StatementKind::CreateView(view) = &statement.kind
            && let Some(function) =
                stack::with_room(statement.depth, || planner.unknown_function(view))
        {
            return Err(Error::Start {
                message: format!(
                    "the view \"{}\" calls {function}(), which this program has not registered; register it with \
                     Builder::function or Builder::aggregate and open the directory again",
                    view.name
                ),
            });
        }
    }
    Ok(())
}
