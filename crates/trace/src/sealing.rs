//! A large buffer that is sealed on another thread.
//!
//! Sorting millions of updates takes seconds, in which a worker does nothing else. While it fills a dataflow beside others, a
//! thread does that for it, and wakes the operator that waits for the batch.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};

use differential_dataflow::trace::Description;
use parking_lot::Mutex;
use timely::scheduling::SyncActivator;

use crate::batch::Batch;
use crate::buffer::RowBuffer;
use crate::fault;
#[cfg(any(doc, test))]
use crate::memory::StateContext;
use crate::time::PageTime;

/// How many times as large as the [smallest job](crate::Schedule::smallest_job) a buffer must be to be sealed on another thread: what
/// is smaller is sorted in a few milliseconds.
const LEAST_JOBS: usize = 8;

/// A batch, and the updates that were not due.
type Sealed<T> = (Batch<T>, RowBuffer<T>);

/// A buffer that is being sealed. Dropping it gives the updates up.
pub struct Sealing<T: PageTime> {
    outcome: Receiver<Result<Sealed<T>, Box<dyn Any + Send>>>,
    is_cancelled: Arc<AtomicBool>,
}

impl<T: PageTime> Sealing<T> {
    /// Begins to [seal](RowBuffer::seal) a buffer on another thread, if it is large and its worker fills a dataflow
    /// [beside others](StateContext::set_filling). Leaves an empty one. `waker` is woken when there is a batch.
    pub fn begin(
        buffer: &mut RowBuffer<T>,
        description: &Description<T>,
        waker: &SyncActivator,
    ) -> Option<Self> {
        let context = buffer.context().clone();
        let least = context.schedule().smallest_job.saturating_mul(LEAST_JOBS);
        if !context.is_filling() || buffer.is_empty() || buffer.bytes() < least {
            return None;
        }
        let is_cancelled = Arc::default();
        // It is here again if there is no thread.
        let taken = Arc::new(Mutex::new(Some(buffer.take(context.for_job(&is_cancelled)))));
        let (description, waker) = (description.clone(), waker.clone());
        let (sender, outcome) = mpsc::sync_channel(1);
        let (rows, fault) = (Arc::clone(&taken), fault::current());
        let begun = context.spawn("alluvium-sort", move || {
            let seal = AssertUnwindSafe(|| {
                let mut buffer = rows.lock().take()?;
                let batch = buffer.seal(description);
                Some((batch, buffer))
            });
            let sealed = fault::with(fault, || catch_unwind(seal));
            if let Some(sealed) = sealed.transpose() {
                // The receiver may be gone.
                let _ = sender.send(sealed);
            }
            // It fails if the worker has ended.
            let _ = waker.activate();
        });
        if begun.is_err() {
            buffer.absorb(taken.lock().take()?);
            return None;
        }
        Some(Self { outcome, is_cancelled })
    }

    /// The batch, once it is there, and the updates that were not due. Unwinds as [`RowBuffer::seal`] does.
    pub fn take(&self) -> Option<Sealed<T>> {
        match self.outcome.try_recv().ok()? {
            Ok(sealed) => Some(sealed),
            Err(caught) => resume_unwind(caught),
        }
    }
}

impl<T: PageTime> Drop for Sealing<T> {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use timely::progress::Antichain;

    use super::*;

    fn updates(batch: &Batch<u64>) -> Vec<(Vec<u8>, u64, i64)> {
        let mut cursor = batch.scan();
        let mut updates = Vec::new();
        while let Some(key) = cursor.key().map(<[u8]>::to_vec) {
            updates.extend(cursor.updates().map(|(time, weight)| (key.clone(), time, weight)));
            cursor.step_key();
        }
        updates
    }

    #[test]
    fn a_batch_from_another_thread_is_the_same_and_what_is_not_due_stays() {
        timely::execute_directly(|worker| {
            let waker = worker.sync_activator_for(vec![0]);
            let context = StateContext::default().for_worker(Arc::default());
            let filled = || {
                let mut buffer = RowBuffer::new(&context);
                for number in 0..100_000_u64 {
                    let key = (number * 7919 % 5000).to_be_bytes();
                    buffer.push(&key, b"", &(number % 4), [1, 2, -1][number as usize % 3]);
                }
                buffer
            };
            let at = |time| Antichain::from_elem(time);
            let description = Description::new(at(0), at(3), at(0));
            let (mut here, mut there) = (filled(), filled());
            assert!(Sealing::begin(&mut there, &description, &waker).is_none());
            context.set_filling(true);
            let mut few = RowBuffer::new(&context);
            few.push(b"key", b"", &1, 1);
            assert!(Sealing::begin(&mut few, &description, &waker).is_none());
            let sealing = Sealing::begin(&mut there, &description, &waker).unwrap();
            assert!(there.is_empty());
            // Later rows arrive meanwhile.
            there.push(b"later", b"", &5, 1);
            let (batch, rest) = loop {
                match sealing.take() {
                    Some(sealed) => break sealed,
                    None => thread::yield_now(),
                }
            };
            context.join();
            there.absorb(rest);
            assert_eq!(updates(&batch), updates(&here.seal(description)));
            here.push(b"later", b"", &5, 1);
            assert_eq!((there.len(), there.frontier()), (here.len(), at(3)));
            let last = Description::new(at(3), at(9), at(0));
            assert_eq!(updates(&there.seal(last.clone())), updates(&here.seal(last)));
        });
    }
}
