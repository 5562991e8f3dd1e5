//! What a client has prepared lately: drivers prepare the same text for each execution.

use std::collections::VecDeque;
use std::sync::Arc;

/// How many entries are remembered.
const MOST: usize = 32;
/// The longest text that is, in bytes.
const LONGEST: usize = 4 << 10;

/// What was prepared last of texts and the types of their parameters, the newest one last.
pub(super) struct Recent<T>(VecDeque<Entry<T>>);

struct Entry<T> {
    sql: Arc<str>,
    oids: Vec<u32>,
    prepared: Arc<T>,
}

impl<T> Entry<T> {
    fn is_of(&self, sql: &str, oids: &[u32]) -> bool {
        *self.sql == *sql && self.oids == oids
    }
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Recent<T> {
    /// What was prepared of a text and the types that the client gives its parameters.
    pub(super) fn get(&mut self, sql: &str, oids: &[u32]) -> Option<Arc<T>> {
        let found = self.0.iter().position(|entry| entry.is_of(sql, oids))?;
        let entry = self.0.remove(found)?;
        let prepared = entry.prepared.clone();
        self.0.push_back(entry);
        Some(prepared)
    }

    /// Remembers what was prepared, unless the text is long.
    pub(super) fn keep(&mut self, sql: Arc<str>, oids: Vec<u32>, prepared: Arc<T>) {
        if sql.len() > LONGEST {
            return;
        }
        self.0.retain(|entry| !entry.is_of(&sql, &oids));
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(Entry { sql, oids, prepared });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_remembered() {
        let mut recent = Recent::default();
        let mut keep = |sql: &str, oids: &[u32], kept: usize| {
            recent.keep(sql.into(), oids.to_vec(), Arc::new(kept));
            recent.get("a", &[])
        };
        keep("a", &[], 0);
        keep("a", &[20], 1);
        keep(&"b".repeat(LONGEST + 1), &[], 2);
        for number in 0..2 * MOST {
            assert_eq!(keep(&number.to_string(), &[], number).as_deref(), Some(&0));
        }
        assert_eq!(keep("a", &[], 3).as_deref(), Some(&3));
        assert_eq!(recent.get("a", &[20]), None);
        assert_eq!(recent.0.len(), MOST);
    }
}
