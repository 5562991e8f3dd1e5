//! The changes of a subscription as rows, for clients that read tables.

use std::sync::Arc;
use std::task::{Poll, Waker};

use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, new_null_array};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{Change, Subscription};
use crate::error::Result;

/// The columns before those of the relation: the epoch of a change, whether the row is no change but tells how far they have come, and
/// by how many copies of the row the relation changes.
const EPOCH: &str = "epoch";
const PROGRESSED: &str = "progressed";
const WEIGHT: &str = "weight";

/// The columns of the changes of a relation. With progress, there is a column more, and rows that tell it have NULL in all others but the epoch.
pub fn columns_of_changes(relation: &Schema, has_progress: bool) -> SchemaRef {
    let epoch = Arc::new(Field::new(EPOCH, DataType::Int64, false));
    let progressed =
        has_progress.then(|| Arc::new(Field::new(PROGRESSED, DataType::Boolean, false)));
    let weight = Arc::new(Field::new(WEIGHT, DataType::Int64, has_progress));
    let fields = relation.fields().iter().map(|field| match has_progress {
        true => Arc::new(field.as_ref().clone().with_nullable(true)),
        false => field.clone(),
    });
    let before = [epoch].into_iter().chain(progressed).chain([weight]);
    Arc::new(Schema::new(before.chain(fields).collect::<Vec<_>>()))
}

/// The changes of a subscription as rows of the [columns of changes](columns_of_changes).
///
/// With progress, the first row tells where they begin. A row `(epoch, true, NULL, …)` says that no change of an earlier epoch comes any
/// more: a client that has it can resume after the epoch before.
pub struct ChangedRows {
    subscription: Subscription,
    schema: SchemaRef,
    progress: Option<Told>,
}

/// The progress that a client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Nothing yet.
    Nothing,
    /// There are no more changes of epochs before this one.
    Before(Epoch),
}

impl ChangedRows {
    /// The changes of a subscription, with its progress if its statement asks for it.
    pub fn new(subscription: Subscription) -> Self {
        let has_progress = subscription.has_progress();
        let schema = columns_of_changes(subscription.schema(), has_progress);
        Self { subscription, schema, progress: has_progress.then_some(Told::Nothing) }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether it tells progress: then it should be asked now and then, as progress wakes nobody.
    pub fn has_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Fails if the subscriber may not have the changes any more.
    pub(crate) fn check_permission(&mut self) -> Result<()> {
        self.subscription.check_permission()
    }

    /// The next rows, of one change and all of it, or of progress; `None` once nothing will come any more. Does not wait: `waker` is woken once
    /// there is a change.
    pub fn poll_next(&mut self, waker: Option<&Waker>) -> Poll<Result<Option<RecordBatch>>> {
        // All changes up to it are there.
        let complete = self.subscription.complete();
        let change = match self.subscription.poll_change(waker) {
            Poll::Ready(Ok(Some(change))) => change,
            Poll::Ready(Ok(None)) => return Poll::Ready(Ok(None)),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => {
                // Where it begins, or how far it is.
                let first = self.subscription.begins_after().map(|after| after + 1);
                let next = match (self.progress, first) {
                    (None, _) => return Poll::Pending,
                    (Some(Told::Nothing), Some(first)) => first,
                    (Some(Told::Nothing), None) => return Poll::Pending,
                    (Some(Told::Before(before)), _) if before <= complete => complete + 1,
                    (Some(Told::Before(_)), _) => return Poll::Pending,
                };
                self.progress = Some(Told::Before(next));
                return Poll::Ready(self.progress_to(next).map(Some));
            }
        };
        Poll::Ready(self.rows_of(&change).map(Some))
    }

    /// A change as rows, after one that tells where changes begin if that is not known yet.
    fn rows_of(&mut self, change: &Change) -> Result<RecordBatch> {
        let count = change.rows.num_rows();
        let epoch: ArrayRef = Arc::new(Int64Array::from_value(number(change.epoch), count));
        let progressed =
            self.progress.map(|_| Arc::new(BooleanArray::from(vec![false; count])) as ArrayRef);
        let weight: ArrayRef = Arc::new(Int64Array::new(change.weights.clone(), None));
        let before = [epoch].into_iter().chain(progressed).chain([weight]);
        let columns = before.chain(change.rows.columns().iter().cloned());
        let rows = RecordBatch::try_new(self.schema.clone(), columns.collect())?;
        if self.progress != Some(Told::Nothing) {
            return Ok(rows);
        }
        let begins = match self.subscription.begins_after() {
            Some(after) => after + 1,
            None => change.epoch,
        };
        self.progress = Some(Told::Before(begins));
        Ok(concat_batches(&self.schema, [&self.progress_to(begins)?, &rows])?)
    }

    /// A row that tells that all changes of epochs before this one have come.
    fn progress_to(&self, epoch: Epoch) -> Result<RecordBatch> {
        let columns = self.schema.fields().iter().enumerate().map(|(place, field)| match place {
            0 => Arc::new(Int64Array::from(vec![number(epoch)])) as ArrayRef,
            1 => Arc::new(BooleanArray::from(vec![true])),
            _ => new_null_array(field.data_type(), 1),
        });
        Ok(RecordBatch::try_new(self.schema.clone(), columns.collect())?)
    }
}

/// An epoch as a value.
fn number(epoch: Epoch) -> i64 {
    i64::try_from(epoch).unwrap_or(i64::MAX)
}
