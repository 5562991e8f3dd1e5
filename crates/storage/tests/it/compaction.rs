//! Jobs on the threads of a pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use alluvium_storage::{Compaction, Haphazard, Job, MergePool, Slice, Work};

/// Work of so many bytes that counts what is done, and reports when it is over.
struct Counted {
    left: u64,
    done: Arc<AtomicU64>,
    over: Sender<u64>,
    /// Dropped with the work, or when it is released.
    held: Option<Arc<()>>,
}

impl Work for Counted {
    fn slice(&mut self, bytes: u64) -> Slice {
        let bytes = bytes.min(self.left).min(1000);
        self.left -= bytes;
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if self.left == 0 {
            let _ = self.over.send(done);
        }
        Slice { bytes, is_done: self.left == 0 }
    }

    fn release(&mut self) {
        self.held = None;
    }
}

fn counted(bytes: u64) -> (Counted, Arc<AtomicU64>, Receiver<u64>, Arc<()>) {
    let (done, (over, receiver), held) = (Arc::default(), channel(), Arc::default());
    let work =
        Counted { left: bytes, done: Arc::clone(&done), over, held: Some(Arc::clone(&held)) };
    (work, done, receiver, held)
}

#[test]
fn jobs_of_all_owners_are_done_once() {
    all_are_done_once(&MergePool::start(3).expect("threads"));
    all_are_done_once(&Haphazard::new(1));
}

fn all_are_done_once(pool: &dyn Compaction) {
    let jobs: Vec<_> = (0..200)
        .map(|number| {
            let (work, done, over, _) = counted(1 + number * 100);
            let job = Job::new(number % 5, 1 + number * 100, work);
            pool.submit(job.clone());
            (job, done, over)
        })
        .collect();
    for (job, done, over) in jobs {
        assert_eq!(over.recv(), Ok(job.bytes()));
        // The slice is over a little later.
        drop(job.work());
        assert!(job.is_done());
        assert_eq!((done.load(Ordering::Relaxed), job.progress()), (job.bytes(), job.bytes()));
    }
}

#[test]
fn the_owner_can_do_a_job_that_no_thread_does() {
    let (work, done, _over, _) = counted(10_000);
    let job = Job::new(0, 10_000, work);
    let mut slices = 0;
    while !job.advance(700).is_done {
        slices += 1;
    }
    assert_eq!((slices, done.load(Ordering::Relaxed)), (14, 10_000));
    assert_eq!(job.advance(700), Slice { bytes: 0, is_done: true });
}

#[test]
fn a_cancelled_job_releases_what_it_holds() {
    let pool = MergePool::start(1).expect("threads");
    for round in 0..100 {
        let (work, _done, _over, held) = counted(u64::MAX);
        let job = Job::new(0, u64::MAX, work);
        pool.submit(job.clone());
        if round % 2 == 0 {
            while job.progress() == 0 {
                std::thread::yield_now();
            }
        }
        job.cancel();
        while Arc::strong_count(&held) > 1 {
            std::thread::yield_now();
        }
        assert!(!job.is_done());
    }
}

#[test]
fn a_pool_that_is_closed_ends_its_threads_and_does_nothing_more() {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    struct Endless;
    impl Work for Endless {
        fn slice(&mut self, bytes: u64) -> Slice {
            RUNNING.fetch_add(1, Ordering::Relaxed);
            Slice { bytes, is_done: false }
        }
        fn release(&mut self) {}
    }
    let pool = MergePool::start(2).expect("threads");
    (0..4).for_each(|owner| pool.submit(Job::new(owner, 1 << 40, Endless)));
    while RUNNING.load(Ordering::Relaxed) < 10 {
        std::thread::yield_now();
    }
    pool.close();
    let slices = RUNNING.load(Ordering::Relaxed);
    pool.submit(Job::new(0, 1, Endless));
    drop(pool);
    assert_eq!(RUNNING.load(Ordering::Relaxed), slices);
}
