//! The keys of transactions that were committed.
//!
//! Keys of programs are the last ones of all. Those that [belong](super::owned_keys) to somebody are kept for a day.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use alluvium_trace::Epoch;

use super::owned_keys::{OwnedKeys, owner, restored, saved};
use super::{Applied, Effects, Persisted, SavePoint, Saving};
use crate::clock::Moment;
use crate::durable::checkpoint::Checkpoint;
use crate::error::Result;

/// How many keys of nobody are kept.
const MOST: usize = 100_000;

/// The transactions that were committed with a key, and their epochs.
#[derive(Default)]
pub(in crate::sequencer) struct CommittedKeys {
    epochs: HashMap<Arc<str>, Epoch>,
    /// Those of nobody, in the order of their epochs.
    order: VecDeque<Arc<str>>,
    owned: OwnedKeys,
}

impl CommittedKeys {
    /// The epoch of the transaction with this key.
    pub(in crate::sequencer) fn get(&self, key: &str) -> Option<Epoch> {
        self.epochs.get(key).copied()
    }

    /// Fails if the owner of a key has as many as it may have, and this is another one.
    pub(in crate::sequencer) fn check_room(&mut self, key: &str, now: Moment) -> Result<()> {
        self.forget_old(now);
        match owner(key).filter(|_| !self.epochs.contains_key(key)) {
            Some(owner) => self.owned.check_room(owner),
            None => Ok(()),
        }
    }

    /// Adds a key of a time that is not before that of the last one.
    fn insert(&mut self, key: &str, epoch: Epoch, time: Moment) {
        self.forget_old(time);
        let key: Arc<str> = key.into();
        if self.epochs.insert(key.clone(), epoch).is_some() {
            return;
        }
        if owner(&key).is_some() {
            return self.owned.add(key, time);
        }
        self.order.push_back(key);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.epochs.remove(&oldest);
        }
    }

    fn forget_old(&mut self, now: Moment) {
        while let Some(old) = self.owned.take_old(now) {
            self.epochs.remove(&old);
        }
    }

    /// All of them as a checkpoint has them: those of nobody, and then the others, each in the order of their epochs.
    fn all(&self) -> Vec<(String, Epoch)> {
        let of_nobody = self.order.iter().map(|key| (key, key.to_string()));
        let owned = self.owned.iter().map(|(key, time)| (key, saved(key, time)));
        let with_epoch = |(key, saved): (&Arc<str>, String)| Some((saved, self.get(key)?));
        of_nobody.chain(owned).filter_map(with_epoch).collect()
    }
}

impl Persisted for CommittedKeys {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let keys = self.all();
        Box::new(|checkpoint: &mut Checkpoint| checkpoint.keys = keys)
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let last = checkpoint.time.unwrap_or_default();
        for (saved, epoch) in std::mem::take(&mut checkpoint.keys) {
            let (key, time) = restored(&saved);
            self.insert(key, epoch, time.unwrap_or(last));
        }
        Ok(())
    }

    fn apply(&mut self, commit: &Applied<'_>, _: &mut Effects) -> Result<()> {
        if let Some(key) = commit.key {
            self.insert(key, commit.epoch, commit.time);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequencer::owned_key;

    #[test]
    fn the_last_keys_of_nobody_are_kept_in_order() {
        let mut keys = CommittedKeys::default();
        let owned = owned_key("ada", "one");
        keys.insert(&owned, 1, 7);
        for number in 0..MOST as u64 + 5 {
            keys.insert(&number.to_string(), number, 8);
        }
        assert_eq!((keys.get("4"), keys.get("5"), keys.get(&owned)), (None, Some(5), Some(1)));
        let all = keys.all();
        assert_eq!((all.len(), &all[0]), (MOST + 1, &("5".to_owned(), 5)));
        assert_eq!(keys.epochs.len(), MOST + 1);
    }

    #[test]
    fn a_key_that_belongs_to_somebody_is_kept_for_a_day_also_over_checkpoints() {
        const HOUR: Moment = 3_600 * 1_000_000;
        let mut keys = CommittedKeys::default();
        let (one, two) = (owned_key("ada", "one"), owned_key("ada", "two"));
        keys.insert(&one, 1, HOUR);
        keys.insert("of nobody", 2, 2 * HOUR);
        keys.insert(&two, 3, 3 * HOUR);
        let mut checkpoint =
            Checkpoint { keys: keys.all(), time: Some(3 * HOUR), ..Checkpoint::default() };
        let mut restored = CommittedKeys::default();
        restored.restore(&mut checkpoint).unwrap();
        assert_eq!(restored.all(), keys.all());
        restored.check_room(&two, 25 * HOUR - 1).unwrap();
        assert_eq!(restored.get(&one), Some(1));
        restored.insert("another", 4, 25 * HOUR);
        let kept = [&*one, "of nobody", &*two].map(|key| restored.get(key));
        assert_eq!(kept, [None, Some(2), Some(3)]);
    }
}
