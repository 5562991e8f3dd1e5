//! What a client that listens has not been told yet.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// How many changes wait for a client. Beyond that the oldest are lost.
const MOST: usize = 1_024;

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// An epoch has changed a relation.
    Changed { relation: Arc<str>, epoch: u64 },
    /// A relation is gone, or its changes cannot be followed any more for a reason.
    Ended { relation: Arc<str>, reason: Option<Arc<str>> },
}

impl Heard {
    /// The relation that it is about.
    pub(super) fn relation(&self) -> &str {
        match self {
            Self::Changed { relation, .. } | Self::Ended { relation, .. } => relation,
        }
    }
}

/// What a client has not been told yet, in the order in which it came.
#[derive(Default)]
pub(super) struct Mailbox {
    state: Mutex<State>,
    /// Wakes the task of the client.
    arrived: Notify,
}

#[derive(Default)]
struct State {
    heard: VecDeque<Heard>,
    /// How many of these are changes.
    changes: usize,
    /// Whether some were lost.
    has_lost: bool,
}

impl Mailbox {
    /// Adds what was heard. If too much waits the oldest change is lost; ends are not.
    pub(super) fn put(&self, heard: Heard) {
        let mut state = self.state.lock();
        if matches!(heard, Heard::Changed { .. }) {
            if state.changes >= MOST {
                let is_change = |heard: &Heard| matches!(heard, Heard::Changed { .. });
                let oldest = state.heard.iter().position(is_change);
                oldest.and_then(|oldest| state.heard.remove(oldest));
                (state.changes, state.has_lost) = (state.changes - 1, true);
            }
            state.changes += 1;
        }
        state.heard.push_back(heard);
        drop(state);
        self.arrived.notify_one();
    }

    /// The next that was heard, if there is one.
    pub(super) fn take(&self) -> Option<Heard> {
        let mut state = self.state.lock();
        let heard = state.heard.pop_front()?;
        state.changes -= usize::from(matches!(heard, Heard::Changed { .. }));
        Some(heard)
    }

    /// Whether some were lost since this was asked for the last time.
    pub(super) fn take_lost(&self) -> bool {
        std::mem::take(&mut self.state.lock().has_lost)
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        *self.state.lock() = State::default();
    }

    /// Waits until there is something.
    pub(super) async fn arrives(&self) {
        while self.state.lock().heard.is_empty() {
            self.arrived.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_reads_is_bounded_and_ends_are_kept() {
        let (mailbox, relation) = (Mailbox::default(), Arc::<str>::from("t"));
        let changed = |epoch| Heard::Changed { relation: relation.clone(), epoch };
        let ended = Heard::Ended { relation: relation.clone(), reason: None };
        mailbox.put(ended.clone());
        (1..=MOST as u64 + 10).for_each(|epoch| mailbox.put(changed(epoch)));
        assert_eq!(mailbox.take(), Some(ended));
        assert_eq!(mailbox.take(), Some(changed(11)));
        assert!(mailbox.take_lost() && !mailbox.take_lost());
        let rest = std::iter::from_fn(|| mailbox.take()).collect::<Vec<_>>();
        assert_eq!((rest.len(), rest.last()), (MOST - 1, Some(&changed(MOST as u64 + 10))));
        mailbox.put(changed(1));
        mailbox.clear();
        assert_eq!(mailbox.take(), None);
    }
}
