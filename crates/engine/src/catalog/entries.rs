//! The relations that exist at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use alluvium_sql::name::{self, SCHEMA};
use alluvium_sql::planner::{SqlFunction, SqlFunctions};
use alluvium_sql::statement::SequenceDefinition;

use super::{Entry, Systems, named_index};
use crate::authorizer::Object;
use crate::error::{Error, Result, SqlState};

/// All relations by name, the sequences, the functions that SQL defines, and what connectors name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    relations: BTreeMap<String, Arc<Entry>>,
    /// Those that statements have created, by name.
    pub(crate) sequences: BTreeMap<String, Arc<SequenceDefinition>>,
    pub(crate) functions: SqlFunctions,
    /// The schemas that were created.
    pub(crate) schemas: BTreeSet<String>,
    pub(crate) systems: Systems,
}

impl Entries {
    /// The relation of this name.
    pub(crate) fn relation(&self, name: &str) -> Result<Arc<Entry>> {
        let name = name::short(name);
        self.get(name).cloned().ok_or_else(|| match named_index::find(self, name) {
            None => Error::sql(format!("there is no table or view \"{name}\""))
                .with_sqlstate(SqlState::NO_RELATION),
            Some((entry, _)) => Error::sql(format!("\"{name}\" is an index of \"{}\"", entry.name)),
        })
    }

    /// Whether there is a schema of this name for relations of users.
    pub(crate) fn has_schema(&self, name: &str) -> bool {
        name == SCHEMA || self.schemas.contains(name)
    }

    /// The relations that depend on `name`, directly or through others, each before those it depends on.
    pub(crate) fn dependents(&self, name: &str) -> Vec<Arc<Entry>> {
        fn collect<'a>(
            entries: &'a Entries,
            name: &str,
            // Views that recur depend on each other.
            seen: &mut BTreeSet<&'a str>,
            found: &mut Vec<Arc<Entry>>,
        ) {
            for entry in entries.values() {
                if entry.depends.iter().any(|other| other == name) && seen.insert(&entry.name) {
                    collect(entries, &entry.name, seen, found);
                    found.push(entry.clone());
                }
            }
        }
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        seen.extend(self.get_key_value(name).map(|(name, _)| name.as_str()));
        collect(self, name, &mut seen, &mut found);
        found
    }

    /// Whether all relations that one reads, directly or through others, are among these.
    pub(crate) fn reads_only(&self, name: &str, are: impl Fn(&str) -> bool) -> bool {
        let mut seen = BTreeSet::from([name]);
        let mut left = vec![name];
        while let Some(entry) = left.pop().and_then(|name| self.get(name)) {
            for input in entry.depends.iter().filter(|input| self.contains_key(*input)) {
                if !are(input) {
                    return false;
                }
                if seen.insert(input) {
                    left.push(input);
                }
            }
        }
        true
    }

    /// Fails, naming them, if relations depend on `name`, or sinks write it.
    pub(crate) fn check_unused(&self, name: &str) -> Result<()> {
        let Some(users) = self.users(name) else { return Ok(()) };
        Err(Error::sql(format!(
            "\"{name}\" is used by {users}; drop what uses it first, or DROP … CASCADE"
        )))
    }

    /// The relations that depend on `name` themselves and its sinks, for messages; `None` if there are none.
    pub(crate) fn users(&self, name: &str) -> Option<String> {
        let users = self.values().filter(|entry| entry.depends.iter().any(|other| other == name));
        let users = users.map(|entry| format!("\"{}\"", entry.name));
        let sinks = self.systems.sinks_of(name).into_iter().map(|sink| format!("sink \"{sink}\""));
        let users = users.chain(sinks).collect::<Vec<_>>();
        (!users.is_empty()).then(|| users.join(", "))
    }

    /// Of the relations, sequences, secrets, connections and schemas only those that are wanted, and the schemas that such relations and sequences are in.
    pub(crate) fn only(&self, is_wanted: impl Fn(Object<'_>) -> bool) -> Self {
        let mut entries = self.clone();
        entries.relations.retain(|name, _| is_wanted(Object::Relation(name)));
        entries.sequences.retain(|name, _| is_wanted(Object::Sequence(name)));
        entries.systems.secrets.retain(|name, _| is_wanted(Object::Secret(name)));
        entries.systems.connections.retain(|name, _| is_wanted(Object::Connection(name)));
        let names = entries.relations.keys().chain(entries.sequences.keys());
        let used: BTreeSet<String> = names.map(|name| name::split(name).0).collect();
        entries.schemas.retain(|name| used.contains(name) || is_wanted(Object::Schema(name)));
        entries
    }

    /// The functions, each after those that it calls.
    pub(crate) fn function_infos(&self) -> Vec<FunctionInfo> {
        let mut left: Vec<FunctionInfo> =
            self.functions.values().map(|function| FunctionInfo::of(function)).collect();
        let mut infos = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let names: BTreeSet<String> = left.iter().map(|info| info.name.clone()).collect();
            let waits = |info: &FunctionInfo| info.calls.iter().any(|name| names.contains(name));
            let (later, now): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
            infos.extend(now);
            left = later;
        }
        infos
    }
}

impl Deref for Entries {
    type Target = BTreeMap<String, Arc<Entry>>;

    fn deref(&self) -> &Self::Target {
        &self.relations
    }
}

impl DerefMut for Entries {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.relations
    }
}

/// A function that SQL defines, as [`crate::Engine::functions`] lists it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FunctionInfo {
    /// Its name.
    pub name: String,
    /// The statement that created it.
    pub sql: String,
    /// The functions that it calls and that SQL defines.
    pub calls: Vec<String>,
}

impl FunctionInfo {
    fn of(function: &SqlFunction) -> Self {
        Self {
            name: function.name().to_owned(),
            sql: function.text().to_owned(),
            calls: function.calls().to_vec(),
        }
    }
}
