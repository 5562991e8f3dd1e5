//! What exists at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use alluvium_sql::planner::{SqlFunction, SqlFunctions};
use alluvium_sql::statement::SequenceDefinition;

use super::Entry;

/// All relations by name, the sequences, and the functions that SQL defines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    relations: BTreeMap<String, Arc<Entry>>,
    /// Those that statements have created, by name.
    pub(crate) sequences: BTreeMap<String, Arc<SequenceDefinition>>,
    pub(crate) functions: SqlFunctions,
}

impl Entries {
    /// Of the relations only those whose names are wanted.
    pub(crate) fn only(&self, is_wanted: impl Fn(&str) -> bool) -> Self {
        let mut entries = self.clone();
        entries.relations.retain(|name, _| is_wanted(name));
        entries
    }

    /// The functions, each behind those that it calls.
    pub(crate) fn function_infos(&self) -> Vec<FunctionInfo> {
        let mut left: Vec<FunctionInfo> =
            self.functions.values().map(|function| FunctionInfo::from(&**function)).collect();
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
pub struct FunctionInfo {
    /// Its name.
    pub name: String,
    /// The statement that created it.
    pub sql: String,
    /// The functions that it calls and that SQL defines.
    pub calls: Vec<String>,
}

impl From<&SqlFunction> for FunctionInfo {
    fn from(function: &SqlFunction) -> Self {
        Self {
            name: function.name().to_owned(),
            sql: function.text().to_owned(),
            calls: function.calls().to_vec(),
        }
    }
}
