//! Recording that dataflows of relations fail and resume.

use super::Sequencer;
use super::state::State;
use crate::durable::checkpoint::DataflowName;
use crate::durable::record::Record;
use crate::error::Result;

impl Sequencer {
    /// Records that the dataflow of a relation has failed. An engine that is opened again leaves the relation out, until it
    /// resumes or is dropped. Does nothing if that is recorded already. While the journal is replayed nothing is recorded: failures
    /// of that time are recorded once the journal is attached.
    pub(crate) fn record_failed(&self, relation: &str, reason: &str) -> Result<()> {
        if self.durable.is_replaying() {
            return Ok(());
        }
        let mut state = self.state.lock();
        if state.failed.reason(relation).is_none() {
            let (relation, reason) = (relation.to_owned(), reason.to_owned());
            self.durable.append(&Record::Failed { relation, reason })?;
        }
        state.failed.fail(relation, reason);
        Ok(())
    }

    /// Records that a relation which had failed is there again, if it had.
    pub(super) fn record_resumed(&self, state: &mut State, relation: &str) -> Result<()> {
        if state.failed.reason(relation).is_some() {
            self.durable.append(&Record::Resumed { relation: relation.to_owned() })?;
        }
        state.failed.forget(relation);
        Ok(())
    }

    /// The reason for which a definition that is executed again makes no dataflow, if it makes none: the relation had failed at the
    /// checkpoint that it is part of, or does so in the rest of the replay.
    pub(crate) fn left_out(&self, relation: &str) -> Option<String> {
        let state = self.state.lock();
        let had_failed = state.restored.is_some().then(|| state.failed.reason(relation)).flatten();
        had_failed.or_else(|| state.failed.fails_later(relation)).map(str::to_owned)
    }

    /// The journal, which is about to be replayed, says that a relation fails, and why.
    pub(crate) fn expect_failed(&self, relation: String, reason: String) {
        self.state.lock().failed.expect(relation, reason);
    }

    /// Replays the record of a failure.
    pub(crate) fn replay_failed(&self, relation: &str, reason: &str) {
        self.state.lock().failed.replay(relation, reason);
    }

    /// Replays that a relation resumes which fails again later, and so stays left out.
    pub(crate) fn replay_resumed(&self, relation: &str) {
        self.state.lock().failed.forget(relation);
    }

    /// Whether the checkpoint that is being restored has state of a relation which has not been taken, because another plan wrote it.
    pub(crate) fn has_saved(&self, relation: &str) -> bool {
        let state = self.state.lock();
        let name = DataflowName::Relation(relation.to_owned());
        state.restored.as_ref().is_some_and(|restored| restored.dataflows.contains_key(&name))
    }

    /// The relations that are recorded as failed, with the reasons.
    #[cfg(test)]
    pub(crate) fn failed(&self) -> std::collections::BTreeMap<String, String> {
        self.state.lock().failed.all().clone()
    }
}
