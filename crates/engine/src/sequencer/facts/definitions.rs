//! The statements that made the existing relations.

use alluvium_sql::planner::CLOCK;

use super::{Applied, Effects, Persisted, SavePoint, Saving};
use crate::clock::Moment;
use crate::durable::checkpoint::Checkpoint;
use crate::durable::record::{Record, Recorded};
use crate::error::Result;

/// The definitions of all relations, by their names, in an order in which they can be executed. There are none without a
/// journal.
#[derive(Default)]
pub(in crate::sequencer) struct DefinedRelations(Vec<(String, Record)>);

impl DefinedRelations {
    /// Notes the definition of a statement, in the place of earlier ones of the relation, also by the name that it had before,
    /// or in addition to that.
    pub(in crate::sequencer) fn define(
        &mut self,
        Recorded { name, before, whole, adds, .. }: &Recorded,
    ) {
        let is_replaced = |known: &String| known == name || Some(known) == before.as_ref();
        self.0.retain(|(known, _)| *adds || !is_replaced(known));
        self.0.push((name.clone(), whole.clone()));
    }

    /// Notes an output of a relation, with which it goes.
    pub(in crate::sequencer) fn add_output(&mut self, relation: &str, output: Record) {
        self.0.push((relation.to_owned(), output));
    }

    /// Notes that the clock is a relation.
    pub(in crate::sequencer) fn define_clock(&mut self, now: Moment) {
        self.0.push((CLOCK.to_owned(), Record::Clock { now }));
    }

    /// Notes that a table which is created with its rows has them.
    pub(in crate::sequencer) fn complete_table(&mut self, table: &str) {
        let definitions = self.0.iter_mut().filter(|(known, _)| known == table);
        definitions.for_each(|(_, definition)| definition.complete());
    }

    /// Forgets all definitions of a relation.
    pub(in crate::sequencer) fn forget(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// The statements that declared and created a relation.
    pub(in crate::sequencer) fn time(&self, name: &str) -> Option<Moment> {
        self.0.iter().rev().find_map(|(known, record)| match record {
            Record::Definition { now, .. } if known == name => Some(*now),
            _ => None,
        })
    }

    pub(in crate::sequencer) fn text(&self, name: &str) -> Option<String> {
        let texts = self.0.iter().filter_map(|(known, record)| match record {
            Record::Definition { sql, .. } if known == name => Some(sql.as_str()),
            _ => None,
        });
        let texts: Vec<&str> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(";\n"))
    }
}

impl Persisted for DefinedRelations {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let definitions = self.0.clone();
        Box::new(|checkpoint: &mut Checkpoint| checkpoint.definitions = definitions)
    }

    /// They are executed again, and so define what they have defined.
    fn restore(&mut self, _: &mut Checkpoint) -> Result<()> {
        Ok(())
    }

    fn apply(&mut self, commit: &Applied<'_>, _: &mut Effects) -> Result<()> {
        if let Some(table) = commit.completes {
            self.complete_table(table);
        }
        Ok(())
    }
}
