//! The memory budget of an engine: an account that counts, and a policy with the thresholds.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::account::Account;
use super::mappings::Mappings;
use super::policy::MemoryPolicy;
use super::pressure::Pressure;
use super::slots::Slots;

/// Counts the memory of an engine's state and compares it with a limit. Clones share the count.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    policy: MemoryPolicy,
    account: Account,
    mappings: Mappings,
    /// The memory of full pages.
    slots: Arc<Slots>,
    pressure: Pressure,
}

impl MemoryBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self::with_pressure(limit, Arc::new(|_| ()))
    }

    /// A budget of `limit` bytes that calls `act`, with the limit, when [a third](MemoryPolicy::pressure) of it is
    /// first in use, and then whenever twice as many bytes as the limit were written to files. The thread that uses or writes
    /// them makes the call.
    pub fn with_pressure(limit: usize, act: Arc<dyn Fn(usize) + Send + Sync>) -> Self {
        let policy = MemoryPolicy::new(limit);
        Self {
            shared: Arc::new(Shared {
                policy,
                account: Account::default(),
                mappings: Mappings::new(&policy),
                slots: Arc::new(Slots::new(policy.free_slots)),
                pressure: Pressure::new(&policy, act),
            }),
        }
    }

    /// A budget that counts and never limits.
    pub fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// The thresholds that follow from the limit.
    #[inline]
    pub fn policy(&self) -> &MemoryPolicy {
        &self.shared.policy
    }

    /// The counted bytes in use now.
    pub fn used(&self) -> usize {
        self.shared.account.used()
    }

    /// The most counted bytes that were ever in use.
    pub fn peak(&self) -> usize {
        self.shared.account.peak()
    }

    /// The bytes of mapped files that are resident, as far as readers touched them since the last eviction.
    pub fn resident(&self) -> usize {
        self.shared.mappings.resident()
    }

    /// The bytes of freed pages that are kept for new ones. They do not count as used.
    pub fn kept(&self) -> usize {
        self.shared.slots.kept()
    }

    /// The bytes of the files that hold state now.
    pub fn files(&self) -> u64 {
        self.shared.account.files()
    }

    /// The bytes that were ever written to such files.
    pub fn written(&self) -> u64 {
        self.shared.account.written()
    }

    /// Whether more is in use than [`MemoryPolicy::counted`].
    pub fn is_over(&self) -> bool {
        self.excess() > 0
    }

    /// Whether more is in use than the limit.
    pub fn is_exceeded(&self) -> bool {
        self.used() > self.policy().limit
    }

    /// By how much the bytes in use exceed [`MemoryPolicy::counted`].
    pub(crate) fn excess(&self) -> usize {
        self.used().saturating_sub(self.policy().counted)
    }

    /// By how much the bytes in use will exceed [`MemoryPolicy::counted`] when all that is on its way to files is there.
    pub(crate) fn excess_after_spills(&self) -> usize {
        self.excess().saturating_sub(self.shared.account.spilling().load(Ordering::Relaxed))
    }

    /// Whether so much is in use that merges and moves to files should not wait.
    pub(crate) fn is_critical(&self) -> bool {
        self.used() > self.policy().critical
    }

    /// The bytes that jobs of all spines have to merge, as far as their owners know.
    pub fn debt(&self) -> usize {
        self.shared.account.debt().load(Ordering::Relaxed)
    }

    /// Whether that is too much.
    pub(crate) fn is_indebted(&self) -> bool {
        self.debt() > self.policy().debt
    }

    /// Whether it is so much that jobs should not wait any longer.
    pub(crate) fn is_overindebted(&self) -> bool {
        self.debt() > self.policy().most_debt
    }

    /// Whether it is so much that jobs should not wait for a worker that has nothing else to do.
    pub(crate) fn is_nearly_overindebted(&self) -> bool {
        self.debt() > self.policy().most_debt / 2
    }

    /// Counts the input of a job, which moves it to a file or else merges it, until the result is dropped.
    pub(crate) fn owe(&self, bytes: usize, is_spill: bool) -> Debt {
        let debt = Debt { budget: self.clone(), bytes: Cell::new(0), is_spill };
        debt.set(bytes);
        debt
    }

    /// Whether `bytes` more would exceed [`MemoryPolicy::counted`].
    pub(crate) fn would_exceed(&self, bytes: usize) -> bool {
        self.used().saturating_add(bytes) > self.policy().counted
    }

    /// Whether a buffer of this size, which could be in a file as well, should be moved there.
    pub fn is_large_buffer(&self, bytes: usize) -> bool {
        bytes >= self.policy().large_buffer || self.is_over() && bytes >= self.buffer_when_over()
    }

    /// How large a buffer may be while more is in use than [`MemoryPolicy::counted`].
    fn buffer_when_over(&self) -> usize {
        let policy = self.policy();
        let buffers = self.shared.account.buffers().max(1);
        policy.large_buffer_when_over.min(policy.all_buffers_when_over / buffers)
    }

    /// How many bytes a buffer that is filled again and again, this time with `used`, keeps allocated when it is
    /// emptied: what it needed, within [`MemoryPolicy::retained_buffer`].
    pub fn retained(&self, used: usize) -> usize {
        let policy = self.policy();
        match self.is_over() {
            true => used.min(policy.retained_buffer).min(self.buffer_when_over()),
            false => used.min(policy.retained_buffer).max(policy.output_batch),
        }
    }

    /// Whether so much waits between workers that producers should stop.
    pub fn is_congested(&self) -> bool {
        self.shared.account.queued() > self.policy().queued
    }

    /// Counts `bytes` until the charge is dropped.
    pub fn charge(&self, bytes: usize) -> Charge {
        let mut charge = Charge { budget: self.clone(), bytes: 0 };
        charge.set(bytes);
        charge
    }

    /// Counts a buffer of unsorted rows, and the bytes it is charged for, until the result is dropped.
    pub(crate) fn buffer(&self) -> BufferCharge {
        self.shared.account.add_buffer();
        BufferCharge(self.charge(0))
    }

    /// Counts `bytes` that wait between workers until the result is dropped.
    pub fn queue(&self, bytes: usize) -> Queued {
        self.shared.account.enqueue(bytes);
        Queued { charge: self.charge(bytes) }
    }

    /// The memory of full pages.
    pub(super) fn slots(&self) -> &Arc<Slots> {
        &self.shared.slots
    }

    /// Counts a file that was written.
    pub(crate) fn add_file(&self, bytes: u64) {
        let Shared { account, pressure, .. } = &*self.shared;
        account.add_file(bytes);
        pressure.writes_to(account.written());
    }

    /// No longer counts a file.
    pub(crate) fn remove_file(&self, bytes: u64) {
        self.shared.account.remove_file(bytes);
    }

    /// The mapped files.
    pub(crate) fn mappings(&self) -> &Mappings {
        &self.shared.mappings
    }
}

/// The bytes of a job's input that it has not gone through, which leave the account when this is dropped.
#[derive(Debug)]
pub(crate) struct Debt {
    budget: MemoryBudget,
    bytes: Cell<usize>,
    is_spill: bool,
}

impl Debt {
    /// Counts `bytes` instead of the earlier number.
    pub(crate) fn set(&self, bytes: usize) {
        let before = self.bytes.replace(bytes);
        if bytes < before {
            self.counter().fetch_sub(before - bytes, Ordering::Relaxed);
        } else {
            self.counter().fetch_add(bytes - before, Ordering::Relaxed);
        }
    }

    fn counter(&self) -> &AtomicUsize {
        let account = &self.budget.shared.account;
        if self.is_spill { account.spilling() } else { account.debt() }
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Counted bytes: they leave the account when this is dropped.
#[derive(Debug)]
pub struct Charge {
    budget: MemoryBudget,
    bytes: usize,
}

impl Charge {
    /// The budget that counts the bytes.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// Counts `bytes` instead of the earlier number.
    pub fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        let Shared { account, pressure, .. } = &*self.budget.shared;
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes < before {
            account.subtract(before - bytes);
        } else if let Some(peak) = account.add(bytes - before) {
            pressure.rises_to(peak, account.written());
        }
    }

    /// Counts `bytes` more.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.set(self.bytes + bytes);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The counted bytes of a buffer.
#[derive(Debug)]
pub(crate) struct BufferCharge(Charge);

impl BufferCharge {
    /// Counts `bytes` instead of the earlier number.
    pub(crate) fn set(&mut self, bytes: usize) {
        self.0.set(bytes);
    }
}

impl Drop for BufferCharge {
    fn drop(&mut self) {
        self.0.budget.shared.account.remove_buffer();
    }
}

/// Counted bytes that wait between workers.
#[derive(Debug)]
pub struct Queued {
    charge: Charge,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.charge.budget.shared.account.dequeue(self.charge.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_buffers_are_large_earlier_than_few() {
        const MIB: usize = 1 << 20;
        let budget = MemoryBudget::new(64 * MIB);
        let buffers: Vec<_> = (0..4).map(|_| budget.buffer()).collect();
        assert!(!budget.is_large_buffer(MIB), "nothing is in use");
        let _used = budget.charge(60 * MIB);
        assert!(budget.is_large_buffer(MIB) && !budget.is_large_buffer(MIB - 1));
        assert_eq!(budget.retained(2 * MIB), MIB);
        let more: Vec<_> = (0..60).map(|_| budget.buffer()).collect();
        assert!(budget.is_large_buffer(128 << 10) && !budget.is_large_buffer(127 << 10));
        assert_eq!(budget.retained(2 * MIB), 128 << 10);
        drop((buffers, more));
        assert!(!budget.is_large_buffer(MIB - 1));
    }
}
