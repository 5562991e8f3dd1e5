//! Relations whose dataflows have failed.

use std::collections::BTreeMap;

use super::{Persisted, SavePoint, Saving};
use crate::durable::checkpoint::Checkpoint;
use crate::error::Result;

/// The relations that have failed, and those of which the journal says later that they do.
///
/// A relation that fails later in the journal is left out from its definition on: what made it fail would do so again.
#[derive(Debug, Default)]
pub(in crate::sequencer) struct FailedRelations {
    /// Why each has failed.
    reasons: BTreeMap<String, String>,
    /// How often each fails in what is still to be replayed.
    ahead: BTreeMap<String, usize>,
}

impl FailedRelations {
    /// A relation has failed. The first reason counts, until it resumes.
    pub(in crate::sequencer) fn fail(&mut self, relation: &str, reason: &str) {
        self.reasons.entry(relation.to_owned()).or_insert_with(|| reason.to_owned());
    }

    /// A relation is there again, or is no more.
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
    pub(in crate::sequencer) fn all(&self) -> &BTreeMap<String, String> {
        &self.reasons
    }

    /// Whether a relation has no dataflow: it has failed, or does so in what is still to be replayed.
    pub(in crate::sequencer) fn is_left_out(&self, relation: &str) -> bool {
        self.reasons.contains_key(relation) || self.ahead.contains_key(relation)
    }

    /// The journal, which is about to be replayed, says that a relation fails.
    pub(in crate::sequencer) fn expect(&mut self, relation: String) {
        *self.ahead.entry(relation).or_default() += 1;
    }

    /// The record of a failure is replayed.
    pub(in crate::sequencer) fn replay(&mut self, relation: &str, reason: &str) {
        if let Some(left) = self.ahead.get_mut(relation) {
            *left -= 1;
            if *left == 0 {
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
    fn a_relation_is_left_out_until_no_record_says_that_it_fails() {
        let mut failed = FailedRelations::default();
        failed.expect("v".to_owned());
        failed.expect("v".to_owned());
        assert!(failed.is_left_out("v") && !failed.is_left_out("w"));
        assert_eq!(failed.reason("v"), None);
        failed.replay("v", "first");
        assert_eq!(failed.reason("v"), Some("first"));
        failed.forget("v");
        assert!(failed.is_left_out("v"), "it fails again");
        failed.replay("v", "second");
        failed.fail("v", "third");
        failed.rename("v", "w");
        assert_eq!((failed.reason("v"), failed.reason("w")), (None, Some("second")));
        failed.forget("w");
        assert!(!failed.is_left_out("v") && !failed.is_left_out("w") && failed.all().is_empty());
    }
}
