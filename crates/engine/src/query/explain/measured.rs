//! The work of the operators of a query that runs.
//!
//! A query computes on one thread, and an operator pulls its inputs' rows while its own are pulled. So its own time is that
//! until it has given its rows, without that of its inputs. It includes what the operator waits for, such as files.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use crate::changes::bytes_of;
use crate::query::interruptible::Interruptible;
use crate::query::windows::Window;
use crate::query::wrapped::{Around, Rows, Wrapped, wrapped};

/// The operators of a query that is measured: those of its last attempt.
#[derive(Clone, Debug, Default)]
pub(in crate::query) struct Measures(Arc<Mutex<Vec<Measured>>>);

/// An operator that is measured. It stands after its inputs.
#[derive(Clone, Debug)]
pub(in crate::query) struct Measured {
    pub(in crate::query) operator: Arc<dyn ExecutionPlan>,
    /// The places of its inputs.
    pub(in crate::query) inputs: Vec<usize>,
    work: Arc<Work>,
}

/// What an operator has done, with its inputs.
#[derive(Debug, Default)]
struct Work {
    nanoseconds: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Work {
    /// Counts the time that this takes.
    fn timed<R>(&self, work: impl FnOnce() -> R) -> R {
        let begun = Instant::now();
        let done = work();
        let taken = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(taken, Ordering::Relaxed);
        done
    }
}

impl Measured {
    /// The time until it had given its rows, with that of its inputs.
    pub(in crate::query) fn whole(&self) -> Duration {
        Duration::from_nanos(self.work.nanoseconds.load(Ordering::Relaxed))
    }

    /// The rows that it has given.
    pub(in crate::query) fn rows(&self) -> u64 {
        self.work.rows.load(Ordering::Relaxed)
    }

    /// Their bytes in memory.
    pub(in crate::query) fn bytes(&self) -> u64 {
        self.work.bytes.load(Ordering::Relaxed)
    }

    /// The number of files that it has moved rows to, and the bytes of these rows.
    pub(in crate::query) fn spilled(&self) -> (u64, u64) {
        let metrics = self.operator.metrics();
        let number = |number: Option<usize>| number.unwrap_or_default() as u64;
        metrics.map_or((0, 0), |metrics| {
            (number(metrics.spill_count()), number(metrics.spilled_bytes()))
        })
    }
}

impl Measures {
    /// The operators so far.
    pub(in crate::query) fn get(&self) -> Vec<Measured> {
        self.0.lock().clone()
    }

    /// The plan, measured. It is complete: later changes of it would leave operators behind that are not.
    pub(in crate::query) fn of(
        &self,
        plan: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut operators = Vec::new();
        // The places of those that nothing reads so far.
        let mut unread: Vec<usize> = Vec::new();
        let measured = plan.transform_up(|node| {
            // An operator and what is wrapped around it are one.
            if node.is::<Wrapped<Interruptible>>() || node.is::<Wrapped<Window>>() {
                let inner = node.children()[0].clone();
                let Some(inner) = inner.downcast_ref::<Wrapped<Measure>>() else {
                    return Ok(Transformed::no(node));
                };
                let measure = inner.around().clone();
                let node =
                    replace_children_if_necessary(node.clone(), vec![inner.inner().clone()])?;
                return Ok(Transformed::yes(wrapped(measure, node)));
            }
            let inputs = unread.split_off(unread.len() - node.children().len());
            let work = Arc::new(Work::default());
            unread.push(operators.len());
            let operator = Arc::clone(&node);
            operators.push(Measured { operator, inputs, work: work.clone() });
            Ok(Transformed::yes(wrapped(Measure(work), node)))
        })?;
        *self.0.lock() = operators;
        Ok(measured.data)
    }
}

/// An operator whose work is counted.
#[derive(Clone, Debug)]
struct Measure(Arc<Work>);

impl Around for Measure {
    const NAME: &'static str = "Measure";

    fn execute(
        &self,
        inner: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<Rows> {
        let rows = self.0.timed(|| inner.execute(partition, context))?;
        Ok(MeasuredRows { rows, work: self.0.clone() }.boxed())
    }
}

/// The rows of an operator, counted.
struct MeasuredRows {
    rows: SendableRecordBatchStream,
    work: Arc<Work>,
}

impl Stream for MeasuredRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { rows, work } = &mut *self;
        let polled = work.timed(|| rows.poll_next_unpin(context));
        if let Poll::Ready(Some(Ok(rows))) = &polled {
            work.rows.fetch_add(rows.num_rows() as u64, Ordering::Relaxed);
            work.bytes.fetch_add(bytes_of(rows) as u64, Ordering::Relaxed);
        }
        polled
    }
}
