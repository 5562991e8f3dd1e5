//! The shared state of clients: when they end, what each does, and who ends calls of theirs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alluvium::{Interrupt, Result, Session};

use crate::keys::Random;

/// The activity of a client that has ended.
pub const NOTHING_MORE: &str = "nothing more";

/// Watches clients.
pub struct Watch {
    is_over: AtomicBool,
    clients: Vec<Watched>,
    problems: Mutex<Vec<String>>,
    /// The last epoch that any client knows to be committed.
    acknowledged: AtomicU64,
}

struct Watched {
    interrupt: Interrupt,
    /// Its activity, and since when.
    doing: Mutex<(Instant, String)>,
}

impl Watch {
    pub fn new(clients: usize) -> Self {
        let watched = |_| Watched {
            interrupt: Interrupt::default(),
            doing: Mutex::new((Instant::now(), "nothing".to_owned())),
        };
        Self {
            is_over: AtomicBool::new(false),
            clients: (0..clients).map(watched).collect(),
            problems: Mutex::default(),
            acknowledged: AtomicU64::default(),
        }
    }

    /// Whether clients should end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Makes them end.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// A client knows that an epoch is committed.
    pub fn acknowledge(&self, epoch: u64) {
        self.acknowledged.fetch_max(epoch, Ordering::SeqCst);
    }

    /// The last epoch that any client knows to be committed.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Notes what cannot be. All clients end.
    pub fn fail(&self, problem: String) {
        self.problems.lock().expect("nobody panics meanwhile").push(problem);
        self.end();
    }

    /// Observations that are impossible.
    pub fn problems(&self) -> Vec<String> {
        self.problems.lock().expect("nobody panics meanwhile").clone()
    }

    /// The request that ends calls of a client.
    pub fn interrupt(&self, client: usize) -> Interrupt {
        self.clients[client].interrupt.clone()
    }

    /// Notes what a client does.
    pub fn does(&self, client: usize, what: impl Into<String>) {
        *self.clients[client].doing.lock().expect("nobody panics meanwhile") =
            (Instant::now(), what.into());
    }

    /// The activities that have taken their clients too long.
    pub fn stuck(&self, patience: Duration) -> Vec<String> {
        let doing = self.clients.iter().enumerate().filter_map(|(client, watched)| {
            let (since, what) = &*watched.doing.lock().expect("nobody panics meanwhile");
            let has_ended = what == NOTHING_MORE;
            (!has_ended && since.elapsed() > patience).then(|| {
                let what: String = what.chars().take(100).collect();
                format!("client {client}, for {:?}: {what}", since.elapsed())
            })
        });
        doing.collect()
    }
}

/// Runs a call of a session, sometimes so that it may end early: by a timeout, or by this request. Returns whether it was, too.
pub fn limited<R>(
    random: &mut Random,
    session: &mut Session,
    interrupt: &Interrupt,
    call: impl FnOnce(&mut Session) -> Result<R>,
) -> (Result<R>, bool) {
    match random.below(12) {
        0 => {
            let limit = random.below(20) + 1;
            let set = session.execute(&format!("SET statement_timeout = '{limit}ms'"));
            set.expect("a timeout can be set");
            let done = call(session);
            session.execute("RESET statement_timeout").expect("a timeout can be reset");
            (done, true)
        }
        1 => {
            interrupt.clear();
            (interrupt.watch(|| call(session)), true)
        }
        _ => (call(session), false),
    }
}

/// Whether a message is that of an error which comes from a definition by another client.
pub fn is_of_definitions(message: &str) -> bool {
    let known = [
        "no table or view",
        "was filled",
        "keeps no rows",
        "no index",
        "while it was filled",
        "there is already",
        "exists already",
        "meanwhile",
        "has not failed",
        "cannot be filled",
        "RESUME",
    ];
    known.iter().any(|known| message.contains(known))
}
