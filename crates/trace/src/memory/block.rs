//! The bytes of a page on the heap.

use std::mem;
use std::ops::{Deref, DerefMut};

use super::slots::{SLOT, Slot};
use super::{Charge, MemoryBudget};

/// A growing sequence of bytes, all of whose memory is counted.
pub(crate) struct Block {
    memory: Memory,
    length: usize,
    charge: Charge,
}

/// Where the bytes are: in a slot, if they fill more than half of one.
enum Memory {
    Slot(Slot),
    Boxed(Box<[u8]>),
}

impl Block {
    /// An empty block, without memory.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { memory: Memory::Boxed(Box::default()), length: 0, charge: budget.charge(0) }
    }

    /// A copy of these bytes, with no more memory than they need.
    pub(crate) fn copied(bytes: &[u8], budget: &MemoryBudget) -> Self {
        let memory = match Memory::slot(bytes.len(), budget) {
            Some(mut slot) => {
                slot[..bytes.len()].copy_from_slice(bytes);
                Memory::Slot(slot)
            }
            None => Memory::Boxed(bytes.into()),
        };
        let charge = budget.charge(memory.len());
        Self { memory, length: bytes.len(), charge }
    }

    /// The memory of a [copied](Block::copied) or [taken](Block::take) block of `bytes` bytes.
    pub(crate) fn memory_of(bytes: usize) -> usize {
        if Memory::is_slot(bytes) { SLOT } else { bytes }
    }

    /// How many bytes fit without a new allocation.
    pub(crate) fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Makes the capacity at least `capacity` bytes.
    pub(crate) fn reserve(&mut self, capacity: usize) {
        if capacity <= self.capacity() {
            return;
        }
        let mut memory = match Memory::slot(capacity, self.charge.budget()) {
            Some(slot) => Memory::Slot(slot),
            None => Memory::Boxed(vec![0; capacity].into()),
        };
        memory.bytes()[..self.length].copy_from_slice(self);
        self.memory = memory;
        self.charge.set(self.capacity());
    }

    /// Appends `bytes` bytes, of any value, for the caller to write.
    #[inline]
    pub(crate) fn grow(&mut self, bytes: usize) -> &mut [u8] {
        let (start, end) = (self.length, self.length + bytes);
        if end > self.capacity() {
            self.reserve(end.max(2 * self.capacity()));
        }
        self.length = end;
        &mut self.memory.bytes()[start..end]
    }

    /// Shortens it to `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Moves the bytes to a block with little more memory than they need, and leaves an empty one. That keeps its memory
    /// if the bytes do not need it.
    pub(crate) fn take(&mut self) -> Self {
        let budget = self.charge.budget().clone();
        if self.length <= self.capacity() / 2 {
            let taken = Self::copied(self, &budget);
            self.length = 0;
            return taken;
        }
        let mut taken = mem::replace(self, Self::new(&budget));
        if let Memory::Boxed(bytes) = &mut taken.memory {
            let mut vector = mem::take(bytes).into_vec();
            vector.truncate(taken.length);
            *bytes = vector.into();
            taken.charge.set(taken.length);
        }
        taken
    }

    /// The budget that counts the memory.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        self.charge.budget()
    }

    /// Also counts `bytes` bytes that are held beside the block.
    pub(crate) fn count_beside(&mut self, bytes: usize) {
        self.charge.set(self.capacity() + bytes);
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Slot(slot) => &slot[..self.length],
            Memory::Boxed(bytes) => &bytes[..self.length],
        }
    }
}

impl DerefMut for Block {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let length = self.length;
        &mut self.memory.bytes()[..length]
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Memory {
    /// Whether `bytes` bytes belong into a slot.
    fn is_slot(bytes: usize) -> bool {
        (SLOT / 2 + 1..=SLOT).contains(&bytes)
    }

    /// A slot, if `bytes` bytes belong into one and the system has memory for it.
    fn slot(bytes: usize, budget: &MemoryBudget) -> Option<Slot> {
        Self::is_slot(bytes).then(|| budget.slots().take().ok()).flatten()
    }

    fn len(&self) -> usize {
        match self {
            Memory::Slot(_) => SLOT,
            Memory::Boxed(bytes) => bytes.len(),
        }
    }

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Memory::Slot(slot) => slot,
            Memory::Boxed(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_block_keeps_its_bytes_and_counts_its_memory() {
        let budget = MemoryBudget::unlimited();
        let mut block = Block::new(&budget);
        let mut expected = Vec::new();
        for round in 0..200u8 {
            let more = vec![round; usize::from(round) * 3];
            block.grow(more.len()).copy_from_slice(&more);
            expected.extend_from_slice(&more);
            assert_eq!(*block, *expected);
            assert!(budget.used() >= expected.len() && budget.used() == block.capacity());
            let mut other = Block::copied(&block, &budget);
            let taken = other.take();
            assert!(other.is_empty() && *taken == *expected);
            let (length, most) = (expected.len(), expected.len().max(SLOT));
            let memory = if length > SLOT / 2 { length..=most } else { length..=length };
            assert!(memory.contains(&taken.capacity()), "{} for {length}", taken.capacity());
            assert_eq!(Block::copied(&block, &budget).capacity(), Block::memory_of(length));
        }
        block.truncate(10);
        assert_eq!(block.take().capacity(), 10);
        drop(block);
        assert_eq!(budget.used(), 0);
    }
}
