//! The state of views and the reasons for it: EXPLAIN STATE, and the reasons in `alluvium.arrangements`.

use std::collections::{BTreeMap, BTreeSet};

use alluvium_sql::physical::{Output, Place};
use alluvium_sql::plan::{Keeping, KeptBy, KeptState, LastRows, Reason};
use alluvium_sql::plan::{ViewText, explain_state};
use alluvium_sql::statement::ViewKind;
use alluvium_trace::metrics::SpineMetrics;

use super::explanation::{Explanation, Kind, Node, State, rows};
use crate::catalog::{Definition, Entries, Entry, View};
use crate::error::Result;
use crate::query::Reader;
use crate::query::metrics::StateKey;

/// The id of the rows of a table, of an index, and of a materialized view.
const ROWS: &str = "rows";

/// The state that a view keeps and reads: how much that is, and whether and below what it is pruned, or why not and what helps.
fn explain(reader: &Reader, entry: &Entry, entries: &Entries) -> Result<Explanation> {
    let view = entry.as_view()?;
    let held = held(reader);
    let mut explanation = Explanation::new(Kind::State, Some(&entry.name));
    if view.kind == ViewKind::Local {
        let note = "a local view: each view that names it keeps this";
        explanation.notes.push(note.to_owned());
    }
    let kept = kept(entry, view, entries)?;
    if kept.is_empty() {
        let note = "it keeps nothing, and reads nothing that is kept";
        explanation.notes.push(note.to_owned());
    }
    let mut tree = explanation.tree();
    for by in kept {
        let states = by.states.iter().map(|state| told(state, entry, view, &held)).collect();
        let operation = by.operator.clone();
        let node = Node { clause: by.at.clone(), states, ..Node::new(operation, Vec::new()) };
        tree.add(by.depth, by.rows.map(|rows| rows.to_string()), node);
    }
    if kept.first().is_some_and(|by| by.rows.is_none()) {
        tree.read_by_first();
    }
    Ok(explanation)
}

/// The rows and bytes of all state.
pub(super) fn held(reader: &Reader) -> BTreeMap<StateKey, Held> {
    let mut held: BTreeMap<StateKey, Held> = BTreeMap::new();
    let metrics = reader.progress.metrics();
    for spine in metrics.iter().flat_map(|metrics| metrics.spines()) {
        let key = (spine.label.relation.clone(), spine.label.id.clone());
        held.entry(key).or_default().add(&spine);
    }
    held
}

impl Reader {
    /// The state that a view keeps and reads, with reasons: EXPLAIN STATE.
    pub(crate) fn explain_state(&self, entry: &Entry, entries: &Entries) -> Result<Explanation> {
        explain(self, entry, entries)
    }
}

/// Why the states of all tables, views and indexes are not pruned; pruned ones are missing.
pub(in crate::query) fn reasons(entries: &Entries) -> Result<BTreeMap<StateKey, String>> {
    let mut reasons: BTreeMap<StateKey, BTreeSet<String>> = BTreeMap::new();
    for entry in entries.values() {
        for index in &entry.indexes {
            let Some(id) = index.id else { continue };
            let key = (id.of_index(), ROWS.to_owned());
            reasons.entry(key).or_default().insert(full(&Reason::of_index(), None));
        }
        match &entry.definition {
            Definition::Table(_) => {
                let reason = full(&Reason::of_table(), None);
                reasons.entry((entry.name.clone(), ROWS.to_owned())).or_default().insert(reason);
            }
            Definition::View(View { kind: ViewKind::Local, .. }) | Definition::Declared(_) => {}
            Definition::View(view) => {
                for state in kept(entry, view, entries)?.iter().flat_map(|by| &by.states) {
                    let Keeping::All { reason, at } = &state.keeping else { continue };
                    let reason = full(reason, at.as_deref());
                    let reason = match is_shared(state) {
                        Some(Shared::Table) => continue,
                        Some(Shared::Index) => format!("{}: {reason}", entry.name),
                        None => reason,
                    };
                    let key = key(state, entry, view);
                    reasons.entry(key).or_default().insert(reason);
                }
            }
        }
    }
    let joined = |reasons: BTreeSet<String>| reasons.into_iter().collect::<Vec<_>>().join("; ");
    Ok(reasons.into_iter().map(|(key, reasons)| (key, joined(reasons))).collect())
}

/// The state that a view keeps and reads, which is found out once.
pub(super) fn kept<'a>(entry: &Entry, view: &'a View, entries: &Entries) -> Result<&'a [KeptBy]> {
    if let Some(kept) = view.kept.get() {
        return Ok(kept);
    }
    let mut texts = vec![ViewText { name: &entry.name, text: &view.text }];
    expanded(&entry.depends, entries, &mut texts);
    let output = match view.kind {
        ViewKind::Materialized => Output::Rows,
        ViewKind::Plain | ViewKind::Local => Output::Changes,
    };
    let there = |index| view.uses.all.contains_key(&index);
    let found = explain_state(&view.plan, output, &texts, &there)?;
    Ok(view.kept.get_or_init(|| found))
}

/// Adds the texts of the views among `names` that are expanded where they are named, and of those in them.
fn expanded<'a>(names: &[String], entries: &'a Entries, texts: &mut Vec<ViewText<'a>>) {
    for name in names {
        let Some((name, entry)) = entries.get_key_value(name) else { continue };
        let Definition::View(view) = &entry.definition else { continue };
        let is_new = texts.iter().all(|text| text.name != *name);
        if view.kind != ViewKind::Materialized && is_new {
            texts.push(ViewText { name, text: &view.text });
            expanded(&entry.depends, entries, texts);
        }
    }
}

/// The kind of a shared state.
enum Shared {
    Table,
    Index,
}

fn is_shared(state: &KeptState) -> Option<Shared> {
    match (&state.place, state.index) {
        (Place::Table(_), _) => Some(Shared::Table),
        (Place::Index(_), _) | (Place::Own(_), Some(_)) => Some(Shared::Index),
        (Place::Own(_), None) => None,
    }
}

/// Where a state of a view is.
pub(super) fn key(state: &KeptState, entry: &Entry, view: &View) -> StateKey {
    let index = |fingerprint| {
        let id = view.uses.all.get(fingerprint);
        id.map_or_else(String::new, |id| id.of_index())
    };
    match (&state.place, &state.index) {
        (Place::Table(table), _) => (table.clone(), ROWS.to_owned()),
        (Place::Index(fingerprint), _) => (index(fingerprint), ROWS.to_owned()),
        (Place::Own(own), Some(fingerprint)) => (index(fingerprint), own.id.clone()),
        (Place::Own(own), None) => (entry.name.clone(), own.id.clone()),
    }
}

/// The rows and bytes of the spines of a state, of all workers and operators.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) rows: u64,
    pub(super) memory: u64,
    pub(super) disk: u64,
    /// The least of their bounds, as a number and for people.
    bound: Option<(i64, String)>,
    /// About how many of the rows are below their bounds.
    below: Option<u64>,
}

impl Held {
    fn add(&mut self, spine: &SpineMetrics) {
        self.rows += spine.rows;
        self.memory += spine.memory;
        self.disk += spine.disk;
        if let Some(bound) = spine.least.zip(spine.bound.clone())
            && self.bound.as_ref().is_none_or(|least| bound < *least)
        {
            self.bound = Some(bound);
        }
        if let Some(below) = spine.below {
            *self.below.get_or_insert(0) += below;
        }
    }
}

/// A state, with how much it has.
fn told(state: &KeptState, entry: &Entry, view: &View, held: &BTreeMap<StateKey, Held>) -> State {
    let nothing = Held::default();
    let held = held.get(&key(state, entry, view)).unwrap_or(&nothing);
    let place = match &state.place {
        Place::Own(own) => own.to_string(),
        Place::Index(index) => format!("index {}", index.short()),
        Place::Table(relation) => relation.clone(),
    };
    State {
        contents: state.what,
        place,
        rows: held.rows,
        memory_bytes: held.memory,
        file_bytes: held.disk,
        sentences: sentences(&state.keeping, held),
    }
}

/// Whether a state is pruned and below what, or why not and what helps.
fn sentences(keeping: &Keeping, held: &Held) -> Vec<String> {
    match keeping {
        Keeping::From { column, bound, last } => {
            let waterline = bound.describe();
            let Some((_, least)) = &held.bound else {
                return vec![format!("{keeping}: no bound yet")];
            };
            let last = LastRows(*last);
            let mut sentences =
                vec![format!("pruned: {column} >= {least}, from {waterline}{last}")];
            if let Some(below) = held.below {
                let below = below.min(held.rows);
                let bytes = u128::from(held.memory + held.disk);
                let part = |rows: u64| bytes * u128::from(rows) / u128::from(held.rows.max(1));
                let rest = held.rows - below;
                sentences.push(format!(
                    "about {} ({} bytes) above the bound, {} ({} bytes) below it",
                    rows(rest),
                    part(rest),
                    rows(below),
                    part(below)
                ));
            }
            sentences
        }
        Keeping::All { reason, .. } => {
            let remedy = reason.remedy().map(|remedy| format!("what helps: {remedy}"));
            [keeping.to_string()].into_iter().chain(remedy).collect()
        }
    }
}

/// A reason with what would help.
pub(super) fn full(reason: &Reason, at: Option<&str>) -> String {
    let at = at.map(|at| format!(" ({at})")).unwrap_or_default();
    match reason.remedy() {
        Some(remedy) => format!("{reason}{at}: {remedy}"),
        None => format!("{reason}{at}"),
    }
}
