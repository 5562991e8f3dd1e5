//! SUBSCRIBE: the contents of a view, and its changes as they are made.

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use alluvium::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use alluvium::arrow::error::ArrowError;
use alluvium::{Change, Subscription};

use super::{Shell, Stop, failed, stopped, unwritten};

/// The polling interval.
const PAUSE: Duration = Duration::from_millis(20);

impl<W: Write> Shell<W> {
    /// Writes changes as they are made: at a prompt until interrupted, in a program until its finite sources are
    /// exhausted.
    pub(super) fn follow(&mut self, mut changes: Subscription) -> Result<(), Stop> {
        let schema = changes_schema(changes.schema());
        // The first change is a snapshot of the view.
        let mut next = changes.next().transpose().map_err(stopped)?;
        let mut first = true;
        loop {
            let all = !self.is_prompt && self.is_all_read();
            while let Some(change) = next {
                let rows = change_rows(&schema, &change).map_err(|error| failed(None, error))?;
                self.output.part(&schema, &rows, first).map_err(unwritten)?;
                first = false;
                if self.interrupt.is_asked() {
                    break;
                }
                next = changes.try_next().map_err(stopped)?;
            }
            if self.interrupt.is_asked() || all {
                return Ok(());
            }
            thread::sleep(PAUSE);
            next = changes.try_next().map_err(stopped)?;
        }
    }
}

/// The columns of a view's changes: the epoch, the weight, and the view's own.
pub(crate) fn changes_schema(view: &SchemaRef) -> SchemaRef {
    let ours = [("epoch", DataType::UInt64), ("weight", DataType::Int64)];
    let ours = ours.into_iter().map(|(name, kind)| Arc::new(Field::new(name, kind, false)));
    Arc::new(Schema::new(ours.chain(view.fields().iter().cloned()).collect::<Vec<_>>()))
}

fn change_rows(schema: &SchemaRef, change: &Change) -> Result<RecordBatch, ArrowError> {
    let epochs: ArrayRef = Arc::new(UInt64Array::from_value(change.epoch, change.rows.num_rows()));
    let weights: ArrayRef = Arc::new(Int64Array::new(change.weights.clone(), None));
    let columns = [epochs, weights].into_iter().chain(change.rows.columns().iter().cloned());
    RecordBatch::try_new(schema.clone(), columns.collect())
}
