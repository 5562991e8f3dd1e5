//! What the journal is searched for before anything of it is replayed.

use alluvium_sql::planner::Planner;
use alluvium_storage::{Journal, Position};

use super::functions::MissingFunctions;
use super::record::Record;
use crate::error::Result;

/// Returns the relations whose dataflows fail in the records from `end` on, once for each time, and why. `definitions` are those of the
/// checkpoint; the journal is searched from `start` on.
///
/// # Errors
///
/// If a view among all definitions calls a function that the program has not registered.
pub(super) fn search<'a>(
    planner: &Planner,
    definitions: impl IntoIterator<Item = &'a Record>,
    journal: &dyn Journal,
    start: Position,
    end: Position,
) -> Result<Vec<(String, String)>> {
    let mut functions = MissingFunctions::new(planner);
    definitions.into_iter().try_for_each(|definition| functions.check(definition))?;
    let mut failing = Vec::new();
    // What cannot be read is reported when it is replayed.
    let Ok(records) = journal.replay(start) else { return Ok(failing) };
    for (position, bytes) in records.map_while(std::result::Result::ok) {
        match Record::decode(&bytes) {
            Ok(Record::Failed { relation, reason }) if position >= end => {
                failing.push((relation, reason));
            }
            Ok(record) => functions.check(&record)?,
            Err(_) => {}
        }
    }
    Ok(failing)
}
