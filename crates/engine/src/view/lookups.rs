//! Point reads of a view from many threads.
//!
//! A pinned version is counted up and down, and so are its batches: threads that do so for each read spend their time on
//! these counts, which they share. So a version that was read stays pinned, with cursors, in one of a few slots, each of which few
//! threads use. It is given up when there is another version, so that old ones are not kept.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::thread;

use alluvium_dataflow::state::snapshot;
use alluvium_trace::Epoch;
use parking_lot::Mutex;

use crate::error::Result;
use crate::worker::Reader;

/// The versions that threads read.
pub(super) struct Lookups {
    slots: Box<[Slot]>,
    /// How often there was another version.
    versions: AtomicU64,
}

/// In a cache line of its own, and in the one that is fetched with it.
#[derive(Default)]
#[repr(align(128))]
struct Slot(Mutex<Option<Prepared>>);

/// A version that is pinned.
struct Prepared {
    /// How often there had been another one before.
    versions: u64,
    lookups: snapshot::Lookups,
}

impl Lookups {
    pub(super) fn new() -> Self {
        let slots = thread::available_parallelism().map_or(1, NonZero::get);
        let slots = (0..slots).map(|_| Slot::default()).collect();
        Self { slots, versions: AtomicU64::new(0) }
    }

    /// Reads a version of `at_least` this epoch, which `pin` pins if there is none. Returns `None`, without reading, while another
    /// thread reads in its slot.
    pub(super) fn read<R>(
        &self,
        at_least: Epoch,
        pin: impl FnOnce() -> Result<snapshot::Lookups>,
        read: impl FnOnce(&mut snapshot::Lookups) -> R,
    ) -> Result<Option<R>> {
        let Some(mut slot) = self.slots[number() % self.slots.len()].0.try_lock() else {
            return Ok(None);
        };
        let versions = self.versions.load(Ordering::SeqCst);
        let found = slot.take_if(|prepared| {
            prepared.versions != versions || prepared.lookups.epoch() < at_least
        });
        drop(found);
        let prepared = match &mut *slot {
            Some(prepared) => prepared,
            None => slot.insert(Prepared { versions, lookups: pin()? }),
        };
        let rows = read(&mut prepared.lookups);
        drop(slot);
        // Who gives up a version does not wait for those who read it.
        fence(Ordering::SeqCst);
        if self.versions.load(Ordering::SeqCst) != versions {
            self.clear();
        }
        Ok(Some(rows))
    }

    fn clear(&self) {
        for slot in &self.slots {
            if let Some(mut slot) = slot.0.try_lock() {
                *slot = None;
            }
        }
    }
}

impl Reader for Lookups {
    fn give_up(&self) {
        self.versions.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.clear();
    }
}

/// The number of this thread, as it was counted.
fn number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_dataflow::rows::layout::Layout;
    use alluvium_dataflow::state::snapshot::Snapshot;
    use alluvium_trace::BatchBuilder;
    use alluvium_trace::memory::{MemoryBudget, StateContext};
    use arrow::datatypes::{DataType, Field, Schema};
    use differential_dataflow::trace::Description;
    use timely::progress::Antichain;

    use super::*;

    /// A version with one row, which `budget` counts.
    fn version(budget: &MemoryBudget, epoch: Epoch) -> snapshot::Lookups {
        let context = StateContext::new(budget.clone(), None);
        let schema = Schema::new(vec![Field::new("key", DataType::Int64, false)]);
        let layout = Layout::keyed(Arc::new(schema), &[0]).unwrap();
        let mut builder = BatchBuilder::new(&context);
        builder.push(b"key", b"", &0, 1);
        let until = |epoch| Antichain::from_elem(epoch);
        let batch = builder.finish(Description::new(until(0), until(1), until(0)));
        snapshot::Lookups::new(vec![Snapshot::of(vec![batch], layout, &context)], epoch)
    }

    #[test]
    fn a_version_is_kept_until_there_is_another_one() {
        let budget = MemoryBudget::unlimited();
        let lookups = Lookups::new();
        let read = |at_least, pinned: Option<Epoch>| {
            let pin = || Ok(version(&budget, pinned.expect("a version is kept")));
            let epoch = lookups.read(at_least, pin, |version| version.epoch());
            epoch.unwrap().expect("no other thread reads")
        };
        assert_eq!(read(3, Some(3)), 3);
        assert!(budget.used() > 0);
        assert_eq!((read(2, None), read(3, None)), (3, 3));
        assert_eq!(read(4, Some(5)), 5);
        lookups.give_up();
        assert_eq!(budget.used(), 0);
        assert_eq!(read(1, Some(6)), 6);
        lookups.give_up();
        // One that is pinned while there is another one is not kept, nor one that is read meanwhile.
        let pin = || {
            lookups.give_up();
            Ok(version(&budget, 7))
        };
        assert_eq!(lookups.read(7, pin, |version| version.epoch()).unwrap(), Some(7));
        assert_eq!(budget.used(), 0);
        let read = |_: &mut snapshot::Lookups| lookups.give_up();
        assert!(lookups.read(8, || Ok(version(&budget, 8)), read).unwrap().is_some());
        assert_eq!(budget.used(), 0);
    }
}
