//! What a client keeps by names: prepared statements and portals.

use std::collections::HashMap;

use super::failure::{Failure, code};

/// What an entry takes beside its texts and values, about.
const ENTRY: usize = 1 << 10;

/// Entries by name, whose bytes are limited. The one without a name is under the empty one, and is not counted: it takes a message.
pub(super) struct Kept<T> {
    entries: HashMap<String, (T, usize)>,
    bytes: usize,
    most: usize,
    /// What the entries are, and the name of their limit.
    names: (&'static str, &'static str),
}

impl<T> Kept<T> {
    /// None, which may have so many bytes by a limit of this name.
    pub(super) fn new(most: usize, entries: &'static str, limit: &'static str) -> Self {
        Self { entries: HashMap::new(), bytes: 0, most, names: (entries, limit) }
    }

    /// Fails if an entry with so many bytes in addition to `others`, which are kept elsewhere, would be too much.
    pub(super) fn check(&self, name: &str, bytes: usize, others: usize) -> Result<(), Failure> {
        let all = self.bytes.saturating_add(others).saturating_add(size(name, bytes));
        if name.is_empty() || all <= self.most {
            return Ok(());
        }
        let ((entries, limit), most) = (self.names, self.most);
        let message = format!(
            "the connection would keep {all} bytes of {entries}, and may keep {most} by the limit \"{limit}\": close some first"
        );
        Err(Failure::new(code::LIMIT, message))
    }

    /// Adds an entry of so many bytes, in place of one of its name.
    pub(super) fn insert(&mut self, name: String, entry: T, bytes: usize) {
        self.remove(&name);
        let bytes = size(&name, bytes);
        self.bytes += bytes;
        self.entries.insert(name, (entry, bytes));
    }

    /// The entry of a name.
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(name).map(|(entry, _)| entry)
    }

    /// The entry of a name, to be changed.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.entries.get_mut(name).map(|(entry, _)| entry)
    }

    /// Whether there is an entry of a name.
    pub(super) fn contains_key(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Removes the entry of a name.
    pub(super) fn remove(&mut self, name: &str) -> Option<T> {
        let (entry, bytes) = self.entries.remove(name)?;
        self.bytes -= bytes;
        Some(entry)
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }
}

/// What an entry counts.
fn size(name: &str, bytes: usize) -> usize {
    match name.is_empty() {
        true => 0,
        false => name.len() + bytes + ENTRY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_entries_are_counted_until_they_are_removed() {
        let mut kept = Kept::new(10_000, "portals", "portal_bytes");
        for name in ["a", "b"] {
            assert!(kept.check(name, 3_000, 0).is_ok());
            kept.insert(name.to_owned(), name, 3_000);
        }
        let failure = kept.check("c", 3_000, 0).err();
        assert!(failure.is_some_and(|failure| failure.message().contains("\"portal_bytes\"")));
        assert!(kept.check("", 1 << 30, 0).is_ok());
        assert!(kept.check("c", 0, 0).is_ok() && kept.check("c", 0, 2_000).is_err());
        kept.insert("a".to_owned(), "again", 10);
        assert!(kept.check("c", 3_000, 0).is_ok());
        assert_eq!((kept.remove("a"), kept.remove("a")), (Some("again"), None));
        kept.clear();
        assert_eq!((kept.bytes, kept.get("b")), (0, None));
    }
}
