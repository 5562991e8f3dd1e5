//! A change in flight: columns of rows, each with a time and a weight.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Schema, SchemaRef};

/// The times of a delta's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Times<T> {
    /// Every row has this time.
    Same(T),
    /// Row `i` has the `i`-th time.
    Each(Arc<[T]>),
}

/// Rows that change, when, and by how much.
///
/// A positive weight adds copies of the row, a negative one takes copies away. A delta is neither
/// sorted nor consolidated: a row may occur in it several times.
#[derive(Clone, Debug)]
pub struct Delta<T> {
    /// The rows, as columns.
    pub rows: RecordBatch,
    /// When each row changes; never earlier than the time of the message that carries the delta.
    pub times: Times<T>,
    /// By how much each row changes; `None` when all weights are one.
    pub weights: Option<ScalarBuffer<i64>>,
}

static NO_COLUMNS: LazyLock<SchemaRef> = LazyLock::new(|| Arc::new(Schema::empty()));

impl<T: Clone> Delta<T> {
    /// A delta that adds each row once, at one time.
    pub fn insertions(rows: RecordBatch, time: T) -> Self {
        Self { rows, times: Times::Same(time), weights: None }
    }

    /// The number of rows, counting each occurrence.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The time of row `row`.
    pub fn time(&self, row: usize) -> &T {
        match &self.times {
            Times::Same(time) => time,
            Times::Each(times) => &times[row],
        }
    }

    /// The weight of row `row`.
    pub fn weight(&self, row: usize) -> i64 {
        self.weights.as_ref().map_or(1, |weights| weights[row])
    }
}

impl<T: Default> Default for Delta<T> {
    fn default() -> Self {
        Self {
            rows: RecordBatch::new_empty(NO_COLUMNS.clone()),
            times: Times::Same(T::default()),
            weights: None,
        }
    }
}
