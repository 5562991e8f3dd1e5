//! The memory that queries share.
//!
//! Each query has an account, and may hold as much as all queries together, divided by the number of those that hold some. Within
//! a query, operators that can spill have equal parts of what the others leave, as in DataFusion's `FairSpillPool`: an operator
//! cannot make another one spill, so what it may hold is what all of them can have.
//!
//! A query that begins takes nothing from those that hold more than their new share already. They do not get more, and it gets
//! its own. So `n` queries hold at most `1 + 1/2 + … + 1/n` of the memory for a while.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use parking_lot::Mutex;

/// The memory of all queries.
#[derive(Debug)]
pub(super) struct QueryMemory {
    bytes: usize,
    /// How many queries hold some of it.
    holders: AtomicUsize,
}

impl QueryMemory {
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { bytes, holders: AtomicUsize::new(0) })
    }

    /// The memory that all queries may hold.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How much of it a query may hold.
    pub(super) fn share(&self) -> usize {
        self.bytes / self.holders.load(Ordering::Relaxed).max(1)
    }

    /// The account of one query.
    pub(super) fn account(self: &Arc<Self>) -> Arc<Account> {
        Arc::new(Account { all: self.clone(), held: Mutex::default() })
    }
}

/// The memory of one query.
#[derive(Debug)]
pub(super) struct Account {
    all: Arc<QueryMemory>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// How many operators can spill.
    spillers: usize,
    /// The bytes that these hold.
    spillable: usize,
    /// The bytes that others hold.
    unspillable: usize,
}

impl Held {
    fn bytes(&self) -> usize {
        self.spillable + self.unspillable
    }

    fn of(&mut self, reservation: &MemoryReservation) -> &mut usize {
        match reservation.consumer().can_spill() {
            true => &mut self.spillable,
            false => &mut self.unspillable,
        }
    }
}

impl Account {
    fn add(&self, held: &mut Held, reservation: &MemoryReservation, bytes: usize) {
        if held.bytes() == 0 && bytes > 0 {
            self.all.holders.fetch_add(1, Ordering::Relaxed);
        }
        *held.of(reservation) += bytes;
    }
}

impl MemoryPool for Account {
    fn name(&self) -> &str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.held.lock().spillers += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.held.lock().spillers -= 1;
        }
    }

    fn grow(&self, reservation: &MemoryReservation, bytes: usize) {
        self.add(&mut self.held.lock(), reservation, bytes);
    }

    fn shrink(&self, reservation: &MemoryReservation, bytes: usize) {
        let mut held = self.held.lock();
        *held.of(reservation) -= bytes;
        if held.bytes() == 0 && bytes > 0 {
            self.all.holders.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, bytes: usize) -> Result<()> {
        let mut held = self.held.lock();
        let mut holders = self.all.holders.load(Ordering::Relaxed);
        if held.bytes() == 0 {
            holders += 1;
        }
        let share = self.all.bytes / holders.max(1);
        let room = match reservation.consumer().can_spill() {
            true => {
                let part = share.saturating_sub(held.unspillable) / held.spillers.max(1);
                part.saturating_sub(reservation.size())
            }
            false => share.saturating_sub(held.bytes()),
        };
        if bytes > room {
            let name = reservation.consumer().name();
            return Err(resources_datafusion_err!(
                "{name} needs {bytes} bytes and has room for {room}"
            ));
        }
        self.add(&mut held, reservation, bytes);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.held.lock().bytes()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.all.share())
    }
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "query ({} bytes)", self.reserved())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consumer(account: &Arc<Account>, spills: bool) -> MemoryReservation {
        let pool: Arc<dyn MemoryPool> = account.clone();
        MemoryConsumer::new("test").with_can_spill(spills).register(&pool)
    }

    #[test]
    fn queries_that_hold_memory_have_equal_shares() {
        let all = QueryMemory::new(1200);
        let (one, two) = (all.account(), all.account());
        let (first, second) = (consumer(&one, false), consumer(&two, false));
        assert!(first.try_grow(1200).is_ok());
        assert!(first.try_grow(1).is_err());
        // The first one keeps what it has; the second one has its share all the same.
        assert!(second.try_grow(601).is_err());
        assert!(second.try_grow(600).is_ok());
        assert_eq!(all.share(), 600);
        first.shrink(700);
        assert!(first.try_grow(101).is_err());
        assert!(first.try_grow(100).is_ok());
        drop(second);
        assert_eq!(all.share(), 1200);
        assert!(first.try_grow(600).is_ok());
        drop(first);
        assert_eq!((all.share(), one.reserved(), two.reserved()), (1200, 0, 0));
    }

    #[test]
    fn operators_that_spill_have_equal_parts_of_what_the_others_leave() {
        let account = QueryMemory::new(1000).account();
        let (one, two) = (consumer(&account, true), consumer(&account, true));
        let build = consumer(&account, false);
        assert!(build.try_grow(200).is_ok());
        assert!(one.try_grow(401).is_err());
        assert!(one.try_grow(400).is_ok());
        assert!(two.try_grow(400).is_ok());
        assert!(build.try_grow(1).is_err());
        drop(two);
        assert!(one.try_grow(400).is_ok());
    }
}
