//! Options of subscriptions.

use alluvium_trace::Epoch;

/// The reaction to a subscription that is further behind than it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Commits wait until it is not: no change is lost, and one subscriber that does not read stops all that write.
    #[default]
    Block,
    /// The subscription ends with [`Error::Behind`](crate::Error::Behind), and no commit waits.
    Disconnect,
    /// Waiting changes are dropped, and no commit waits. The next item is a [snapshot](crate::Change::is_snapshot), as of when the
    /// subscriber asks for it. Only of what keeps its rows: a table or a materialized view.
    Resync,
}

/// How to [subscribe](crate::Engine::subscribe_with): what happens to a subscriber that falls behind, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscribeOptions {
    pub(crate) policy: Policy,
    pub(crate) epochs: u64,
    pub(crate) bytes: u64,
    pub(crate) beginning: Beginning,
}

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// With the last rows.
    #[default]
    Rows,
    /// After the last rows, which are left out.
    WithoutRows,
    /// With the rows as of an epoch.
    RowsAsOf(Epoch),
    /// After an epoch.
    After(Epoch),
}

impl Beginning {
    /// The epoch from which on changes have to be kept, if it is a given one.
    pub(crate) fn epoch(self) -> Option<Epoch> {
        match self {
            Self::Rows | Self::WithoutRows => None,
            Self::RowsAsOf(epoch) | Self::After(epoch) => Some(epoch),
        }
    }
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            epochs: 1024,
            bytes: u64::MAX,
            beginning: Beginning::default(),
        }
    }
}

impl SubscribeOptions {
    /// Those of [`Engine::subscribe`](crate::Engine::subscribe): a snapshot first; more than 1,024 changes that have not been
    /// taken hold up commits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those of a subscriber that may be behind as far as it is.
    pub(crate) fn unlimited() -> Self {
        Self { epochs: u64::MAX, ..Self::default() }
    }

    /// Sets the reaction to more waiting changes than allowed.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// How many changes may wait, each of one epoch; by default 1,024.
    #[must_use]
    pub fn epochs(self, epochs: u64) -> Self {
        Self { epochs, ..self }
    }

    /// How many bytes of rows may wait, in memory or in files; by default any number.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Begins after an epoch, as [`Engine::subscribe_from`](crate::Engine::subscribe_from) does, in place of a snapshot.
    #[must_use]
    pub fn after(self, epoch: u64) -> Self {
        Self { beginning: Beginning::After(epoch), ..self }
    }

    /// Begins after the last complete epoch, in place of a snapshot as of that.
    #[must_use]
    pub fn without_snapshot(self) -> Self {
        match self.beginning {
            Beginning::Rows => Self { beginning: Beginning::WithoutRows, ..self },
            _ => self,
        }
    }

    /// Begins with the rows as of an epoch, as a snapshot, and the changes after it. They have to be kept, as those of
    /// [`SubscribeOptions::after`].
    #[must_use]
    pub fn as_of(self, epoch: u64) -> Self {
        Self { beginning: Beginning::RowsAsOf(epoch), ..self }
    }
}
