//! What clients do, in numbers: connections, bytes, logins, statements and subscriptions, by protocol. `/metrics` shows them.
//!
//! To count costs an atomic addition. [`connection`] is one that is counted, with its bytes; [`statement`] one that runs, with its time; and
//! [`families`] writes all numbers.

mod connection;
mod families;
mod statement;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use self::connection::Counted;
pub(crate) use self::families::Families;
use self::statement::{Durations, OUTCOMES};
pub(crate) use self::statement::{Outcome, Running};

/// What clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Postgres,
    Http,
    #[cfg(feature = "flight")]
    Flight,
}

impl Protocol {
    const ALL: &'static [Self] = &[
        Self::Postgres,
        Self::Http,
        #[cfg(feature = "flight")]
        Self::Flight,
    ];

    /// The name by which sessions and metrics have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Http => "http",
            #[cfg(feature = "flight")]
            Self::Flight => "flight",
        }
    }
}

/// Why a connection was refused before a client could log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There were as many as there may be.
    Limit,
    /// It took too long.
    Timeout,
    /// It came from a place from where it may not, or in the clear.
    Place,
    /// It did not speak the protocol.
    Protocol,
}

const REFUSALS: [(Refusal, &str); 4] = [
    (Refusal::Limit, "limit"),
    (Refusal::Timeout, "timeout"),
    (Refusal::Place, "place"),
    (Refusal::Protocol, "protocol"),
];

/// The traffic of all protocols.
#[derive(Clone, Debug)]
pub(crate) struct Traffics(Vec<Arc<Traffic>>);

impl Default for Traffics {
    fn default() -> Self {
        Self(Protocol::ALL.iter().map(|_| Arc::default()).collect())
    }
}

impl Traffics {
    /// That of a protocol.
    pub(crate) fn of(&self, protocol: Protocol) -> &Arc<Traffic> {
        &self.0[protocol as usize]
    }
}

/// The traffic of a protocol since the start.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    connections: AtomicU64,
    /// How many of them are open.
    open: AtomicU64,
    refused: [AtomicU64; REFUSALS.len()],
    received: AtomicU64,
    sent: AtomicU64,
    logins: AtomicU64,
    failed_logins: AtomicU64,
    statements: [AtomicU64; OUTCOMES.len()],
    durations: Durations,
    /// How many are open.
    subscriptions: AtomicU64,
}

impl Traffic {
    /// A connection was refused.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        add(&self.refused[refusal as usize], 1);
    }

    /// A client has logged in, or was not let in.
    pub(crate) fn login(&self, is_let_in: bool) {
        add(if is_let_in { &self.logins } else { &self.failed_logins }, 1);
    }

    /// A subscription is open until what is returned is dropped.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscribed {
        add(&self.subscriptions, 1);
        Subscribed(self.clone())
    }
}

/// A subscription that is open.
pub(crate) struct Subscribed(Arc<Traffic>);

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.0.subscriptions.fetch_sub(1, Ordering::Relaxed);
    }
}

fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
