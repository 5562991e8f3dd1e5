//! Random names of what belongs to a session.

use std::fmt;

use tonic::{Code, Status};

use super::status::status;

/// The random bytes of a name: 128 bits.
const BYTES: usize = 16;

/// The name of a ticket, a prepared statement or a transaction, which only the client of its session knows. It is looked up in that
/// session alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id([u8; BYTES]);

impl Id {
    /// A new one; fails if the system has no random numbers.
    pub(super) fn random() -> Result<Self, Status> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(|error| {
            status(Code::Unavailable, "58000", format!("the system has no random numbers: {error}"))
        })?;
        Ok(Self(bytes))
    }

    /// That which a client has sent; `None` if these are no bytes of one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Id")
    }
}
