//! The identity of state.

use std::fmt;

use crate::{Canonical, Fingerprint, Retention};

/// The identity of an operator's state.
///
/// The id says which state it is, the fingerprint identifies the meaning of its bytes. Both are the same on every worker and in every
/// process. A new version of a view keeps the state whose fingerprint did not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Unique in its dataflow, as `aggregate.1`.
    pub id: String,
    /// A hash of the rows, keys and layout.
    pub fingerprint: Fingerprint,
}

impl State {
    /// The state `id` of a dataflow that keeps rows of this fingerprint, those of `retention`, in the layout of `kind`, by
    /// `keys`.
    pub(super) fn of(
        id: String,
        kind: &str,
        rows: Fingerprint,
        keys: &[usize],
        retention: &Retention,
    ) -> Self {
        let mut canonical = Canonical::new(kind);
        canonical.fingerprint(rows);
        canonical.columns(keys);
        retention.encode(&mut canonical);
        Self { id, fingerprint: canonical.finish() }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.id, self.fingerprint.short())
    }
}

/// Where an operator keeps or finds its state, for EXPLAIN.
#[derive(Clone, Debug)]
pub enum Place {
    /// The operator keeps it.
    Own(State),
    /// An index keeps it.
    Index(Fingerprint),
    /// A table keeps it.
    Table(String),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(state) => write!(formatter, "as {state}"),
            Self::Index(fingerprint) => write!(formatter, "in index {}", fingerprint.short()),
            Self::Table(name) => write!(formatter, "in table {name}"),
        }
    }
}
