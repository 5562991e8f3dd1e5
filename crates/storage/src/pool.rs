//! A pool of threads that do jobs.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::compaction::{Compaction, Job, Work};
use crate::sync::thread::{Builder, JoinHandle};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many bytes of input a thread goes through before it looks for the most urgent job again.
const SLICE: u64 = 256 << 10;

/// A fixed number of threads that do jobs in slices of about a millisecond.
///
/// It is fair between owners: the next slice is for the one that was served the fewest bytes. Of an owner's jobs the
/// one comes first that would be done first if all of them were served alike. So small jobs overtake large ones, and a
/// large one waits for no more bytes of later jobs than it has itself.
pub struct MergePool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    owners: BTreeMap<u64, Owner>,
    /// Numbers the jobs.
    next: u64,
    /// The bytes served to the owner of the last slice: newcomers start there.
    floor: u64,
    is_closed: bool,
}

/// The place of a job in the order of an owner: the bytes that the owner will have been served when the job is done, and
/// the number of the job.
type Place = (u64, u64);

/// The jobs of an owner that wait.
#[derive(Default)]
struct Owner {
    /// The bytes of all slices, in proportion to other owners.
    served: u64,
    /// Slices that are being done.
    running: usize,
    waiting: BTreeMap<Place, Arc<Job<dyn Work>>>,
}

impl fmt::Debug for MergePool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MergePool").finish_non_exhaustive()
    }
}

impl MergePool {
    /// A pool of so many threads, at least one.
    ///
    /// # Errors
    ///
    /// If the system has no more threads.
    pub fn start(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new() });
        let pool = Self { shared, threads: Mutex::default() };
        for number in 0..threads.max(1) {
            let shared = Arc::clone(&pool.shared);
            let name = format!("alluvium-merge-{number}");
            let thread = Builder::new().name(name).spawn(move || shared.run())?;
            locked(&pool.threads).push(thread);
        }
        Ok(pool)
    }
}

/// The value that a lock guards, also after a panic: no change is ever half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Compaction for MergePool {
    fn submit(&self, job: Arc<Job<dyn Work>>) {
        let mut queue = locked(&self.shared.queue);
        if !queue.is_closed {
            queue.add(job);
            drop(queue);
            self.shared.changed.notify_one();
        }
    }

    fn close(&self) {
        let mut queue = locked(&self.shared.queue);
        queue.is_closed = true;
        let jobs = std::mem::take(&mut queue.owners);
        drop(queue);
        self.shared.changed.notify_all();
        drop(jobs);
        for thread in locked(&self.threads).drain(..) {
            // Slices do not panic: there is nothing to learn from joining.
            let _ = thread.join();
        }
    }
}

impl Drop for MergePool {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Does slices until the pool is closed.
    fn run(&self) {
        let mut queue = locked(&self.queue);
        while !queue.is_closed {
            let Some((key, job)) = queue.take() else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queue);
            let slice = job.advance(SLICE);
            let owner = job.owner();
            // The last reference to a job that is settled releases its inputs, which takes a while.
            let job = (!slice.is_done).then_some(job);
            queue = locked(&self.queue);
            queue.put_back(owner, slice.bytes, key, job);
        }
    }
}

impl Queue {
    fn add(&mut self, job: Arc<Job<dyn Work>>) {
        self.next += 1;
        let (number, floor) = (self.next, self.floor);
        let owner = self.owners.entry(job.owner()).or_default();
        if owner.is_idle() {
            owner.served = owner.served.max(floor);
        }
        owner.waiting.insert((owner.served.saturating_add(job.bytes()), number), job);
    }

    /// The job of the next slice, with its place in the order.
    fn take(&mut self) -> Option<(Place, Arc<Job<dyn Work>>)> {
        let waiting = self.owners.values_mut().filter(|owner| !owner.waiting.is_empty());
        let owner = waiting.min_by_key(|owner| (owner.running, owner.served))?;
        self.floor = self.floor.max(owner.served);
        owner.running += 1;
        owner.waiting.pop_first()
    }

    /// A slice for this owner is over; `job` is the rest.
    fn put_back(&mut self, owner: u64, bytes: u64, key: Place, job: Option<Arc<Job<dyn Work>>>) {
        // Gone if the pool was closed meanwhile.
        let Some(entry) = self.owners.get_mut(&owner) else { return };
        entry.running -= 1;
        entry.served = entry.served.saturating_add(bytes);
        if let Some(job) = job {
            entry.waiting.insert(key, job);
        } else if entry.is_idle() {
            self.owners.remove(&owner);
        }
    }
}

impl Owner {
    fn is_idle(&self) -> bool {
        self.running == 0 && self.waiting.is_empty()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::compaction::Slice;

    /// Work that takes as many bytes as it is given.
    struct Count(u64);

    impl Work for Count {
        fn slice(&mut self, bytes: u64) -> Slice {
            let bytes = bytes.min(self.0);
            self.0 -= bytes;
            Slice { bytes, is_done: self.0 == 0 }
        }

        fn release(&mut self) {}
    }

    const MIB: u64 = 1 << 20;

    /// Adds a job of this owner and so many bytes.
    fn add(queue: &mut Queue, owner: u64, bytes: u64) {
        queue.add(Job::new(owner, bytes, Count(bytes)));
    }

    /// Does a slice. The owner of the job and its bytes, and whether it is done.
    fn step(queue: &mut Queue) -> Option<(u64, u64, bool)> {
        let (key, job) = queue.take()?;
        let slice = job.advance(SLICE);
        let (owner, bytes) = (job.owner(), job.bytes());
        queue.put_back(owner, slice.bytes, key, (!slice.is_done).then_some(job));
        Some((owner, bytes, slice.is_done))
    }

    /// The owners and sizes of the jobs in the order in which they are done.
    fn order(queue: &mut Queue) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| step(queue))
            .filter_map(|(owner, bytes, is_done)| is_done.then_some((owner, bytes / MIB)))
            .collect()
    }

    #[test]
    fn small_jobs_come_before_large_ones() {
        let mut queue = Queue::default();
        [8, 1, 4, 2].into_iter().for_each(|size| add(&mut queue, 0, size * MIB));
        assert_eq!(order(&mut queue), [(0, 1), (0, 2), (0, 4), (0, 8)]);
        assert!(queue.owners.is_empty());
    }

    #[test]
    fn a_small_job_overtakes_a_large_one_that_has_begun() {
        let mut queue = Queue::default();
        add(&mut queue, 0, 8 * MIB);
        assert_eq!(step(&mut queue), Some((0, 8 * MIB, false)));
        add(&mut queue, 0, MIB);
        assert_eq!(order(&mut queue), [(0, 1), (0, 8)]);
    }

    #[test]
    fn a_large_job_is_done_though_small_ones_come_all_the_time() {
        let mut queue = Queue::default();
        add(&mut queue, 0, 16 * MIB);
        let mut small = 0;
        loop {
            add(&mut queue, 0, MIB);
            small += 1;
            if order_until_done(&mut queue).1 == 16 {
                break;
            }
        }
        assert!(small <= 17, "{small} jobs have overtaken it");
    }

    /// The first job that is done.
    fn order_until_done(queue: &mut Queue) -> (u64, u64) {
        loop {
            if let Some((owner, bytes, true)) = step(queue) {
                return (owner, bytes / MIB);
            }
        }
    }

    #[test]
    fn owners_take_turns_whatever_they_submit() {
        let mut queue = Queue::default();
        (0..20).for_each(|_| add(&mut queue, 0, MIB));
        add(&mut queue, 1, 8 * MIB);
        let mut served = [0_u64; 2];
        while let Some((owner, bytes, is_done)) = step(&mut queue) {
            served[owner as usize] += 1;
            assert!(served[0] + served[1] > 64 || served[0].abs_diff(served[1]) <= 1);
            if is_done && bytes == 8 * MIB {
                break;
            }
        }
        assert_eq!(served[1], 32);
        // One that comes late gets no more than its share for it.
        add(&mut queue, 2, 8 * MIB);
        let turns: Vec<u64> =
            (0..8).filter_map(|_| step(&mut queue).map(|(owner, ..)| owner)).collect();
        assert_eq!(turns.iter().filter(|owner| **owner == 0).count(), 4, "{turns:?}");
    }
}
