//! Members that are no columns.

use std::collections::HashMap;

/// How many of them are told.
const TOLD: usize = 1000;

/// How many members there are that are no columns, and the line of the first, by name.
#[derive(Default)]
pub struct NewMembers(HashMap<String, (u64, u64)>);

impl NewMembers {
    /// An object on this line has a member of this name.
    pub fn see(&mut self, name: &str, line: u64) {
        if let Some((count, _)) = self.0.get_mut(name) {
            *count += 1;
        } else if self.0.len() < TOLD {
            self.0.insert(name.to_owned(), (1, line));
        }
    }

    /// Adds those of other lines of the file.
    pub fn add(&mut self, others: Self) {
        for (name, (count, line)) in others.0 {
            let is_full = self.0.len() >= TOLD;
            match self.0.get_mut(&name) {
                Some(known) => *known = (known.0 + count, known.1.min(line)),
                None if is_full => {}
                None => {
                    self.0.insert(name, (count, line));
                }
            }
        }
    }

    /// Their names, counts and lines, in the order of lines.
    pub fn in_order(self) -> Vec<(String, u64, u64)> {
        let members = self.0.into_iter().map(|(name, (count, line))| (name, count, line));
        let mut members: Vec<_> = members.collect();
        members.sort_unstable_by(|one, other| (one.2, &one.0).cmp(&(other.2, &other.0)));
        members
    }
}
