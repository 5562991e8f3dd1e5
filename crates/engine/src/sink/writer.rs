//! What an output of changes writes to: rows of a file, or another system.

use std::time::{Duration, Instant};

use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;

use super::changes;
use crate::changes::bytes_of;
use crate::changes::pace::Amount;
use crate::error::{Error, Result};
use crate::source::{DeliveryOutput, OutputWriter};
use crate::subscription::Change;

/// How long changes wait for later ones before they are committed together.
const TOGETHER: Duration = Duration::from_millis(100);

/// How many rows are committed together, give or take an epoch.
const TOGETHER_ROWS: usize = 100_000;

/// The writer of an output of changes.
pub(crate) enum ChangesWriter {
    /// Rows with epoch and weight in front, whose columns these are.
    Rows { writer: OutputWriter, schema: SchemaRef },
    /// Another system, which has the changes up to an epoch if it has a mark.
    Delivery { writer: DeliveryOutput, pending: Option<Pending> },
}

/// Changes that are not committed yet.
pub(crate) struct Pending {
    /// The last epoch of them.
    epoch: Epoch,
    rows: usize,
    since: Instant,
}

impl ChangesWriter {
    /// Writes to another system.
    pub(crate) fn to_delivery(writer: DeliveryOutput) -> Self {
        Self::Delivery { writer, pending: None }
    }

    /// Writes the changes of an epoch.
    pub(super) fn write(&mut self, change: Change) -> Result<Amount> {
        match self {
            Self::Rows { writer, schema } => {
                let changes = changes::rows(change, schema)?;
                writer.write(&changes)?;
                writer.flush()?;
                let (rows, bytes) = (changes.num_rows() as u64, bytes_of(&changes) as u64);
                Ok(Amount { rows, bytes })
            }
            Self::Delivery { writer, pending } => {
                let Change { epoch, rows, weights, .. } = change;
                writer.write(epoch, &rows, &weights)?;
                let begun = Pending { epoch, rows: 0, since: Instant::now() };
                let changes = pending.get_or_insert(begun);
                changes.epoch = epoch;
                changes.rows += rows.num_rows();
                let is_enough =
                    changes.rows >= TOGETHER_ROWS || changes.since.elapsed() >= TOGETHER;
                let amount = Amount { rows: rows.num_rows() as u64, bytes: bytes_of(&rows) as u64 };
                if is_enough {
                    self.commit()?;
                }
                Ok(amount)
            }
        }
    }

    /// Whether there are changes that nobody sees yet.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self, Self::Delivery { pending: Some(_), .. })
    }

    /// Makes all changes visible.
    pub(super) fn commit(&mut self) -> Result<()> {
        match self {
            Self::Delivery { writer, pending } => match pending.take() {
                Some(Pending { epoch, .. }) => writer.commit(epoch),
                None => Ok(()),
            },
            Self::Rows { .. } => Ok(()),
        }
    }

    /// Makes all changes last, which are those up to an epoch. Returns the length of the file that has them.
    pub(super) fn mark(&mut self, epoch: Epoch) -> Result<u64> {
        match self {
            Self::Rows { writer, .. } => writer.sync(),
            Self::Delivery { writer, pending } => {
                *pending = None;
                writer.commit(epoch).map(|()| 0)
            }
        }
    }

    /// The epoch up to which the changes are there: at least `restored`, that of the checkpoint that the engine starts from.
    ///
    /// # Errors
    /// If the system lacks changes that it had.
    pub(super) fn delivered(&self, restored: Option<Epoch>) -> Result<Option<Epoch>> {
        let Self::Delivery { writer, .. } = self else { return Ok(restored) };
        let delivered = writer.delivered()?;
        match restored {
            Some(restored) if writer.keeps_marks()? && delivered < Some(restored) => {
                let has = match delivered {
                    Some(epoch) => format!("it has those up to epoch {epoch}"),
                    None => "it has none".to_owned(),
                };
                Err(Error::source(format!(
                    "the changes up to epoch {restored} were written there, and {has}: what was there is gone; restore it, \
                     or begin with another state directory, which writes all rows"
                )))
            }
            restored => Ok(delivered.max(restored)),
        }
    }

    /// Whether changes are there once, also after a restart of an engine that `lasts`.
    pub(super) fn is_exact(&self, lasts: bool) -> Result<bool> {
        match self {
            Self::Rows { .. } => Ok(true),
            Self::Delivery { writer, .. } => Ok(lasts && writer.keeps_marks()?),
        }
    }

    /// Completes the output.
    pub(super) fn finish(mut self) -> Result<()> {
        self.commit()?;
        match self {
            Self::Rows { writer, .. } => writer.finish(),
            Self::Delivery { .. } => Ok(()),
        }
    }
}
