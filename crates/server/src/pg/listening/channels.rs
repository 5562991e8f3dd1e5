//! The relations that clients listen to.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use alluvium::{Policy, SubscribeOptions, Subscription};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::mailbox::{Heard, Mailbox};
use crate::shared::Shared;

/// The relations that clients of a server listen to.
#[derive(Default)]
pub(crate) struct Channels(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// By relation.
    channels: HashMap<Arc<str>, Channel>,
    /// Numbers channels and listeners.
    next: u64,
}

/// A relation that clients listen to.
struct Channel {
    number: u64,
    listeners: HashMap<u64, Arc<Mailbox>>,
    /// The task that takes its changes.
    task: AbortHandle,
}

/// One who listens to a relation, until this is dropped.
pub(super) struct Joined {
    relation: Arc<str>,
    number: u64,
    state: Weak<Mutex<State>>,
}

impl Joined {
    /// The relation.
    pub(super) fn relation(&self) -> &str {
        &self.relation
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let Some(state) = self.state.upgrade() else { return };
        let channels = &mut state.lock().channels;
        let Some(channel) = channels.get_mut(&self.relation) else { return };
        // One that is gone already may have given its name to another one.
        if channel.listeners.remove(&self.number).is_some() && channel.listeners.is_empty() {
            channel.task.abort();
            channels.remove(&self.relation);
        }
    }
}

impl Channels {
    /// Puts the epochs that change a relation from now on into a mailbox. Blocks, as subscribing does.
    ///
    /// # Errors
    /// If the relation cannot be subscribed to.
    pub(super) fn join(
        shared: &Shared,
        relation: &str,
        mailbox: &Arc<Mailbox>,
    ) -> alluvium::Result<Joined> {
        let state = &shared.channels.0;
        if let Some(joined) = state.lock().join(relation, mailbox, state) {
            return Ok(joined);
        }
        // The task takes what comes, so that nothing waits for long.
        let options =
            SubscribeOptions::new().policy(Policy::Disconnect).epochs(u64::MAX).without_snapshot();
        let subscription = shared.subscribe(relation, options)?;
        let mut channels = state.lock();
        // Another client may have come first.
        if let Some(joined) = channels.join(relation, mailbox, state) {
            drop(channels);
            return Ok(joined);
        }
        let (relation, number): (Arc<str>, u64) = (relation.into(), channels.number());
        let of = (relation.clone(), number);
        let task = tokio::spawn(follow(of, subscription, Arc::downgrade(state))).abort_handle();
        let channel = Channel { number, listeners: HashMap::new(), task };
        channels.channels.insert(relation.clone(), channel);
        let joined = channels.join(&relation, mailbox, state);
        joined.ok_or_else(|| alluvium::Error::data("a channel is gone that was just made"))
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A listener of a relation that others listen to already.
    fn join(
        &mut self,
        relation: &str,
        mailbox: &Arc<Mailbox>,
        state: &Arc<Mutex<Self>>,
    ) -> Option<Joined> {
        let number = self.number();
        let (relation, _) = self.channels.get_key_value(relation)?;
        let (relation, state) = (relation.clone(), Arc::downgrade(state));
        let channel = self.channels.get_mut(&relation)?;
        channel.listeners.insert(number, mailbox.clone());
        Some(Joined { relation, number, state })
    }
}

/// Tells all who listen to a relation of its changes, until it is gone.
async fn follow(
    (relation, number): (Arc<str>, u64),
    mut changes: Subscription,
    state: Weak<Mutex<State>>,
) {
    let reason = loop {
        match StreamExt::next(&mut changes).await {
            Some(Ok(change)) => {
                let heard = Heard::Changed { relation: relation.clone(), epoch: change.epoch };
                let Some(state) = state.upgrade() else { return };
                let state = state.lock();
                let channel = state.channels.get(&relation);
                let listeners = channel.into_iter().flat_map(|channel| channel.listeners.values());
                listeners.for_each(|mailbox| mailbox.put(heard.clone()));
            }
            Some(Err(error)) => break Some(error.to_string().into()),
            None => break None,
        }
    };
    let Some(state) = state.upgrade() else { return };
    let mut state = state.lock();
    if state.channels.get(&relation).is_some_and(|channel| channel.number == number)
        && let Some(channel) = state.channels.remove(&relation)
    {
        let heard = Heard::Ended { relation, reason };
        channel.listeners.values().for_each(|mailbox| mailbox.put(heard.clone()));
    }
}
