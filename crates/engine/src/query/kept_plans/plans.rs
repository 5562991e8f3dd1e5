//! The texts of statements that were planned, and the [plans](KeptPlan) that are kept of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use alluvium_sql::statement::Shape;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::scalar::ScalarValue;
use parking_lot::Mutex;

use super::KeptPlan;
use crate::catalog::Entries;
use crate::fault::{Fault, armed};

/// How many texts are remembered at least; at most twice as many.
const TEXTS: usize = 128;

/// The plans of an engine that are kept.
#[derive(Default)]
pub(crate) struct Plans {
    known: Mutex<Known>,
}

/// Plans and other knowledge of statements, as of one moment of the catalog.
#[derive(Default)]
struct Known {
    entries: Weak<Entries>,
    /// By the texts of shapes with literals, which literals are parameters.
    open: Recent<Arc<[bool]>>,
    /// By texts with marks in the places of these.
    texts: Recent<Text>,
}

/// A text that was planned.
struct Text {
    /// The types of the values of its parameters.
    types: Vec<DataType>,
    kept: Kept,
}

/// The entry that is kept for a text.
#[derive(Clone)]
pub(super) enum Kept {
    /// That it was planned once.
    Text,
    /// The statement is planned again each time.
    Nothing,
    /// Its plan.
    Plan(Arc<KeptPlan>),
}

/// Values by text, of those texts that were used last.
struct Recent<V> {
    young: HashMap<String, V>,
    /// Those that were young once, and not used since.
    old: HashMap<String, V>,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<V> Recent<V> {
    fn insert(&mut self, text: String, value: V) {
        if self.young.len() >= TEXTS {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(text, value);
    }

    /// The value of a text; from then on it is young.
    fn get(&mut self, text: &str) -> Option<&V> {
        if !self.young.contains_key(text) {
            let (text, value) = self.old.remove_entry(text)?;
            self.insert(text, value);
        }
        self.young.get(text)
    }
}

impl Known {
    /// Forgets entries of other relations than these.
    fn set_entries(&mut self, entries: &Arc<Entries>) {
        if !are(&self.entries, entries) {
            *self = Self { entries: Arc::downgrade(entries), ..Self::default() };
        }
    }

    /// The text by which a plan is kept; `None` if it is not known which literals are parameters.
    fn key<'a>(&mut self, shape: &'a Shape) -> Option<Cow<'a, str>> {
        if shape.literals().is_empty() {
            return Some(shape.text().into());
        }
        let open = self.open.get(shape.text())?;
        Some(match open.contains(&false) {
            true => shape.with_fixed(open).into(),
            false => shape.text().into(),
        })
    }

    fn kept(&mut self, key: &str, values: &[ScalarValue]) -> Option<&Kept> {
        let known = self.texts.get(key)?;
        let types = values.iter().map(ScalarValue::data_type);
        known.types.iter().cloned().eq(types).then_some(&known.kept)
    }
}

/// Earlier knowledge of a statement that is to be planned.
#[derive(Debug, PartialEq)]
pub(super) enum Seen {
    /// Nothing.
    Never,
    /// It was planned once, with these literals as parameters.
    Once(Arc<[bool]>),
    /// Whether its plan is kept.
    Often,
}

impl Plans {
    /// The plan that is kept for a statement of this shape over these relations, with the values that it takes.
    pub(crate) fn get(
        &self,
        shape: &Shape,
        values: &[ScalarValue],
        entries: &Arc<Entries>,
    ) -> Option<(Arc<KeptPlan>, Vec<ScalarValue>)> {
        let mut known = self.known.lock();
        known.set_entries(entries);
        let key = known.key(shape)?;
        let Kept::Plan(plan) = known.kept(&key, values)? else { return None };
        let plan = plan.clone();
        drop(known);
        let values = plan.values(values, shape)?;
        Some((plan, values))
    }

    /// Earlier knowledge of a statement of this shape over these relations.
    pub(super) fn seen(
        &self,
        shape: &Shape,
        values: &[ScalarValue],
        entries: &Arc<Entries>,
    ) -> Seen {
        let mut known = self.known.lock();
        known.set_entries(entries);
        let Some(key) = known.key(shape) else { return Seen::Never };
        match known.kept(&key, values) {
            None => Seen::Never,
            Some(Kept::Nothing | Kept::Plan(_)) => Seen::Often,
            Some(Kept::Text) => Seen::Once(match shape.literals().is_empty() {
                true => Arc::default(),
                false => known.open.get(shape.text()).cloned().unwrap_or_default(),
            }),
        }
    }

    /// Keeps a plan of a statement, in which these literals are parameters.
    pub(super) fn keep(
        &self,
        shape: &Shape,
        is_open: &[bool],
        values: &[ScalarValue],
        entries: &Arc<Entries>,
        kept: Kept,
    ) {
        let mut known = self.known.lock();
        known.set_entries(entries);
        let key = shape.with_fixed(is_open);
        if !shape.literals().is_empty() {
            known.open.insert(shape.text().to_owned(), is_open.into());
        }
        let types = values.iter().map(ScalarValue::data_type).collect();
        known.texts.insert(key, Text { types, kept });
    }
}

/// The plan of one statement, kept by whoever prepared it.
pub(crate) struct OwnPlan {
    /// The columns of its result, if it has one.
    columns: Option<SchemaRef>,
    /// The relations over which it has these.
    described_for: Mutex<Weak<Entries>>,
    plan: Mutex<Option<Own>>,
}

/// Its kept plan, with the catalog that it is valid for.
struct Own {
    entries: Weak<Entries>,
    /// The types of the values of its parameters.
    types: Vec<DataType>,
    kept: Kept,
}

impl Own {
    fn is_for(&self, values: &[ScalarValue], entries: &Arc<Entries>) -> bool {
        let types = values.iter().map(ScalarValue::data_type);
        are(&self.entries, entries) && self.types.iter().cloned().eq(types)
    }
}

impl OwnPlan {
    /// Of a statement that has these columns over these relations.
    pub(crate) fn new(columns: Option<SchemaRef>, entries: &Arc<Entries>) -> Self {
        let described_for = Mutex::new(Arc::downgrade(entries));
        Self { columns, described_for, plan: Mutex::default() }
    }

    /// Whether these are the relations over which it is known to have its columns.
    pub(crate) fn is_described_for(&self, entries: &Arc<Entries>) -> bool {
        are(&self.described_for.lock(), entries)
    }

    /// Notes that over these relations it has these columns. Returns whether they are its own.
    pub(crate) fn set_described(
        &self,
        columns: Option<&SchemaRef>,
        entries: &Arc<Entries>,
    ) -> bool {
        let is_same = self.columns.as_ref() == columns;
        if is_same {
            *self.described_for.lock() = Arc::downgrade(entries);
        }
        is_same
    }

    /// The plan, if it is kept for values of these types and these relations.
    pub(crate) fn get(
        &self,
        values: &[ScalarValue],
        entries: &Arc<Entries>,
    ) -> Option<Arc<KeptPlan>> {
        let known = self.plan.lock();
        match known.as_ref().filter(|own| own.is_for(values, entries))? {
            Own { kept: Kept::Plan(plan), .. } => Some(plan.clone()),
            Own { kept: Kept::Text | Kept::Nothing, .. } => None,
        }
    }

    /// Whether a plan is kept over these relations.
    pub(crate) fn is_kept(&self, entries: &Arc<Entries>) -> bool {
        let known = self.plan.lock();
        known
            .as_ref()
            .is_some_and(|own| are(&own.entries, entries) && matches!(own.kept, Kept::Plan(_)))
    }

    /// Whether it is not known yet if the plan is kept.
    pub(super) fn is_wanted(&self, values: &[ScalarValue], entries: &Arc<Entries>) -> bool {
        !self.plan.lock().as_ref().is_some_and(|own| own.is_for(values, entries))
    }

    pub(super) fn keep(&self, values: &[ScalarValue], entries: &Arc<Entries>, kept: Kept) {
        let types = values.iter().map(ScalarValue::data_type).collect();
        *self.plan.lock() = Some(Own { entries: Arc::downgrade(entries), types, kept });
    }
}

/// Whether these are the relations that are referred to.
fn are(referred: &Weak<Entries>, entries: &Arc<Entries>) -> bool {
    // As long as it is referred to, nothing else has its address, and a definition changes a copy.
    std::ptr::eq(referred.as_ptr(), Arc::as_ptr(entries)) || armed(Fault::KeepPlans)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the text is known already. Remembers it.
    fn is_known(plans: &Plans, text: &str, values: &[ScalarValue], entries: &Arc<Entries>) -> bool {
        let shape = Shape::whole(text);
        let is_known = plans.seen(&shape, values, entries) != Seen::Never;
        if !is_known {
            plans.keep(&shape, &[], values, entries, Kept::Text);
        }
        is_known
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
        assert!(known.texts.young.len() <= TEXTS && known.texts.old.len() <= TEXTS);
    }

    #[test]
    fn literals_that_stay_tell_texts_apart() {
        let (plans, entries) = (Plans::default(), Arc::default());
        let shape = |text| Shape::of(text).expect("it has a shape");
        let seen = |text| plans.seen(&shape(text), &[], &entries);
        let (first, other) =
            ("SELECT f(v, 1) FROM t WHERE k = 2", "SELECT f(v, 1) FROM t WHERE k = 3");
        assert_eq!(seen(first), Seen::Never);
        plans.keep(&shape(first), &[false, true], &[], &entries, Kept::Text);
        assert_eq!(seen(first), Seen::Once([false, true].into()));
        assert_eq!(seen(other), Seen::Once([false, true].into()));
        assert_eq!(seen("SELECT f(v, 7) FROM t WHERE k = 2"), Seen::Never);
        plans.keep(&shape(other), &[false, true], &[], &entries, Kept::Nothing);
        assert_eq!(seen(first), Seen::Often);
    }
}
