//! What clients may take.

use std::time::Duration;

/// What clients may take. Errors name the limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many clients may be connected; 1,000 at first.
    pub connections: usize,
    /// How many connections may wait for their login; 128 at first.
    pub strangers: usize,
    /// How many of these may come from one address; 16 at first. The sockets of this machine are one address.
    pub strangers_of_address: usize,
    /// How long a login may take; 10 seconds at first.
    pub login_time: Duration,
    /// How many statements run at once, beside those of open transactions; 64 at first.
    pub statements: usize,
    /// The bytes of a message; 128 MiB at first.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_000,
            strangers: 128,
            strangers_of_address: 16,
            login_time: Duration::from_secs(10),
            statements: 64,
            message_bytes: 128 << 20,
        }
    }
}
