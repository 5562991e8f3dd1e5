//! The texts of statements that were planned, and the [plans](Prepared) that are kept of them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use alluvium_sql::statement::Statement;
use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use parking_lot::Mutex;

use super::prepared::Prepared;
use crate::catalog::Entries;

/// How many texts are remembered at least; at most twice as many.
const TEXTS: usize = 128;

/// The plans of an engine that are kept.
#[derive(Default)]
pub(crate) struct Plans {
    known: Mutex<Known>,
}

/// What is known of texts, as of one moment of the catalog.
#[derive(Default)]
struct Known {
    entries: Weak<Entries>,
    young: HashMap<String, Text>,
    /// Those that were young once, and not used since.
    old: HashMap<String, Text>,
}

/// A text that was planned.
struct Text {
    /// The types of the values of its parameters.
    types: Vec<DataType>,
    kept: Kept,
}

/// What is kept of a text.
#[derive(Clone)]
pub(super) enum Kept {
    /// That it was planned once.
    Text,
    /// That it is planned anew each time.
    Nothing,
    /// Its plan.
    Plan(Arc<Prepared>),
}

impl Known {
    /// Forgets what was known of other relations than these.
    fn set_entries(&mut self, entries: &Arc<Entries>) {
        // As long as it is referred to, nothing else has its address, and a definition changes a copy.
        if !std::ptr::eq(self.entries.as_ptr(), Arc::as_ptr(entries)) {
            *self = Self { entries: Arc::downgrade(entries), ..Self::default() };
        }
    }

    fn insert(&mut self, text: &str, values: &[ScalarValue], kept: Kept) {
        let types = values.iter().map(ScalarValue::data_type).collect();
        self.make_young(text.to_owned(), Text { types, kept });
    }

    fn make_young(&mut self, text: String, known: Text) {
        if self.young.len() >= TEXTS {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(text, known);
    }

    /// What is kept of a text with values of these types; from then on it is young.
    fn get(&mut self, text: &str, values: &[ScalarValue]) -> Option<&Kept> {
        if !self.young.contains_key(text) {
            let (text, known) = self.old.remove_entry(text)?;
            self.make_young(text, known);
        }
        let known = self.young.get(text)?;
        let types = values.iter().map(ScalarValue::data_type);
        known.types.iter().cloned().eq(types).then_some(&known.kept)
    }
}

impl Plans {
    /// The plan that is kept for a statement, with values of these types and these relations.
    pub(crate) fn get(
        &self,
        statement: &Statement,
        values: &[ScalarValue],
        entries: &Arc<Entries>,
    ) -> Option<Arc<Prepared>> {
        let mut known = self.known.lock();
        known.set_entries(entries);
        match known.get(&statement.text, values)? {
            Kept::Plan(plan) => Some(plan.clone()),
            Kept::Text | Kept::Nothing => None,
        }
    }

    /// Whether a statement is planned for the second time, so that its plan may be kept. Remembers the first time.
    pub(super) fn is_wanted(
        &self,
        statement: &Statement,
        values: &[ScalarValue],
        entries: &Arc<Entries>,
    ) -> bool {
        let mut known = self.known.lock();
        known.set_entries(entries);
        match known.get(&statement.text, values) {
            None => {
                known.insert(&statement.text, values, Kept::Text);
                false
            }
            Some(Kept::Text) => true,
            Some(Kept::Nothing | Kept::Plan(_)) => false,
        }
    }

    pub(super) fn keep(
        &self,
        statement: &Statement,
        values: &[ScalarValue],
        entries: &Arc<Entries>,
        kept: Kept,
    ) {
        let mut known = self.known.lock();
        known.set_entries(entries);
        known.insert(&statement.text, values, kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str) -> Statement {
        alluvium_sql::statement::parse(text).next().expect("a statement").expect("it is right")
    }

    /// Whether the text is known already.
    fn is_known(plans: &Plans, text: &str, values: &[ScalarValue], entries: &Arc<Entries>) -> bool {
        plans.is_wanted(&statement(text), values, entries)
    }

    #[test]
    fn a_text_is_known_from_the_second_time_on_with_the_same_types_and_relations() {
        let (plans, entries) = (Plans::default(), Arc::default());
        let number = [ScalarValue::from(1_i64)];
        assert!(!is_known(&plans, "SELECT $1", &number, &entries));
        assert!(is_known(&plans, "SELECT $1", &[ScalarValue::from(2_i64)], &entries));
        assert!(!is_known(&plans, "SELECT $1", &["text".into()], &entries));
        assert!(is_known(&plans, "SELECT $1", &["text".into()], &entries));
        assert!(!is_known(&plans, "SELECT $1", &["text".into()], &Arc::default()));
    }

    #[test]
    fn texts_that_are_used_outlive_many_that_are_not() {
        let (plans, entries) = (Plans::default(), Arc::default());
        assert!(!is_known(&plans, "SELECT 'often'", &[], &entries));
        assert!(!is_known(&plans, "SELECT 'once'", &[], &entries));
        for number in 0..4 * TEXTS {
            assert!(!is_known(&plans, &format!("SELECT {number}"), &[], &entries));
            assert!(is_known(&plans, "SELECT 'often'", &[], &entries), "{number}");
        }
        assert!(!is_known(&plans, "SELECT 'once'", &[], &entries));
        let known = plans.known.lock();
        assert!(known.young.len() <= TEXTS && known.old.len() <= TEXTS);
    }
}
