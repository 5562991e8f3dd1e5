//! Threads that do the same kind of work, as fast as they can or at a rate.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

/// A piece of work of one client, again and again.
pub(crate) trait Client: Send {
    fn act(&mut self, random: &mut Rng);
}

/// The work that clients did.
pub(crate) struct Done {
    /// How long each piece of work took, in order: in a closed loop from its begin, in an open one from when it was due.
    pub(crate) took: Vec<Duration>,
    /// How many pieces were due; in a closed loop those that were done.
    pub(crate) due: usize,
    /// How long the clients worked.
    pub(crate) elapsed: Duration,
}

impl Done {
    fn of(parts: Vec<(Vec<Duration>, usize)>, elapsed: Duration) -> Self {
        let due = parts.iter().map(|(_, due)| due).sum();
        let mut took: Vec<Duration> = parts.into_iter().flat_map(|(took, _)| took).collect();
        took.sort_unstable();
        Self { took, due, elapsed }
    }

    /// Pieces of work a second.
    pub(crate) fn rate(&self) -> f64 {
        self.took.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The share of the work due that was done.
    pub(crate) fn share(&self) -> f64 {
        self.took.len() as f64 / self.due.max(1) as f64
    }

    /// The longest time of this share of the pieces, in microseconds.
    pub(crate) fn within(&self, share: f64) -> f64 {
        let last = self.took.len().saturating_sub(1);
        self.took.get((last as f64 * share) as usize).map_or(0.0, |took| took.as_secs_f64() * 1e6)
    }
}

/// Each client begins a piece of work when its last one is done, for so long.
pub(crate) fn closed(clients: &mut [Box<dyn Client>], period: Duration) -> Done {
    let start = Instant::now();
    let parts = spread(clients, |client, random| {
        let mut took = Vec::new();
        while start.elapsed() < period {
            let begun = Instant::now();
            client.act(random);
            took.push(begun.elapsed());
        }
        let done = took.len();
        (took, done)
    });
    Done::of(parts, start.elapsed())
}

/// As [`open`], while `act` runs on a thread of its own, whose result is returned, too.
pub(crate) fn open_during<R: Send>(
    clients: &mut [Box<dyn Client>],
    rate: f64,
    act: impl FnOnce() -> R + Send,
) -> (Done, R) {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let result = act();
            ended.store(true, Ordering::Relaxed);
            result
        });
        let done = open(clients, rate, &ended);
        (done, acting.join().expect("it comes to its end"))
    })
}

/// Pieces of work are due at `rate` a second over all clients, at random times, until `ended`. A client that is late does what
/// is due one after the other; what is due and not begun at the end is not done.
fn open(clients: &mut [Box<dyn Client>], rate: f64, ended: &AtomicBool) -> Done {
    let mean = clients.len() as f64 / rate;
    let barrier = Barrier::new(clients.len());
    let start = Instant::now();
    let parts = spread(clients, |client, random| {
        barrier.wait();
        let begun = Instant::now();
        let (mut took, mut due) = (Vec::new(), Duration::ZERO);
        loop {
            due += Duration::from_secs_f64(-mean * (1.0 - random.f64()).ln());
            while !ended.load(Ordering::Relaxed) {
                let early = due.saturating_sub(begun.elapsed());
                if early.is_zero() {
                    break;
                }
                // Clients that wait for long look at times whether they have ended.
                thread::sleep(early.min(Duration::from_millis(20)));
            }
            if ended.load(Ordering::Relaxed) {
                break;
            }
            client.act(random);
            took.push(begun.elapsed().saturating_sub(due));
        }
        // The pieces that were due until now and were not begun.
        let mut left = 0;
        let now = begun.elapsed();
        while due < now {
            left += 1;
            due += Duration::from_secs_f64(-mean * (1.0 - random.f64()).ln());
        }
        let all = took.len() + left;
        (took, all)
    });
    Done::of(parts, start.elapsed())
}

/// Runs each client on a thread of its own.
fn spread<R: Send>(
    clients: &mut [Box<dyn Client>],
    run: impl Fn(&mut dyn Client, &mut Rng) -> R + Sync,
) -> Vec<R> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .enumerate()
            .map(|(seed, client)| {
                scope.spawn(move || run(&mut **client, &mut Rng::with_seed(seed as u64)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a client does its work")).collect()
    })
}
