//! Memory for pages, in slots of one size.
//!
//! Pages come and go all the time, and some stay for long. In the heap of a general allocator freed pages leave holes
//! that the system gets back only when everything around them is free as well. Any free slot fits the next page, and its
//! memory can be released by itself.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::memory::region::Region;

/// The bytes of a slot: a full page of the default size, and on nearly all systems a multiple of the system's page.
pub const SLOT: usize = 16 << 10;

/// The slots of a region, which is mapped as a whole: a few huge pages, wherever these begin.
/// Few under Miri, which is slow.
const REGION: usize = if cfg!(miri) { 4 } else { 1024 };

/// The most slots that are released at once: other threads wait meanwhile.
const MOST_COOLED: usize = 2048;

/// From this many warm slots on, memory is requested in huge pages: lookups then miss the processor's address caches
/// less often. The system gets nothing back of a huge page until all of it is released or memory runs
/// out, so with a small budget there are none.
const WARM_FOR_HUGE_PAGES: usize = 2 * REGION;

/// The bytes of one slot. All are initialised; a slot that was used before has its old contents.
pub(super) struct Slot {
    start: NonNull<u8>,
    number: u32,
    slots: Arc<Slots>,
}

// SAFETY: a slot is the only owner of its bytes, which belong to no thread.
unsafe impl Send for Slot {}
// SAFETY: a shared slot is only read.
unsafe impl Sync for Slot {}

impl Deref for Slot {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: SLOT bytes are mapped at `start` for as long as `slots` lives, and no other slot has them.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), SLOT) }
    }
}

impl DerefMut for Slot {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), SLOT) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.put(self.number);
    }
}

/// A pool of slots. It grows as needed; memory of free slots beyond a bound returns to the system.
#[derive(Debug)]
pub(super) struct Slots {
    state: Mutex<State>,
    /// How many free slots may keep their memory.
    warm: usize,
}

#[derive(Debug, Default)]
struct State {
    regions: Vec<Region>,
    /// The numbers of free slots that have memory.
    warm: Vec<u32>,
    /// The numbers of free slots that have none.
    cold: Vec<u32>,
}

impl Slots {
    /// An empty pool, whose free slots keep at most `free` bytes of memory.
    pub(super) fn new(free: usize) -> Self {
        let warm = free / SLOT;
        // Without a system that takes single slots back, no number of free slots is too many.
        let warm = if Region::can_release(SLOT) { warm } else { usize::MAX };
        Slots { state: Mutex::default(), warm }
    }

    /// A free slot.
    ///
    /// # Errors
    ///
    /// If the system has no more memory to map.
    pub(super) fn take(self: &Arc<Self>) -> io::Result<Slot> {
        let mut state = self.state.lock();
        if state.warm.is_empty() && state.cold.is_empty() {
            state.map(self.warm >= WARM_FOR_HUGE_PAGES)?;
        }
        let State { regions, warm, cold } = &mut *state;
        let number = warm.pop().or_else(|| cold.pop()).expect("a region has slots");
        let (region, slot) = place(number);
        // SAFETY: the region is as long as all of its slots, and this is one of them.
        let start = unsafe { regions[region].as_mut_ptr().add(slot * SLOT) };
        let start = NonNull::new(start).expect("nothing is mapped at zero");
        Ok(Slot { start, number, slots: Arc::clone(self) })
    }

    /// The bytes of free slots that have memory.
    pub(super) fn kept(&self) -> usize {
        self.state.lock().warm.len() * SLOT
    }

    /// Frees the slot of this number.
    fn put(&self, number: u32) {
        let mut state = self.state.lock();
        state.warm.push(number);
        if state.warm.len() > self.warm {
            state.cool(self.warm - (self.warm / 2).min(MOST_COOLED));
        }
    }
}

impl State {
    /// Maps one more region, in huge pages if they are wanted.
    fn map(&mut self, huge: bool) -> io::Result<()> {
        let first = (self.regions.len() * REGION) as u32;
        self.regions.push(Region::map(REGION * SLOT, huge)?);
        self.cold.extend((first..first + REGION as u32).rev());
        Ok(())
    }

    /// Releases the memory of all free slots but `warm`.
    fn cool(&mut self, warm: usize) {
        self.warm.sort_unstable();
        for run in self.warm[warm..].chunk_by(|a, b| a + 1 == *b && place(*a).0 == place(*b).0) {
            let (region, slot) = place(run[0]);
            // SAFETY: the slots are free, so nothing refers to them, and every content is valid for the next owner. They can
            // be released, because otherwise no number of free slots is too many.
            unsafe { self.regions[region].release(slot * SLOT, run.len() * SLOT) };
        }
        self.cold.extend(self.warm.drain(warm..).rev());
    }
}

/// The region of a slot, and where in it the slot is.
fn place(number: u32) -> (usize, usize) {
    (number as usize / REGION, number as usize % REGION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_do_not_overlap() {
        let slots = Arc::new(Slots::new(1 << 30));
        let mut held: Vec<Slot> = (0..3 * REGION).map(|_| slots.take().expect("memory")).collect();
        for round in 0..3 {
            for (number, slot) in held.iter_mut().enumerate() {
                slot.fill((number + round) as u8);
            }
            for (number, slot) in held.iter().enumerate() {
                assert!(slot.iter().all(|byte| *byte == (number + round) as u8));
            }
            // Others take their places.
            held.truncate(REGION);
            held.extend((0..2 * REGION).map(|_| slots.take().expect("memory")));
        }
        assert_eq!(slots.state.lock().regions.len(), 3);
    }

    #[test]
    fn free_slots_release_their_memory_and_others_keep_theirs() {
        const KEPT: usize = 16 * SLOT;
        let slots = Arc::new(Slots::new(KEPT));
        let mut held: Vec<Slot> = (0..2 * REGION).map(|_| slots.take().expect("memory")).collect();
        held.iter_mut().for_each(|slot| slot.fill(7));
        let mut number = 0;
        held.retain(|_| {
            number += 1;
            number % 3 == 0
        });
        let free = 2 * REGION - held.len();
        assert!(slots.kept() <= KEPT);
        assert!(held.iter().all(|slot| slot.iter().all(|byte| *byte == 7)));
        // Released memory reads as zeros.
        let again: Vec<Slot> = (0..free).map(|_| slots.take().expect("memory")).collect();
        let warm = again.iter().filter(|slot| slot.iter().all(|byte| *byte == 7)).count();
        let cold = again.iter().filter(|slot| slot.iter().all(|byte| *byte == 0)).count();
        assert!(warm <= KEPT / SLOT && warm + cold == free, "{warm} warm, {cold} cold of {free}");
        assert_eq!(slots.state.lock().regions.len(), 2);
    }
}
