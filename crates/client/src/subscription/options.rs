//! How a subscription begins, and what it tells.

use std::time::Duration;

/// How a subscription begins, and what it tells.
#[derive(Clone, Debug)]
pub struct SubscribeOptions {
    pub(super) as_of: Option<u64>,
    pub(super) has_snapshot: bool,
    pub(super) has_progress: bool,
    pub(super) patience: Duration,
}

impl SubscribeOptions {
    /// A subscription that begins with a snapshot.
    pub fn new() -> Self {
        let patience = Duration::from_secs(60);
        Self { as_of: None, has_snapshot: true, has_progress: false, patience }
    }

    /// Begins after an epoch, without a snapshot: for a subscriber that has had everything up to it. The server keeps changes for a
    /// while, and refuses an epoch that is longer ago.
    pub fn after(self, epoch: u64) -> Self {
        self.as_of(epoch).snapshot(false)
    }

    /// Begins as of the end of an epoch: the snapshot has its rows, if there is one.
    pub fn as_of(mut self, epoch: u64) -> Self {
        self.as_of = Some(epoch);
        self
    }

    /// Whether all rows come before the changes.
    pub fn snapshot(mut self, begins: bool) -> Self {
        self.has_snapshot = begins;
        self
    }

    /// Also tells of epochs that change nothing, by a change without rows: the relation is known up to there.
    pub fn progress(mut self, tells: bool) -> Self {
        self.has_progress = tells;
        self
    }

    /// How long a lost connection is tried again before its error is the last item; 60 seconds at first, zero for not at all.
    pub fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self::new()
    }
}
