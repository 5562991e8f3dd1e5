//! The threads of a pool.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use alluvium_storage_shuttle::{Compaction, MergePool};
use shuttle::thread;

use crate::model::{Sliced, in_many_orders};

#[test]
fn each_job_of_a_pool_is_done_once_and_wakes_its_owner() {
    in_many_orders(|| {
        let pool = Arc::new(MergePool::start(2).unwrap());
        let owners = [0, 1].map(|owner| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let jobs = [1, 3].map(|slices| Sliced::job(owner, slices));
                jobs.iter().for_each(|(job, _)| pool.submit(job.clone()));
                for (job, seen) in jobs {
                    // All threads waiting at once would be a failure.
                    seen.sleep();
                    assert_eq!(job.work().take(), Some(job.bytes() / 10));
                    assert_eq!((seen.slices() * 10, seen.finished()), (job.bytes(), 1));
                }
            })
        });
        for owner in owners {
            owner.join().unwrap();
        }
        pool.close();
    });
}

#[test]
fn owners_and_a_pool_share_jobs() {
    in_many_orders(|| {
        let pool = MergePool::start(2).unwrap();
        let jobs = [2, 3].map(|slices| Sliced::job(0, slices));
        jobs.iter().for_each(|(job, _)| pool.submit(job.clone()));
        for (job, seen) in &jobs {
            while !job.advance(1).is_done {}
            assert_eq!(job.work().take(), Some(job.bytes() / 10));
            assert_eq!((seen.slices() * 10, seen.finished()), (job.bytes(), 1));
        }
        drop(pool);
    });
}

#[test]
fn a_pool_whose_jobs_are_cancelled_releases_them_and_does_the_others() {
    in_many_orders(|| {
        let pool = MergePool::start(2).unwrap();
        let [(cancelled, gone), (wanted, seen)] = [3, 2].map(|slices| Sliced::job(0, slices));
        pool.submit(cancelled.clone());
        pool.submit(wanted.clone());
        thread::yield_now();
        cancelled.cancel();
        seen.sleep();
        assert_eq!(wanted.work().take(), Some(2));
        pool.close();
        assert!(gone.released.load(Ordering::Relaxed));
        assert_eq!(cancelled.work().take(), None);
    });
}

#[test]
fn a_pool_that_is_closed_ends_though_jobs_come_meanwhile() {
    in_many_orders(|| {
        let pool = Arc::new(MergePool::start(2).unwrap());
        let jobs = [1, 2, 3].map(|slices| Sliced::job(0, slices));
        let submits = thread::spawn({
            let (pool, jobs) = (Arc::clone(&pool), jobs.clone());
            move || jobs.into_iter().for_each(|(job, _)| pool.submit(job))
        });
        pool.close();
        submits.join().unwrap();
        for (job, seen) in jobs {
            let slices = seen.slices();
            thread::yield_now();
            assert_eq!(slices, seen.slices(), "nobody goes on");
            // The pool has left it as it was: the owner can continue.
            while !job.advance(1).is_done {}
            assert_eq!((seen.slices() * 10, seen.finished()), (job.bytes(), 1));
            // And no other owner holds it.
            assert_eq!(Arc::strong_count(&job), 1);
        }
    });
}
