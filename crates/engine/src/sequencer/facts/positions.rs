//! How far inputs were read.

use std::collections::BTreeMap;

use super::{Applied, Effects, Persisted, SavePoint, Saving};
use crate::durable::checkpoint::Checkpoint;
use crate::durable::portion::{InputName, SavedPosition};
use crate::error::Result;

/// How far inputs were read, if they can be read from there.
#[derive(Default)]
pub(in crate::sequencer) struct Positions(BTreeMap<InputName, SavedPosition>);

impl Positions {
    pub(in crate::sequencer) fn get(&self, input: &InputName) -> Option<&SavedPosition> {
        self.0.get(input)
    }

    /// A table is gone, with its inputs.
    pub(in crate::sequencer) fn forget(&mut self, table: &str) {
        self.0.retain(|input, _| input.table != table);
    }
}

impl Persisted for Positions {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let positions = self.0.clone();
        Box::new(|checkpoint: &mut Checkpoint| {
            checkpoint.positions = positions.into_iter().collect()
        })
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.0.extend(std::mem::take(&mut checkpoint.positions));
        Ok(())
    }

    fn apply(&mut self, commit: &Applied<'_>, _: &mut Effects) -> Result<()> {
        if let Some((input, end)) = commit.end {
            self.0.insert(input.clone(), end.clone());
        }
        Ok(())
    }
}
