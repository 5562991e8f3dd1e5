//! How a writer and a server reach each other.
//!
//! [`address`] is where a journal is, [`tls`] who may connect, and [`stream`] a connection.

pub(crate) mod address;
pub(crate) mod stream;
pub mod tls;

use std::time::Duration;

/// How long the other side may be silent before it is asked whether it is there.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);

/// How long it has to answer that, and for other steps until it can be spoken to.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);

/// How many bytes may be under way in a call.
pub(crate) const WINDOW: u32 = 4 << 20;
