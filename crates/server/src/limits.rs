//! What clients may take.

use std::time::Duration;

/// What clients may take. Errors name the limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many clients may be connected; 1,000 at first.
    pub connections: usize,
    /// How many of these connections are kept for superusers; 3 at first. Without roles none are.
    pub reserved: usize,
    /// How many connections may wait for their login; 128 at first.
    pub strangers: usize,
    /// How many of these may come from one address; 16 at first. The sockets of this machine are one address.
    pub strangers_of_address: usize,
    /// How long a login may take; 10 seconds at first.
    pub login_time: Duration,
    /// How long a failed login waits for its answer, at most; 2 seconds at first. The first of an address waits for 100 ms, each further
    /// one twice as long.
    pub login_delay: Duration,
    /// How many statements run at once, beside those of open transactions; 64 at first.
    pub statements: usize,
    /// How many statements may wait until they can run; 1,000 at first.
    pub waiting: usize,
    /// How long a statement may take that does not say it by `statement_timeout`; zero, as at first, is forever.
    pub statement_time: Duration,
    /// How long a client may leave a transaction open without a statement, unless it sets `idle_in_transaction_session_timeout`; 10
    /// minutes at first. Zero is forever.
    pub idle_in_transaction: Duration,
    /// How long a client may be idle outside of a transaction, unless it sets `idle_session_timeout`; zero, as at first, is forever.
    pub idle: Duration,
    /// The bytes of a message; 128 MiB at first.
    pub message_bytes: usize,
    /// How many changes of a subscription may wait for a client that does not read them; 1,024 at first.
    pub subscription_changes: u64,
    /// How many bytes of rows these may have; 64 MiB at first.
    pub subscription_bytes: u64,
    /// The bytes of prepared statements with names that a connection may keep, each counted with 1 KiB more; 128 MiB at first.
    pub statement_bytes: usize,
    /// The bytes of parameters that portals with names may keep on a connection, each counted with 1 KiB more; 128 MiB at first.
    pub portal_bytes: usize,
    /// Statements that take longer are logged; 1 second at first. Zero logs none.
    pub slow_statement: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_000,
            reserved: 3,
            strangers: 128,
            strangers_of_address: 16,
            login_time: Duration::from_secs(10),
            login_delay: Duration::from_secs(2),
            statements: 64,
            waiting: 1_000,
            statement_time: Duration::ZERO,
            idle_in_transaction: Duration::from_secs(10 * 60),
            idle: Duration::ZERO,
            message_bytes: 128 << 20,
            subscription_changes: 1_024,
            subscription_bytes: 64 << 20,
            statement_bytes: 128 << 20,
            portal_bytes: 128 << 20,
            slow_statement: Duration::from_secs(1),
        }
    }
}
