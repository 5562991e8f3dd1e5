//! Relations whose dataflows have failed.

use std::collections::{BTreeMap, VecDeque};

use super::{Persisted, SavePoint, Saving};
use crate::durable::checkpoint::Checkpoint;
use crate::error::Result;

/// The relations that have failed, and those of which the journal says later that they do.
///
/// A relation that fails later in the journal is left out from its definition on: the cause would make it fail again.
#[derive(Debug, Default)]
pub(in crate::sequencer) struct FailedRelations {
    /// Why each has failed.
    reasons: BTreeMap<String, String>,
    /// Why each fails in the rest of the replay, once for each time.
    ahead: BTreeMap<String, VecDeque<String>>,
}

impl FailedRelations {
    /// A relation has failed. The first reason counts, until it resumes.
    pub(in crate::sequencer) fn fail(&mut self, relation: &str, reason: &str) {
        self.reasons.entry(relation.to_owned()).or_insert_with(|| reason.to_owned());
    }

    /// A relation is running again, or was dropped.
    pub(in crate::sequencer) fn forget(&mut self, relation: &str) {
        self.reasons.remove(relation);
    }

    /// A relation has another name.
    pub(in crate::sequencer) fn rename(&mut self, before: &str, name: &str) {
        if let Some(reason) = self.reasons.remove(before) {
            self.reasons.insert(name.to_owned(), reason);
        }
    }

    /// Why a relation has failed.
    pub(in crate::sequencer) fn reason(&self, relation: &str) -> Option<&str> {
        self.reasons.get(relation).map(String::as_str)
    }

    /// All of them, and why.
    #[cfg(test)]
    pub(in crate::sequencer) fn all(&self) -> &BTreeMap<String, String> {
        &self.reasons
    }

    /// Why a relation fails in the rest of the replay, if it does.
    pub(in crate::sequencer) fn fails_later(&self, relation: &str) -> Option<&str> {
        self.ahead.get(relation)?.front().map(String::as_str)
    }

    /// The journal, which is about to be replayed, says that a relation fails, and why.
    pub(in crate::sequencer) fn expect(&mut self, relation: String, reason: String) {
        self.ahead.entry(relation).or_default().push_back(reason);
    }

    /// The record of a failure is replayed.
    pub(in crate::sequencer) fn replay(&mut self, relation: &str, reason: &str) {
        if let Some(left) = self.ahead.get_mut(relation) {
            left.pop_front();
            if left.is_empty() {
                self.ahead.remove(relation);
            }
        }
        self.fail(relation, reason);
    }
}

impl Persisted for FailedRelations {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let failed = self.reasons.clone();
        Box::new(|checkpoint: &mut Checkpoint| checkpoint.failed = failed.into_iter().collect())
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.reasons.extend(std::mem::take(&mut checkpoint.failed));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_fails_later_until_no_record_says_so() {
        let mut failed = FailedRelations::default();
        failed.expect("v".to_owned(), "first".to_owned());
        failed.expect("v".to_owned(), "second".to_owned());
        assert_eq!((failed.fails_later("v"), failed.fails_later("w")), (Some("first"), None));
        assert_eq!(failed.reason("v"), None);
        failed.replay("v", "first");
        assert_eq!(failed.reason("v"), Some("first"));
        failed.forget("v");
        assert_eq!((failed.reason("v"), failed.fails_later("v")), (None, Some("second")));
        failed.replay("v", "second");
        failed.fail("v", "third");
        failed.rename("v", "w");
        assert_eq!((failed.reason("v"), failed.reason("w")), (None, Some("second")));
        failed.forget("w");
        assert_eq!(failed.fails_later("v"), None);
        assert!(failed.all().is_empty());
    }
}
