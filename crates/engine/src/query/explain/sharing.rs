//! State of a view that other views keep as well, and what would have it kept once.

use std::collections::BTreeSet;

use alluvium_sql::name;
use alluvium_sql::physical::{Place, State};
use alluvium_sql::plan::{Fingerprint, Index, KeptBy, KeptState};
use alluvium_sql::statement::ViewKind;

use super::create_index::create_index;
use super::state::kept;
use crate::catalog::{Definition, Entries, Entry, View};
use crate::error::Result;
use crate::query::Reader;

/// How many views are named, at most.
const NAMED: usize = 4;

/// A view among the others.
pub(super) struct Sharing<'a> {
    pub(super) reader: &'a Reader,
    pub(super) view: &'a str,
    pub(super) kept: &'a [KeptBy],
    pub(super) entries: &'a Entries,
    /// Whether the state of a relation may be shown.
    pub(super) shows: &'a dyn Fn(&str) -> bool,
}

impl Sharing<'_> {
    /// Says which index of all columns of a relation would take the place of this one, which the view reads, and of those that other
    /// views read.
    pub(super) fn of_index(&self, index: Fingerprint) -> Result<Option<String>> {
        let mut read = indexes(self.kept);
        let Some(wider) = read.find_map(|(own, wider)| (own == index).then_some(wider)) else {
            return Ok(None);
        };
        let Some((relation, columns)) = wider.relation() else { return Ok(None) };
        let by = format!("{} by ({})", name::written(relation), columns.join(", "));
        if let Some(named) = self.named(relation, wider) {
            return Ok(Some(format!(
                "it keeps the rows of {by} itself, as the index \"{named}\" was created after it: created again, as by CREATE OR REPLACE, the view \
                 reads the index"
            )));
        }
        let (mut all, mut views) = (BTreeSet::from([index]), vec![self.view]);
        for (entry, view) in self.others() {
            let alike = |(_, of): &(Fingerprint, &Index)| of.fingerprint() == wider.fingerprint();
            let mut own = indexes(kept(entry, view, self.entries)?).filter(alike).peekable();
            if own.peek().is_some() {
                all.extend(own.map(|(own, _)| own));
                views.push(&entry.name);
            }
        }
        // Views that need the same columns share them already.
        Ok((all.len() > 1).then(|| {
            format!(
                "{} keep the rows of {by}, with different columns: {}, and the views created again, as by CREATE OR REPLACE, have them kept once",
                listed(&views),
                create_index(relation, &columns)
            )
        }))
    }

    /// Says which other views keep the same state.
    pub(super) fn of_state(&self, state: &State) -> Option<String> {
        let fingerprint = state.fingerprint.to_string();
        let metrics = self.reader.progress.metrics();
        let spines = metrics.iter().flat_map(|metrics| metrics.spines());
        let same = spines.filter(|spine| spine.label.fingerprint == fingerprint);
        let names: BTreeSet<String> = same.map(|spine| spine.label.relation).collect();
        let others: Vec<&str> = self
            .others()
            .map(|(entry, _)| entry.name.as_str())
            .filter(|name| names.contains(*name))
            .collect();
        let keep = if others.len() == 1 { "keeps" } else { "keep" };
        (!others.is_empty()).then(|| {
            format!(
                "{} {keep} the same: CREATE MATERIALIZED VIEW of this part, which all of them read, has it kept once",
                listed(&others)
            )
        })
    }

    /// The other views with a dataflow that may be shown.
    fn others(&self) -> impl Iterator<Item = (&Entry, &View)> {
        let views = self.entries.values().filter_map(|entry| match &entry.definition {
            Definition::View(view) if view.kind != ViewKind::Local => Some((&**entry, view)),
            _ => None,
        });
        views.filter(|(entry, _)| entry.name != self.view && (self.shows)(&entry.name))
    }

    /// The name of an index that is there.
    fn named(&self, relation: &str, index: &Index) -> Option<&str> {
        let mut indexes = self.entries.get(relation)?.indexes.iter();
        let named = indexes.find(|named| named.id.is_some() && named.columns == index.keys);
        named.map(|named| &*named.name)
    }
}

/// The indexes that a view reads and the ones of all columns of a relation that it would read instead, had they been there.
fn indexes(kept: &[KeptBy]) -> impl Iterator<Item = (Fingerprint, &Index)> {
    kept.iter().flat_map(|by| &by.states).filter_map(|state| match state {
        KeptState { place: Place::Index(index), wider: Some(wider), .. } => {
            Some((*index, &**wider))
        }
        _ => None,
    })
}

/// The names of some views, for people.
fn listed(views: &[&str]) -> String {
    let mut names: Vec<String> =
        views.iter().take(NAMED).map(|name| format!("\"{name}\"")).collect();
    match views.len().saturating_sub(NAMED) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    match names.split_last() {
        Some((last, [_, ..])) => {
            let before = &names[..names.len() - 1];
            format!("{} and {last}", before.join(", "))
        }
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_views_are_counted() {
        assert_eq!(listed(&["a"]), "\"a\"");
        assert_eq!(listed(&["a", "b"]), "\"a\" and \"b\"");
        let all = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(listed(&all), "\"a\", \"b\", \"c\", \"d\" and 2 more");
    }
}
