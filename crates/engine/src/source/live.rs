//! Inputs whose rows come while they are read: a pipe, or a file that grows.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How an input says that its rows come late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Liveness {
    /// As [`Live::linger`].
    pub(crate) linger: Duration,
    /// As [`Live::follow`].
    pub(crate) follow: bool,
}

impl Default for Liveness {
    fn default() -> Self {
        Self { linger: Duration::from_millis(100), follow: false }
    }
}

/// How rows are read that have not been written yet.
#[derive(Clone)]
#[non_exhaustive]
pub struct Live {
    /// How long a row may wait for others of its portion. A source that would wait longer for the next row ends the portion.
    pub linger: Duration,
    /// Whether the end of the path is not the end: a file grows, and another program opens a pipe. Only a source that
    /// [follows](super::Source::follows) is asked to.
    pub follow: bool,
    is_over: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Live {
    /// Reading ends when `is_over` says so.
    pub fn new(
        linger: Duration,
        follow: bool,
        is_over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { linger, follow, is_over: Arc::new(is_over) }
    }

    /// Whether the rows are no longer needed. A source that waits for the next row asks again and again, and fails if so.
    pub fn is_over(&self) -> bool {
        (self.is_over)()
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { linger, follow, is_over: _ } = self;
        to.debug_struct("Live")
            .field("linger", linger)
            .field("follow", follow)
            .finish_non_exhaustive()
    }
}
