//! Locks on the keys that open transactions write, and on tables.
//!
//! They keep writers of one row from running into each other: the second one waits until the first has committed, and reads what
//! that has written. Correctness does not depend on them, since what a transaction has read is validated when it commits: who
//! writes without reading takes none.
//!
//! A transaction locks a table [shared](Mode::Shared) before it locks keys of it, and [exclusive](Mode::Exclusive) instead of very
//! many keys. Locks are granted in the order in which they were asked for. One who would wait for itself, through others, is told
//! so instead.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

use crate::error::{Conflict, Error, Result};
use crate::poison::{Poison, Waited};
use crate::wait::{self, Look};
use crate::worker::DataflowId;

/// A thing that can be locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    Table(DataflowId),
    /// The encoded key of a row.
    Key(DataflowId, Box<[u8]>),
    /// The encoded values of a row in the columns of one of the UNIQUE constraints, by its number.
    Values(DataflowId, usize, Box<[u8]>),
}

/// Who else may hold a lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Others who share it.
    Shared,
    /// No one.
    Exclusive,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Granted {
    /// No other owner had it.
    AtOnce,
    /// Another owner had it, and has committed or rolled back.
    Waited,
}

/// A transaction that holds locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) transaction: u64,
    /// The number of its session among those of clients.
    pub(crate) session: Option<u64>,
}

/// A lock that a transaction holds or waits for.
pub(crate) struct ShownLock {
    pub(crate) resource: Resource,
    pub(crate) owner: Owner,
    pub(crate) mode: Mode,
    pub(crate) is_granted: bool,
}

/// All locks that are held.
pub(crate) struct RowLocks {
    state: Mutex<State>,
    next: AtomicU64,
    poison: Arc<Poison>,
}

#[derive(Default)]
struct State {
    locks: HashMap<Resource, Lock>,
    /// The resource that each waiting owner waits for.
    waiting: HashMap<Owner, Resource>,
}

/// Who holds a lock, and who waits for it, in order.
#[derive(Default)]
struct Lock {
    holders: Vec<(Owner, Mode)>,
    queue: VecDeque<Request>,
}

struct Request {
    owner: Owner,
    mode: Mode,
    waker: Waker,
}

/// The locks that a transaction holds. Dropping them releases all.
pub(crate) struct HeldLocks {
    locks: Arc<RowLocks>,
    owner: Owner,
    held: Mutex<HashMap<Resource, Mode>>,
}

impl Lock {
    /// Whether this one could have it beside those who hold it.
    fn is_compatible(&self, owner: Owner, mode: Mode) -> bool {
        let allows = |(other, held): &(Owner, Mode)| {
            *other == owner || (mode == Mode::Shared && *held == Mode::Shared)
        };
        self.holders.iter().all(allows)
    }

    fn grant(&mut self, owner: Owner, mode: Mode) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            Some((_, held)) => *held = mode.max(*held),
            None => self.holders.push((owner, mode)),
        }
    }

    /// Grants the requests of those who have waited longest. Returns them.
    fn grant_first(&mut self) -> Vec<(Owner, Waker)> {
        let mut granted = Vec::new();
        while let Some(Request { owner, mode, .. }) = self.queue.front()
            && self.is_compatible(*owner, *mode)
            && let Some(Request { owner, mode, waker }) = self.queue.pop_front()
        {
            self.grant(owner, mode);
            granted.push((owner, waker));
        }
        granted
    }
}

impl State {
    /// Whether `owner` waits for itself if it waits for `resource`, after those who do if it does not hold it.
    fn is_deadlock(&self, owner: Owner, resource: &Resource) -> bool {
        let (mut seen, mut waiting) = (HashSet::new(), vec![resource]);
        while let Some(resource) = waiting.pop() {
            let Some(lock) = self.locks.get(resource) else { continue };
            let is_behind = !self.holds(owner, resource);
            let holders = lock.holders.iter().map(|(holder, _)| *holder);
            let queue = lock.queue.iter().map(|request| request.owner);
            for other in holders.chain(queue.filter(|_| is_behind)) {
                if other == owner {
                    continue;
                }
                if let Some(next) = self.waiting.get(&other)
                    && seen.insert(other)
                {
                    if self.holds(owner, next) {
                        return true;
                    }
                    waiting.push(next);
                }
            }
        }
        false
    }

    fn holds(&self, owner: Owner, resource: &Resource) -> bool {
        let lock = self.locks.get(resource);
        lock.is_some_and(|lock| lock.holders.iter().any(|(holder, _)| *holder == owner))
    }

    /// Grants a lock that has become free to those who wait for it, who are to be woken.
    fn pass_on(&mut self, resource: &Resource, woken: &mut Vec<Waker>) {
        let Some(lock) = self.locks.get_mut(resource) else { return };
        let granted = lock.grant_first();
        if lock.holders.is_empty() && lock.queue.is_empty() {
            self.locks.remove(resource);
        }
        for (owner, waker) in granted {
            self.waiting.remove(&owner);
            woken.push(waker);
        }
    }
}

impl RowLocks {
    pub(crate) fn new(poison: Arc<Poison>) -> Arc<Self> {
        let (state, next) = (Mutex::default(), AtomicU64::new(0));
        let locks = Arc::new(Self { state, next, poison });
        locks.poison.register(&locks);
        locks
    }

    /// For a transaction that has none yet.
    pub(crate) fn begin(self: &Arc<Self>) -> HeldLocks {
        let transaction = self.next.fetch_add(1, Ordering::Relaxed);
        let owner = Owner { transaction, session: None };
        HeldLocks { locks: self.clone(), owner, held: Mutex::default() }
    }

    /// All locks: of each resource those who hold it, and then those who wait for it in order.
    pub(crate) fn all(&self) -> Vec<ShownLock> {
        let state = self.state.lock();
        let of = |(resource, lock): (&Resource, &Lock)| {
            let holders = lock.holders.iter().map(|(owner, mode)| (*owner, *mode, true));
            let queue = lock.queue.iter().map(|request| (request.owner, request.mode, false));
            let shown = |(owner, mode, is_granted)| ShownLock {
                resource: resource.clone(),
                owner,
                mode,
                is_granted,
            };
            holders.chain(queue).map(shown).collect::<Vec<_>>()
        };
        state.locks.iter().flat_map(of).collect()
    }
}

impl HeldLocks {
    /// Who holds them.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Says whose they are, before there are any.
    pub(crate) fn set_session(&mut self, session: u64) {
        self.owner.session = Some(session);
    }

    /// Locks a resource. Waits until no other owner has it, for as long as the call may take.
    pub(crate) fn acquire(&self, resource: Resource, mode: Mode) -> Result<Granted> {
        if self.held.lock().get(&resource).is_some_and(|held| *held >= mode) {
            return Ok(Granted::AtOnce);
        }
        let granted = self.request(&resource, mode)?;
        self.held.lock().insert(resource, mode);
        Ok(granted)
    }

    /// Locks a resource unless another owner has it, or waits for it. Returns whether it did.
    pub(crate) fn try_acquire(&self, resource: Resource, mode: Mode) -> Result<bool> {
        let mut held = self.held.lock();
        if held.get(&resource).is_some_and(|held| *held >= mode) {
            return Ok(true);
        }
        let mut state = self.locks.state.lock();
        self.locks.poison.check()?;
        let lock = state.locks.entry(resource.clone()).or_default();
        let is_free = lock.queue.is_empty() && lock.is_compatible(self.owner, mode);
        if is_free {
            lock.grant(self.owner, mode);
            held.insert(resource, mode);
        }
        Ok(is_free)
    }

    fn request(&self, resource: &Resource, mode: Mode) -> Result<Granted> {
        let owner = self.owner;
        let mut is_waiting = false;
        let granted = wait::until(|waker| {
            let mut state = self.locks.state.lock();
            self.locks.poison.check()?;
            if is_waiting {
                // A thread that passes a lock on takes the owner from those who wait.
                return Ok(match state.waiting.contains_key(&owner) {
                    true => Look::Waits(()),
                    false => Look::Found(Granted::Waited),
                });
            }
            let lock = state.locks.entry(resource.clone()).or_default();
            let has_it = lock.holders.iter().any(|(holder, _)| *holder == owner);
            if (lock.queue.is_empty() || has_it) && lock.is_compatible(owner, mode) {
                lock.grant(owner, mode);
                return Ok(Look::Found(Granted::AtOnce));
            }
            if state.is_deadlock(owner, resource) {
                return Err(Error::conflict(Conflict::Deadlock, "it waits for this one"));
            }
            let request = Request { owner, mode, waker: waker.clone() };
            if let Some(lock) = state.locks.get_mut(resource) {
                match has_it {
                    true => lock.queue.push_front(request),
                    false => lock.queue.push_back(request),
                }
            }
            state.waiting.insert(owner, resource.clone());
            is_waiting = true;
            Ok(Look::Waits(()))
        });
        if granted.is_err() && is_waiting {
            let mut woken = Vec::new();
            let mut state = self.locks.state.lock();
            // It may have been granted while this gave up: then it is held until the transaction ends.
            let is_granted = state.waiting.remove(&owner).is_none();
            if let Some(lock) = state.locks.get_mut(resource) {
                lock.queue.retain(|request| request.owner != owner);
            }
            state.pass_on(resource, &mut woken);
            drop(state);
            woken.into_iter().for_each(Waker::wake);
            if is_granted {
                self.held.lock().insert(resource.clone(), mode);
            }
        }
        granted
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        let held = std::mem::take(self.held.get_mut());
        if held.is_empty() {
            return;
        }
        let mut woken = Vec::new();
        let mut state = self.locks.state.lock();
        for resource in held.keys() {
            if let Some(lock) = state.locks.get_mut(resource) {
                lock.holders.retain(|(holder, _)| *holder != self.owner);
            }
            state.pass_on(resource, &mut woken);
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Waited for RowLocks {
    fn wake(&self) {
        let state = self.state.lock();
        let queues = state.locks.values().flat_map(|lock| &lock.queue);
        queues.for_each(|request| request.waker.wake_by_ref());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::interrupt;

    const TABLE: DataflowId = DataflowId(7);

    fn key(key: u8) -> Resource {
        Resource::Key(TABLE, Box::new([key]))
    }

    fn locks() -> Arc<RowLocks> {
        RowLocks::new(Arc::new(Poison::default()))
    }

    fn take(held: &HeldLocks, resource: Resource, mode: Mode) -> Result<Granted> {
        held.acquire(resource, mode)
    }

    /// Whether it is free.
    fn is_free(held: &HeldLocks, resource: Resource, mode: Mode) -> bool {
        let taken = interrupt::limited(Some(Instant::now()), || held.acquire(resource, mode));
        taken == Ok(Granted::AtOnce)
    }

    /// Waits until so many wait.
    fn until_waiting(locks: &RowLocks, count: usize) {
        while locks.state.lock().waiting.len() < count {
            thread::yield_now();
        }
    }

    #[test]
    fn those_who_wait_get_a_lock_in_turn() {
        let locks = locks();
        let first = locks.begin();
        assert_eq!(take(&first, key(1), Mode::Exclusive), Ok(Granted::AtOnce));
        assert_eq!(take(&first, key(1), Mode::Exclusive), Ok(Granted::AtOnce));
        let (sender, order) = mpsc::channel();
        thread::scope(|scope| {
            for number in 0..4 {
                let (held, sender) = (locks.begin(), sender.clone());
                scope.spawn(move || {
                    assert_eq!(take(&held, key(1), Mode::Exclusive), Ok(Granted::Waited));
                    sender.send(number).unwrap();
                });
                until_waiting(&locks, number + 1);
            }
            assert!(!is_free(&locks.begin(), key(1), Mode::Exclusive));
            let other = locks.begin();
            assert!(is_free(&other, key(2), Mode::Exclusive));
            drop(first);
        });
        drop(sender);
        assert_eq!(order.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(locks.state.lock().locks.is_empty());
    }

    #[test]
    fn a_table_is_shared_until_one_wants_it_alone() {
        let locks = locks();
        let (one, other) = (locks.begin(), locks.begin());
        let table = || Resource::Table(TABLE);
        assert!(is_free(&one, table(), Mode::Shared));
        assert!(is_free(&other, table(), Mode::Shared));
        assert!(!is_free(&one, table(), Mode::Exclusive));
        drop(other);
        assert!(is_free(&one, table(), Mode::Exclusive));
        assert!(!is_free(&locks.begin(), table(), Mode::Shared));
    }

    #[test]
    fn one_of_those_who_wait_for_each_other_is_told() {
        for count in 2..5_u8 {
            let locks = locks();
            let all: Vec<_> = (0..count).map(|_| locks.begin()).collect();
            for (held, number) in all.iter().zip(0..) {
                take(held, key(number), Mode::Exclusive).unwrap();
            }
            let mut all = all.into_iter().zip(0..count);
            let (last, number) = all.next_back().unwrap();
            thread::scope(|scope| {
                for (waits, (held, number)) in all.enumerate() {
                    scope.spawn(move || {
                        take(&held, key((number + 1) % count), Mode::Exclusive).unwrap()
                    });
                    until_waiting(&locks, waits + 1);
                }
                let refused = take(&last, key((number + 1) % count), Mode::Exclusive);
                let kind = match refused {
                    Err(Error::Conflict { kind, .. }) => Some(kind),
                    _ => None,
                };
                assert_eq!(kind, Some(Conflict::Deadlock));
                drop(last);
            });
            assert!(locks.state.lock().locks.is_empty());
        }
    }

    #[test]
    fn one_who_gives_up_is_passed_over() {
        let locks = locks();
        let first = locks.begin();
        take(&first, key(1), Mode::Exclusive).unwrap();
        thread::scope(|scope| {
            let hasty = scope.spawn(|| {
                let held = locks.begin();
                let deadline = Instant::now() + Duration::from_millis(30);
                interrupt::limited(Some(deadline), || take(&held, key(1), Mode::Exclusive))
            });
            until_waiting(&locks, 1);
            let patient = scope.spawn(|| take(&locks.begin(), key(1), Mode::Exclusive));
            assert_eq!(hasty.join().unwrap(), Err(Error::TimedOut));
            drop(first);
            assert_eq!(patient.join().unwrap(), Ok(Granted::Waited));
        });
        let state = locks.state.lock();
        assert!(state.locks.is_empty() && state.waiting.is_empty());
    }
}
