//! The keys of transactions that were committed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use alluvium_trace::Epoch;

use super::{Applied, Effects, Persisted, SavePoint, Saving};
use crate::durable::checkpoint::Checkpoint;
use crate::error::Result;

/// How many keys are kept.
const MOST: usize = 100_000;

/// The last transactions that were committed with a key, and their epochs.
#[derive(Default)]
pub(in crate::sequencer) struct CommittedKeys {
    epochs: HashMap<Arc<str>, Epoch>,
    /// In the order of their epochs.
    order: VecDeque<Arc<str>>,
}

impl CommittedKeys {
    /// The epoch of the transaction with this key.
    pub(in crate::sequencer) fn get(&self, key: &str) -> Option<Epoch> {
        self.epochs.get(key).copied()
    }

    /// Adds a key, and forgets the oldest one if there are too many.
    fn insert(&mut self, key: &str, epoch: Epoch) {
        let key: Arc<str> = key.into();
        if self.epochs.insert(key.clone(), epoch).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.epochs.remove(&oldest);
        }
    }

    /// All of them, in the order of their epochs.
    fn all(&self) -> Vec<(String, Epoch)> {
        let with_epoch = |key: &Arc<str>| Some((key.to_string(), self.get(key)?));
        self.order.iter().filter_map(with_epoch).collect()
    }
}

impl Persisted for CommittedKeys {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let keys = self.all();
        Box::new(|checkpoint: &mut Checkpoint| checkpoint.keys = keys)
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let keys = std::mem::take(&mut checkpoint.keys);
        keys.iter().for_each(|(key, epoch)| self.insert(key, *epoch));
        Ok(())
    }

    fn apply(&mut self, commit: &Applied<'_>, _: &mut Effects) -> Result<()> {
        if let Some(key) = commit.key {
            self.insert(key, commit.epoch);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_keys_are_kept_in_order() {
        let mut keys = CommittedKeys::default();
        for number in 0..MOST as u64 + 5 {
            keys.insert(&number.to_string(), number);
        }
        assert_eq!((keys.get("4"), keys.get("5")), (None, Some(5)));
        let all = keys.all();
        assert_eq!((all.len(), &all[0]), (MOST, &("5".to_owned(), 5)));
        assert_eq!(keys.epochs.len(), MOST);
    }
}
