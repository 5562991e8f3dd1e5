//! Facts that outlive the engine and are kept with its connectors: rows that sources refused, and lengths of outputs.
//!
//! The [other facts](crate::sequencer::Persisted) are the sequencer's own.

use std::sync::Arc;

use alluvium_trace::Epoch;

use super::checkpoint::Checkpoint;
use super::refused::SavedRefusals;
use crate::error::{Error, Result};
use crate::poison::Poison;
use crate::sequencer::{Persisted, SavePoint, Saving};
use crate::sink::{Marks, Outputs};
use crate::source::{KeptRefusals, Refusals};

/// All facts that are kept with connectors.
pub(crate) struct ConnectorFacts {
    outputs: OutputLengths,
    refused: RefusedRows,
}

impl ConnectorFacts {
    pub(crate) fn new(
        outputs: &Arc<Outputs>,
        refusals: &Arc<Refusals>,
        poison: &Arc<Poison>,
    ) -> Self {
        let outputs = OutputLengths { outputs: outputs.clone(), poison: poison.clone() };
        Self { outputs, refused: RefusedRows(refusals.clone()) }
    }

    pub(crate) fn list(&self) -> [&dyn Persisted; 2] {
        [&self.outputs, &self.refused]
    }

    /// Restores them from a checkpoint.
    pub(crate) fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let facts: [&mut dyn Persisted; 2] = [&mut self.outputs, &mut self.refused];
        facts.into_iter().try_for_each(|fact| fact.restore(checkpoint))
    }
}

/// The lengths of outputs of changes.
struct OutputLengths {
    outputs: Arc<Outputs>,
    poison: Arc<Poison>,
}

/// Outputs that are marked after an epoch.
struct MarkedOutputs {
    marks: Vec<Marks>,
    epoch: Epoch,
    poison: Arc<Poison>,
}

impl Persisted for OutputLengths {
    fn save(&self, at: &SavePoint<'_>) -> Box<dyn Saving> {
        let marks = self.outputs.mark(at.epoch);
        Box::new(MarkedOutputs { marks, epoch: at.epoch, poison: self.poison.clone() })
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.outputs.restore(checkpoint.epoch, std::mem::take(&mut checkpoint.outputs));
        Ok(())
    }
}

impl Saving for MarkedOutputs {
    fn pinned(&self) {
        self.marks.iter().for_each(Marks::pass);
    }

    /// Waits until the outputs have all changes up to the epoch.
    fn finish(self: Box<Self>, checkpoint: &mut Checkpoint) -> Result<()> {
        let Self { marks, epoch, poison } = *self;
        let length = |marks: Marks| match marks.clone().length(epoch) {
            Some(length) => Ok(Some(length)),
            None if marks.has_failed() => Ok(None),
            None => {
                poison.check()?;
                Err(Error::source("no checkpoint could be taken: an output has ended"))
            }
        };
        let lengths = marks.into_iter().filter_map(|marks| length(marks).transpose());
        checkpoint.outputs = lengths.collect::<Result<_>>()?;
        Ok(())
    }
}

/// Rows that sources refused.
struct RefusedRows(Arc<Refusals>);

/// Those that are kept at an epoch.
struct KeptRows(Vec<KeptRefusals>);

impl Persisted for RefusedRows {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        Box::new(KeptRows(self.0.all()))
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let refused = std::mem::take(&mut checkpoint.refused).into_iter();
        for saved in refused {
            self.0.restore(saved.kept()?);
        }
        Ok(())
    }
}

impl Saving for KeptRows {
    fn finish(self: Box<Self>, checkpoint: &mut Checkpoint) -> Result<()> {
        checkpoint.refused = self.0.iter().map(SavedRefusals::new).collect::<Result<_>>()?;
        Ok(())
    }
}
