//! A job between its owner and one other thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use alluvium_storage_shuttle::{Job, Slice};
use shuttle::thread;

use crate::model::{Sliced, in_many_orders};

/// Another thread that does slices as long as there are any.
fn other(job: &Arc<Job<Sliced>>) -> thread::JoinHandle<()> {
    let job = Arc::clone(job);
    thread::spawn(move || while !job.advance(1).is_done {})
}

#[test]
fn two_threads_do_each_slice_once_and_there_is_one_result() {
    in_many_orders(|| {
        let (job, seen) = Sliced::job(0, 4);
        let other = other(&job);
        while !job.advance(1).is_done {}
        // There is a result now, whichever thread did the last slice.
        assert!(job.is_done() && job.is_settled());
        assert_eq!(job.work().take(), Some(4));
        assert_eq!(job.work().take(), None);
        other.join().unwrap();
        assert_eq!((seen.slices(), seen.finished()), (4, 1));
        assert_eq!(job.progress(), job.bytes());
        assert_eq!(job.advance(1), Slice { bytes: 0, is_done: true });
    });
}

#[test]
fn a_job_that_is_seen_as_done_has_its_result() {
    in_many_orders(|| {
        let (job, seen) = Sliced::job(0, 2);
        let other = other(&job);
        while !job.is_done() {
            thread::yield_now();
        }
        assert_eq!(job.work().take(), Some(2));
        assert_eq!(seen.finished(), 1);
        other.join().unwrap();
    });
}

#[test]
fn an_owner_that_is_woken_sees_the_result() {
    in_many_orders(|| {
        let (job, seen) = Sliced::job(0, 2);
        let other = other(&job);
        seen.sleep();
        assert!(job.is_done());
        assert_eq!(job.work().take(), Some(2));
        other.join().unwrap();
    });
}

#[test]
fn the_owner_takes_over_a_job_that_is_half_done() {
    in_many_orders(|| {
        let (job, seen) = Sliced::job(0, 4);
        let other = thread::spawn({
            let job = Arc::clone(&job);
            move || [1, 1].map(|bytes| job.advance(bytes))
        });
        while !job.is_done() {
            job.advance(1);
        }
        assert_eq!((job.work().take(), seen.slices(), seen.finished()), (Some(4), 4, 1));
        other.join().unwrap();
    });
}

#[test]
fn a_cancelled_job_is_released_when_the_slice_ends_at_the_latest() {
    in_many_orders(|| {
        let (job, seen) = Sliced::job(0, 4);
        let other = thread::spawn({
            let job = Arc::clone(&job);
            move || job.advance(1)
        });
        job.cancel();
        other.join().unwrap();
        assert!(seen.released.load(Ordering::Relaxed));
        assert!(!job.is_done() && job.is_settled());
        assert_eq!((job.work().take(), seen.finished()), (None, 0));
        assert_eq!(job.advance(1), Slice { bytes: 0, is_done: true });
        assert!(seen.slices() <= 1);
    });
}

#[test]
fn of_many_threads_the_last_releases_a_cancelled_job() {
    in_many_orders(|| {
        let (job, seen) = Sliced::job(0, 10);
        let others = [other(&job), other(&job)];
        job.cancel();
        for other in others {
            other.join().unwrap();
        }
        assert!(seen.released.load(Ordering::Relaxed));
    });
}

#[test]
fn a_job_that_is_cancelled_at_its_end_is_done_or_released() {
    in_many_orders(|| {
        let (job, seen) = Sliced::job(0, 1);
        let other = other(&job);
        job.cancel();
        other.join().unwrap();
        assert_eq!(job.is_done(), seen.finished() == 1);
        assert!(seen.released.load(Ordering::Relaxed), "nobody wants the result any more");
        assert_eq!(job.work().take(), None);
    });
}
