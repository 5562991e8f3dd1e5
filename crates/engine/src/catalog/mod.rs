//! The catalog: tables and views, their definitions, indexes and dependencies.
//!
//! The catalog is a persistent value: a statement is planned with the [`Entries`] of one moment, and definitions replace
//! them.

mod default_text;
mod entries;
mod entry;
mod indexes;
pub(crate) mod metrics;
pub(crate) mod named_index;
pub(crate) mod objects;
mod sequence;
mod systems;
mod temporary;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use alluvium_sql::catalog::Relation;
use alluvium_sql::planner::{SqlFunction, SqlFunctions};
use alluvium_sql::stack;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
pub(crate) use default_text::default_text;
pub(crate) use entries::Entries;
pub use entries::FunctionInfo;
pub(crate) use entry::{Declared, Definition, Entry, Table, View, Waiting};
pub use entry::{RelationInfo, RelationKind};
pub(crate) use indexes::{Indexes, Uses};
pub use named_index::IndexInfo;
pub(crate) use named_index::NamedIndex;
use parking_lot::RwLock;
pub(crate) use systems::Systems;
pub(crate) use temporary::Temporary;

use crate::error::Result;
use crate::worker::DataflowId;

/// The name under which the errors of all views can be read.
pub(crate) const ERRORS: &str = "alluvium.errors";

/// The columns of [`ERRORS`].
pub(crate) static ERRORS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("view", DataType::Utf8, false),
        Field::new("expression", DataType::Utf8, true),
        Field::new("row", DataType::Utf8, true),
        Field::new("message", DataType::Utf8, true),
        Field::new("epoch", DataType::UInt64, true),
    ]))
});

/// The name of the system relation that lists the tables.
pub(crate) const TABLES: &str = "alluvium.tables";

/// The columns of [`TABLES`].
pub(crate) static TABLES_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let number = |name| Field::new(name, DataType::UInt64, false);
    Arc::new(Schema::new(vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("materialized", DataType::Boolean, false),
        number("refused_deletions"),
        number("late_rows"),
        Field::new("waterline", DataType::Utf8, true),
    ]))
});

/// The name of the system relation that lists all relations and indexes.
pub(crate) const RELATIONS: &str = "alluvium.relations";

/// The columns of [`RELATIONS`].
pub(crate) static RELATIONS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let text = |name| Field::new(name, DataType::Utf8, false);
    Arc::new(Schema::new(vec![
        text("name"),
        text("kind"),
        text("state"),
        Field::new("reason", DataType::Utf8, true),
        Field::new("rows", DataType::UInt64, true),
        Field::new("filled", DataType::Float64, true),
        Field::new("comment", DataType::Utf8, true),
        text("schema"),
        text("relation"),
        text("definition"),
        Field::new("temporary", DataType::Boolean, false),
        Field::new("columns", DataType::Int64, false),
        Field::new("indexes", DataType::Int64, false),
        Field::new("checks", DataType::Int64, false),
    ]))
});

/// The name of the standard's relation of tables and views.
pub(crate) const INFORMATION_TABLES: &str = "information_schema.tables";

/// The columns of [`INFORMATION_TABLES`].
pub(crate) static INFORMATION_TABLES_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let names = ["table_catalog", "table_schema", "table_name", "table_type"];
    let mut fields = names.map(|name| Field::new(name, DataType::Utf8, false)).to_vec();
    fields.push(Field::new("table_comment", DataType::Utf8, true));
    Arc::new(Schema::new(fields))
});

/// The name of the standard's relation of columns.
pub(crate) const INFORMATION_COLUMNS: &str = "information_schema.columns";

/// The columns of [`INFORMATION_COLUMNS`].
pub(crate) static INFORMATION_COLUMNS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let text = |name| Field::new(name, DataType::Utf8, false);
    Arc::new(Schema::new(vec![
        text("table_catalog"),
        text("table_schema"),
        text("table_name"),
        text("column_name"),
        Field::new("ordinal_position", DataType::Int32, false),
        Field::new("column_default", DataType::Utf8, true),
        text("is_nullable"),
        text("data_type"),
        Field::new("column_comment", DataType::Utf8, true),
    ]))
});

/// The name of the standard's relation of schemas.
pub(crate) const INFORMATION_SCHEMATA: &str = "information_schema.schemata";

/// The columns of [`INFORMATION_SCHEMATA`].
pub(crate) static INFORMATION_SCHEMATA_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let names = ["catalog_name", "schema_name"];
    Arc::new(Schema::new(names.map(|name| Field::new(name, DataType::Utf8, false)).to_vec()))
});

/// The names of the system relations of no kind.
const SYSTEM: [&str; 6] =
    [ERRORS, TABLES, RELATIONS, INFORMATION_TABLES, INFORMATION_COLUMNS, INFORMATION_SCHEMATA];

/// Whether a relation of this name is about the engine itself.
pub(crate) fn is_system(name: &str) -> bool {
    SYSTEM.contains(&name) || metrics::METRICS.contains(&name) || objects::OBJECTS.contains(&name)
}

/// The columns of a system relation.
pub(crate) fn system(name: &str) -> Option<&'static SchemaRef> {
    match name {
        ERRORS => Some(&ERRORS_SCHEMA),
        TABLES => Some(&TABLES_SCHEMA),
        RELATIONS => Some(&RELATIONS_SCHEMA),
        INFORMATION_TABLES => Some(&INFORMATION_TABLES_SCHEMA),
        INFORMATION_COLUMNS => Some(&INFORMATION_COLUMNS_SCHEMA),
        INFORMATION_SCHEMATA => Some(&INFORMATION_SCHEMATA_SCHEMA),
        _ => metrics::schema(name).or_else(|| objects::schema(name)),
    }
}

/// The relations and functions that exist.
#[derive(Default)]
pub(crate) struct Catalog {
    entries: RwLock<Arc<Entries>>,
    /// The number of levels of the deepest view so far.
    deepest: AtomicUsize,
    /// The number of levels of the deepest function so far.
    deepest_function: AtomicUsize,
}

impl Drop for Catalog {
    /// The last entry of a view may drop those of all views below it.
    fn drop(&mut self) {
        stack::with_room(self.deepest(), || drop(std::mem::take(self.entries.get_mut())));
    }
}

impl Catalog {
    /// The relations of this moment.
    pub(crate) fn entries(&self) -> Arc<Entries> {
        self.entries.read().clone()
    }

    /// The relation of this name.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Entry>> {
        self.entries().relation(name)
    }

    /// The relation of a dataflow, if it has not been dropped.
    pub(crate) fn of_dataflow(&self, id: DataflowId) -> Option<Arc<Entry>> {
        self.entries().values().find(|entry| entry.dataflow() == Some(id)).cloned()
    }

    /// Whether there is a relation of this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.read().contains_key(name)
    }

    pub(crate) fn insert_schema(&self, name: &str) {
        Arc::make_mut(&mut self.entries.write()).schemas.insert(name.to_owned());
    }

    pub(crate) fn remove_schema(&self, name: &str) {
        Arc::make_mut(&mut self.entries.write()).schemas.remove(name);
    }

    pub(crate) fn insert_function(&self, function: SqlFunction) {
        self.deepest_function.fetch_max(function.levels(), Ordering::Relaxed);
        let name = function.name().to_owned();
        let mut entries = self.entries.write();
        Arc::make_mut(&mut entries).functions.insert(name, Arc::new(function));
    }

    pub(crate) fn remove_function(&self, name: &str) {
        let mut entries = self.entries.write();
        Arc::make_mut(&mut entries).functions.remove(name);
    }

    /// As [`Entries::dependents`], of the relations of this moment.
    pub(crate) fn dependents(&self, name: &str) -> Vec<Arc<Entry>> {
        self.entries().dependents(name)
    }

    /// As [`Entries::check_unused`], of the relations of this moment.
    pub(crate) fn check_unused(&self, name: &str) -> Result<()> {
        self.entries().check_unused(name)
    }

    /// The number of levels of the deepest view so far, for [`stack::with_room`].
    pub(crate) fn deepest(&self) -> usize {
        self.deepest.load(Ordering::Relaxed)
    }

    /// The levels that a statement of `depth` levels may have with what its calls stand for.
    pub(crate) fn with_functions(&self, depth: usize) -> usize {
        depth.saturating_mul(1 + self.deepest_function.load(Ordering::Relaxed))
    }

    pub(crate) fn insert(&self, entry: Entry) {
        let name = entry.name.clone();
        self.replace(&name, entry);
    }

    /// Puts a relation in the place of the one of this name, if there is one, at once.
    pub(crate) fn replace(&self, name: &str, entry: Entry) {
        self.note_depth(&entry);
        let mut entries = self.entries.write();
        let entries = Arc::make_mut(&mut entries);
        entries.remove(name);
        entries.insert(entry.name.clone(), Arc::new(entry));
    }

    /// A relation is there, or is planned with.
    pub(crate) fn note_depth(&self, entry: &Entry) {
        let extent = match &entry.definition {
            Definition::View(view) => Some(view.extent),
            Definition::Declared(_) => entry.waiting().map(|waiting| waiting.planned.extent),
            Definition::Table(_) => None,
        };
        if let Some(extent) = extent {
            self.deepest.fetch_max(extent.levels, Ordering::Relaxed);
        }
    }

    /// Makes an epoch, and replaces the relations by the result of `change`: a reader that sees one of the two sees the
    /// other. Nothing that takes another lock of the catalog is called.
    pub(crate) fn exchange<R>(
        &self,
        make: impl FnOnce() -> R,
        change: impl FnOnce(&mut Entries),
    ) -> R {
        let mut entries = self.entries.write();
        let made = make();
        change(Arc::make_mut(&mut entries));
        made
    }

    /// Notes that a view has failed.
    pub(crate) fn fail(&self, entry: &Entry, reason: &Arc<str>) {
        self.insert(entry.stopped(reason));
    }

    pub(crate) fn remove(&self, name: &str) {
        let mut entries = self.entries.write();
        Arc::make_mut(&mut entries).remove(name);
    }
}

/// The relations that a statement may name.
pub(crate) struct Scope<'a>(pub(crate) &'a Entries);

impl alluvium_sql::catalog::Catalog for Scope<'_> {
    fn relation(&self, name: &str) -> Option<Relation> {
        if let Some(schema) = system(name) {
            return Some(Relation::System { schema: schema.clone() });
        }
        self.0.get(name).map(|entry| entry.relation())
    }

    fn names(&self) -> Vec<String> {
        let system = SYSTEM.into_iter().chain(objects::OBJECTS).map(str::to_owned);
        self.0.keys().cloned().chain(system).collect()
    }

    fn functions(&self) -> &SqlFunctions {
        &self.0.functions
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The names in a cell, which are written as code and separated by commas.
    fn names(cell: &str) -> Vec<&str> {
        cell.split(',').map(|name| name.trim().trim_matches('`')).collect()
    }

    #[test]
    fn all_columns_of_system_relations_are_documented_and_no_others() {
        let document = include_str!("../../../../docs/reference/system-relations.md");
        let documented: BTreeMap<&str, Vec<&str>> = document
            .split("\n### ")
            .skip(1)
            .map(|section| {
                let (name, text) = section.split_once('\n').unwrap();
                let rows = text.lines().skip_while(|line| *line != "| column | contents |").skip(2);
                let rows = rows.map_while(|line| line.strip_prefix("| "));
                let columns = rows.flat_map(|row| names(row.split(" |").next().unwrap()));
                (name, columns.collect())
            })
            .collect();
        let all = SYSTEM.iter().chain(&metrics::METRICS).chain(&objects::OBJECTS);
        let ours: BTreeMap<&str, Vec<&str>> = all
            .filter(|name| name.starts_with("alluvium."))
            .map(|name| {
                let fields = system(name).unwrap().fields();
                (*name, fields.iter().map(|field| field.name().as_str()).collect())
            })
            .collect();
        let sorted = |columns: &Vec<&str>| {
            let mut columns = columns.clone();
            columns.sort_unstable();
            columns.join(" ")
        };
        for (name, columns) in &ours {
            let told = documented.get(name).unwrap_or_else(|| panic!("{name} is not documented"));
            assert_eq!(sorted(columns), sorted(told), "{name}");
        }
        assert_eq!(ours.len(), documented.len());
    }
}
