//! Dataflows that are removed with their owners.

use std::sync::{Arc, Weak};

use super::Sequencer;
use crate::worker::DataflowId;

/// A dataflow that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnedDataflow {
    id: DataflowId,
    sequencer: Weak<Sequencer>,
}

impl OwnedDataflow {
    pub(crate) fn new(id: DataflowId, sequencer: &Arc<Sequencer>) -> Self {
        Self { id, sequencer: Arc::downgrade(sequencer) }
    }
}

impl Drop for OwnedDataflow {
    fn drop(&mut self) {
        if let Some(sequencer) = self.sequencer.upgrade() {
            sequencer.remove(self.id);
        }
    }
}
