//! The search of the journal before anything of it is replayed.

use std::collections::{HashMap, HashSet};

use alluvium_sql::planner::Planner;
use alluvium_storage::{Journal, Position};

use super::functions::MissingFunctions;
use super::record::Record;
use crate::error::Result;

/// The findings.
#[derive(Default)]
pub(super) struct Found {
    /// The relations whose dataflows fail in the records after the checkpoint, once for each time, and why.
    pub(super) failing: Vec<(String, String)>,
    /// The numbers of the transactions with parts that have an epoch.
    pub(super) committed: HashSet<u64>,
    /// Those of them that have definitions.
    pub(super) defining: HashMap<u64, Option<Position>>,
}

impl Found {
    /// Notes the transaction of which a record says that it is committed, if it has parts.
    pub(super) fn note_parts(&mut self, record: &Record) -> std::result::Result<(), String> {
        match record {
            Record::Epoch { transaction, parts: 1.., .. } => {
                self.committed.insert(*transaction);
                Ok(())
            }
            Record::Completing { epoch, .. } => self.note_parts(&Record::decode(epoch)?),
            Record::Transaction { epoch: Some(epoch), .. } => {
                let epoch = Record::decode(epoch)?;
                if let Record::Epoch { transaction, parts: 1.., .. } = &epoch {
                    self.defining.insert(*transaction, None);
                }
                self.note_parts(&epoch)
            }
            _ => Ok(()),
        }
    }
}

/// Searches the journal from `start` on. `definitions` are those of the checkpoint, which has all records before `end`.
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
) -> Result<Found> {
    let mut functions = MissingFunctions::new(planner);
    definitions.into_iter().try_for_each(|definition| functions.check(definition))?;
    let mut found = Found::default();
    // Unreadable records are reported when they are replayed.
    let Ok(records) = journal.replay(start) else { return Ok(found) };
    for (position, bytes) in records.map_while(std::result::Result::ok) {
        match Record::decode(&bytes) {
            Ok(Record::Failed { relation, reason }) if position >= end => {
                found.failing.push((relation, reason));
            }
            Ok(record) => {
                functions.check(&record)?;
                // Unreadable records are reported when they are replayed.
                let _ = found.note_parts(&record);
            }
            Err(_) => {}
        }
    }
    Ok(found)
}
