//! The keys of transactions that belong to somebody.
//!
//! Such a key is kept for a day, whatever others do: an owner has a number of keys of its own, and gets an error beyond it. Its text
//! begins with the owner, in which some characters are [`ESCAPED`], and a [`SEPARATOR`], so that the journal has both; in a checkpoint it ends with another one and its time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::clock::Moment;
use crate::error::{Error, Result, SqlState};

/// Between the parts of a text.
const SEPARATOR: char = '\u{1f}';

/// The characters that an owner's name cannot have in a text, and what stands for them: so names that differ have texts that do.
const ESCAPED: [(char, &str); 2] = [('%', "%25"), (SEPARATOR, "%1f")];

/// How many keys an owner may have.
const MOST: usize = 100_000;

/// How long they are kept, in microseconds.
const KEPT: Moment = 24 * 3_600 * 1_000_000;

/// The key of a transaction that belongs to an owner. Those of others, and other keys of this one, have other texts, whatever characters names and keys have.
///
/// It is remembered for 24 hours, also after a restart. An owner with 100,000 keys that are not older gets an error from the
/// next transaction that a [session](crate::Session::set_key) begins with another one.
pub fn owned_key(owner: &str, key: &str) -> String {
    let escape =
        |owner: String, (character, escaped): (char, &str)| owner.replace(character, escaped);
    let owner = ESCAPED.into_iter().fold(owner.to_owned(), escape);
    format!("{owner}{SEPARATOR}{key}")
}

/// The owner of a key, as its text has it; `None` if it belongs to nobody.
pub(super) fn owner(key: &str) -> Option<&str> {
    key.split_once(SEPARATOR).map(|(owner, _)| owner)
}

/// A key as a checkpoint has it.
pub(super) fn saved(key: &str, time: Moment) -> String {
    format!("{key}{SEPARATOR}{time}")
}

/// The key that a checkpoint has, and its time, if it has one.
pub(super) fn restored(saved: &str) -> (&str, Option<Moment>) {
    let split = saved.rsplit_once(SEPARATOR).filter(|(key, _)| owner(key).is_some());
    let timed = split.and_then(|(key, time)| Some((key, time.parse().ok()?)));
    timed.map_or((saved, None), |(key, time)| (key, Some(time)))
}

/// The keys with their times, the oldest first, and how many each owner has.
#[derive(Default)]
pub(super) struct OwnedKeys {
    order: VecDeque<(Moment, Arc<str>)>,
    counts: HashMap<Box<str>, usize>,
}

impl OwnedKeys {
    /// Adds a key that was not there, of a time that is not before that of the last one.
    pub(super) fn add(&mut self, key: Arc<str>, time: Moment) {
        if let Some(owner) = owner(&key) {
            match self.counts.get_mut(owner) {
                Some(count) => *count += 1,
                None => drop(self.counts.insert(owner.into(), 1)),
            }
            self.order.push_back((time, key));
        }
    }

    /// Takes out the oldest key if it is older than a day.
    pub(super) fn take_old(&mut self, now: Moment) -> Option<Arc<str>> {
        let (time, _) = self.order.front()?;
        if now.saturating_sub(*time) < KEPT {
            return None;
        }
        let (_, key) = self.order.pop_front()?;
        let owner = owner(&key)?;
        if let Some(count) = self.counts.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(owner);
            }
        }
        Some(key)
    }

    /// Fails if an owner has as many keys as it may have.
    pub(super) fn check_room(&self, owner: &str) -> Result<()> {
        match self.counts.get(owner) {
            Some(count) if *count >= MOST => {
                let message = format!(
                    "{MOST} transactions with keys were committed for this role within 24 hours, and their keys are kept that long: send \
                     more rows in each, or send them without keys"
                );
                Err(Error::sql(message).with_sqlstate(SqlState::LIMIT))
            }
            _ => Ok(()),
        }
    }

    /// All of them, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, Moment)> {
        self.order.iter().map(|(time, key)| (key, *time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_room_again_once_its_keys_are_a_day_old() {
        let mut keys = OwnedKeys::default();
        for number in 0..MOST as i64 {
            keys.check_room("ada").unwrap();
            keys.add(owned_key("ada", &number.to_string()).into(), number);
        }
        let error = keys.check_room("ada").unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::LIMIT);
        keys.check_room("bob").unwrap();
        keys.add(owned_key("bob", "1").into(), MOST as i64);
        assert_eq!(keys.take_old(KEPT - 1), None);
        assert_eq!(keys.take_old(KEPT).as_deref(), Some("ada\u{1f}0"));
        keys.check_room("ada").unwrap();
        while keys.take_old(Moment::MAX).is_some() {}
        assert!(keys.counts.is_empty() && keys.order.is_empty());
    }

    #[test]
    fn names_and_keys_that_differ_have_texts_that_do() {
        // The text of a usual name is the one that states have.
        assert_eq!(owned_key("ada", "a\u{1f}7%"), "ada\u{1f}a\u{1f}7%");
        let parts = [
            "",
            "a",
            "b",
            "%",
            "%1f",
            "%25",
            "%251f",
            "\u{1f}",
            "a\u{1f}b",
            "\u{1}",
            "\u{1f}\u{1f}",
        ];
        let mut texts = HashMap::new();
        for (name, key) in parts.iter().flat_map(|name| parts.map(|key| (*name, key))) {
            let text = owned_key(name, key);
            let of_name = owned_key(name, "");
            assert_eq!(owner(&text), of_name.strip_suffix(SEPARATOR), "{name:?} {key:?}");
            assert_eq!(texts.insert(text, (name, key)), None, "{name:?} {key:?}");
        }
        let mut keys = OwnedKeys::default();
        (0..MOST as i64).for_each(|at| keys.add(owned_key("a\u{1f}b", &at.to_string()).into(), at));
        for other in ["a", "b", "a%1fb", "a\u{1}b"] {
            keys.check_room(owner(&owned_key(other, "1")).unwrap()).unwrap();
        }
        keys.check_room(owner(&owned_key("a\u{1f}b", "x")).unwrap()).unwrap_err();
    }

    #[test]
    fn a_checkpoint_has_the_time_of_a_key() {
        let key = owned_key("ada", "a\u{1f}7");
        assert_eq!(restored(&saved(&key, 5)), (&*key, Some(5)));
        // Of a version that kept none.
        for before in ["a key", "a\u{1f}7", "a\u{1f}b\u{1f}c"] {
            assert_eq!(restored(before), (before, None));
        }
    }
}
