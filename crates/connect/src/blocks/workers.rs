//! Threads that work on jobs at once, whose results come in the order of the jobs.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Works on one job, and gives its results one after the other; `false` says that nobody wants more.
pub type Work<J, T> = Box<dyn FnMut(J, &mut dyn FnMut(T) -> bool) + Send>;

/// A job, and where its results go.
type Sent<J, T> = (J, SyncSender<thread::Result<T>>);

/// Threads that work on jobs.
pub struct Workers<J, T> {
    /// `None` once they are to end.
    jobs: Option<Sender<Sent<J, T>>>,
    threads: Vec<JoinHandle<()>>,
    /// The results of each job that is not done, the oldest first.
    results: VecDeque<Receiver<thread::Result<T>>>,
}

impl<J: Send + 'static, T: Send + 'static> Workers<J, T> {
    /// A thread for each of these.
    pub fn new(works: impl IntoIterator<Item = Work<J, T>>) -> io::Result<Self> {
        let (jobs, queue) = channel::<Sent<J, T>>();
        let queue = Arc::new(Mutex::new(queue));
        let mut workers = Self { jobs: Some(jobs), threads: Vec::new(), results: VecDeque::new() };
        for mut work in works {
            let queue = queue.clone();
            let run = move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((job, results)) = next else { return };
                    let mut give = |result| results.send(Ok(result)).is_ok();
                    let done = catch_unwind(AssertUnwindSafe(|| work(job, &mut give)));
                    if let Err(panic) = done {
                        // Nobody may be there to hear of it.
                        let _ = results.send(Err(panic));
                        return;
                    }
                }
            };
            let thread = thread::Builder::new().name("decode".to_owned()).spawn(run)?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Whether a thread may be without a job soon.
    pub fn want_jobs(&self) -> bool {
        self.results.len() <= self.threads.len()
    }

    /// Adds a job.
    pub fn add(&mut self, job: J) {
        // One result is on its way while another one is made.
        let (to, results) = sync_channel(1);
        if let Some(jobs) = &self.jobs {
            // They wait for jobs as long as this is there.
            let _ = jobs.send((job, to));
        }
        self.results.push_back(results);
    }

    /// The next result; `None` if no job is left. A panic of a thread goes on here.
    pub fn next(&mut self) -> Option<T> {
        loop {
            match self.results.front()?.recv() {
                Ok(Ok(result)) => return Some(result),
                Ok(Err(panic)) => resume_unwind(panic),
                Err(_) => self.results.pop_front(),
            };
        }
    }
}

impl<J, T> Drop for Workers<J, T> {
    fn drop(&mut self) {
        self.jobs = None;
        self.results.clear();
        for thread in self.threads.drain(..) {
            // Its panic was told.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(threads: usize) -> Workers<u64, u64> {
        let work = |_| -> Work<u64, u64> {
            Box::new(|number, give| {
                assert_ne!(number, 13, "unlucky");
                if number % 3 == 0 {
                    thread::yield_now();
                }
                let _ = give(number) && give(number * number);
            })
        };
        Workers::new((0..threads).map(work)).unwrap()
    }

    #[test]
    fn results_have_the_order_of_jobs() {
        let mut workers = squares(4);
        let (mut found, mut next) = (Vec::new(), 100);
        loop {
            while workers.want_jobs() && next < 400 {
                workers.add(next);
                next += 1;
            }
            match workers.next() {
                Some(result) => found.push(result),
                None => break,
            }
        }
        let expected: Vec<u64> = (100..400).flat_map(|number| [number, number * number]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn workers_end_whether_or_not_their_results_are_taken_and_panics_are_told() {
        let mut workers = squares(2);
        (0..10).for_each(|job| workers.add(job));
        assert_eq!(workers.next(), Some(0));
        drop(workers);
        let mut workers = squares(2);
        workers.add(13);
        let told = catch_unwind(AssertUnwindSafe(|| workers.next()));
        assert!(told.is_err());
    }
}
