//! How far sequences have come.

use std::collections::BTreeMap;

use super::{Persisted, SavePoint, Saving};
use crate::durable::checkpoint::Checkpoint;
use crate::durable::record::SequenceValue;
use crate::error::Result;

/// The last values of sequences that are recorded, by their names: those before them may have been taken. One that is not here
/// is at its start.
#[derive(Default)]
pub(in crate::sequencer) struct RecordedSequences(BTreeMap<String, SequenceValue>);

impl RecordedSequences {
    pub(in crate::sequencer) fn get(&self, sequence: &str) -> Option<SequenceValue> {
        self.0.get(sequence).copied()
    }

    /// Notes the last value; `None` if the sequence is at its start, or was dropped.
    pub(in crate::sequencer) fn set(&mut self, sequence: &str, value: Option<SequenceValue>) {
        match value {
            Some(value) => self.0.insert(sequence.to_owned(), value),
            None => self.0.remove(sequence),
        };
    }
}

impl Persisted for RecordedSequences {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let values: Vec<_> = self.0.iter().map(|(name, value)| (name.clone(), *value)).collect();
        Box::new(|checkpoint: &mut Checkpoint| checkpoint.sequences = values)
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.0 = std::mem::take(&mut checkpoint.sequences).into_iter().collect();
        Ok(())
    }
}
