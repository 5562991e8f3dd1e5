//! The time of the last epoch.

use super::{Persisted, SavePoint, Saving};
use crate::clock::Moment;
use crate::durable::checkpoint::Checkpoint;
use crate::error::Result;

/// The time of the last epoch, which no later one is before; `None` before the first. It is set when the epoch is made.
#[derive(Default)]
pub(in crate::sequencer) struct LastTime(pub(in crate::sequencer) Option<Moment>);

impl Persisted for LastTime {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let time = self.0;
        Box::new(move |checkpoint: &mut Checkpoint| checkpoint.time = time)
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.0 = checkpoint.time;
        Ok(())
    }
}
