//! Recording that dataflows of relations fail and resume.

use std::collections::BTreeMap;

use super::Sequencer;
use crate::durable::record::Record;
use crate::error::Result;

impl Sequencer {
    /// Records that the dataflow of a relation has failed. An engine that is opened again leaves the relation out, until it
    /// [resumes](Self::record_resumed) or is dropped. Does nothing if it has failed already.
    #[cfg_attr(not(test), expect(dead_code, reason = "dataflows that fail stop the engine so far"))]
    pub(crate) fn record_failed(&self, relation: &str, reason: &str) -> Result<()> {
        let mut state = self.state.lock();
        if state.failed.reason(relation).is_none() {
            let (relation, reason) = (relation.to_owned(), reason.to_owned());
            self.durable.append(&Record::Failed { relation, reason })?;
        }
        state.failed.fail(relation, reason);
        Ok(())
    }

    /// Records that a relation which had failed is there again. Does nothing if it has not failed.
    pub(crate) fn record_resumed(&self, relation: &str) -> Result<()> {
        let mut state = self.state.lock();
        if state.failed.reason(relation).is_some() {
            self.durable.append(&Record::Resumed { relation: relation.to_owned() })?;
        }
        state.failed.forget(relation);
        Ok(())
    }

    /// The relations that have failed, and why.
    #[cfg_attr(not(test), expect(dead_code, reason = "dataflows that fail stop the engine so far"))]
    pub(crate) fn failed(&self) -> BTreeMap<String, String> {
        self.state.lock().failed.all().clone()
    }

    /// Why a relation has failed; `None` if it has not.
    #[cfg_attr(not(test), expect(dead_code, reason = "dataflows that fail stop the engine so far"))]
    pub(crate) fn failure(&self, relation: &str) -> Option<String> {
        self.state.lock().failed.reason(relation).map(str::to_owned)
    }

    /// Whether the definition of a relation makes no dataflow: it has failed, or is replayed and fails later.
    #[cfg_attr(not(test), expect(dead_code, reason = "dataflows that fail stop the engine so far"))]
    pub(crate) fn is_failed(&self, relation: &str) -> bool {
        self.state.lock().failed.is_left_out(relation)
    }

    /// The journal, which is about to be replayed, says that a relation fails.
    pub(crate) fn expect_failed(&self, relation: String) {
        self.state.lock().failed.expect(relation);
    }

    /// Replays the record of a failure.
    pub(crate) fn replay_failed(&self, relation: &str, reason: &str) {
        self.state.lock().failed.replay(relation, reason);
    }
}
