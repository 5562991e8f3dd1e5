//! `alluvium.columns`, `constraints`, `indexes`, `sequences`, `dependencies` and `settings`; [`information_schema`] as other systems have it.

pub(super) mod information_schema;
mod roles;
pub(super) mod shown_settings;
mod systems;

use std::sync::Arc;

use alluvium_sql::name::split;
use alluvium_sql::planner::type_name;
use alluvium_sql::statement::{SequenceOptions, check_names};
use arrow::array::{
    ArrayRef, BooleanArray, Int16Builder, Int32Array, Int64Array, ListBuilder, RecordBatch,
    StringArray, StringBuilder,
};
use datafusion::datasource::{MemTable, TableProvider};

use self::shown_settings::ShownSettings;
use crate::catalog::{Definition, Entries, Entry, Table, default_text, objects};
use crate::error::Result;
use crate::roles::Roles;
use crate::sequencer::Comments;

/// Those of them that are among the names.
pub(super) fn tables_named(
    names: &[String],
    entries: &Entries,
    comments: impl Fn() -> Comments,
    settings: Option<&dyn ShownSettings>,
    roles: impl Fn() -> Roles,
) -> Result<Vec<(String, Arc<dyn TableProvider>)>> {
    let mut found: Vec<(String, Arc<dyn TableProvider>)> = Vec::new();
    for name in names {
        let columns = match name.as_str() {
            objects::COLUMNS => columns(entries, &comments()),
            objects::CONSTRAINTS => constraints(entries)?,
            objects::INDEXES => indexes(entries, &comments()),
            objects::SEQUENCES => sequences(entries),
            objects::DEPENDENCIES => dependencies(entries),
            objects::SETTINGS => of_session(settings),
            objects::ROLES => roles::of(&roles()),
            objects::GRANTS => roles::grants(&roles(), entries),
            objects::SECRETS => systems::secrets(&entries.systems),
            objects::CONNECTIONS => systems::connections(&entries.systems),
            _ => continue,
        };
        let Some(schema) = objects::schema(name) else { continue };
        let rows = RecordBatch::try_new(schema.clone(), columns)?;
        let table = MemTable::try_new(schema.clone(), vec![vec![rows]])?;
        found.push((name.clone(), Arc::new(table)));
    }
    Ok(found)
}

pub(super) fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(texts))
}

pub(super) fn some_texts<T: AsRef<str>>(texts: impl IntoIterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(texts.into_iter().collect::<StringArray>())
}

fn flags(flags: impl IntoIterator<Item = bool>) -> ArrayRef {
    Arc::new(BooleanArray::from(flags.into_iter().collect::<Vec<_>>()))
}

fn numbers(numbers: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers))
}

/// Lists of names of columns.
fn lists<'a>(all: impl IntoIterator<Item = &'a Vec<String>>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for names in all {
        names.iter().for_each(|name| lists.values().append_value(name));
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// Lists of places of columns.
fn places<'a>(all: impl IntoIterator<Item = &'a Vec<i16>>) -> ArrayRef {
    let mut lists = ListBuilder::new(Int16Builder::new());
    for places in all {
        lists.values().append_slice(places);
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// The places of these columns, from 1.
fn placed(columns: &[usize]) -> Vec<i16> {
    columns.iter().map(|column| i16::try_from(column + 1).unwrap_or(i16::MAX)).collect()
}

/// The names of these columns.
fn named(entry: &Entry, columns: &[usize]) -> Vec<String> {
    let fields = entry.schema.fields();
    let fields = columns.iter().filter_map(|column| fields.get(*column));
    fields.map(|field| field.name().clone()).collect()
}

fn tables(entries: &Entries) -> impl Iterator<Item = (&Entry, &Table)> {
    entries.values().filter_map(|entry| match &entry.definition {
        Definition::Table(table) => Some((&**entry, table)),
        Definition::View(_) | Definition::Declared(_) => None,
    })
}

fn columns(entries: &Entries, comments: &Comments) -> Vec<ArrayRef> {
    let (mut names, mut places) = (Vec::new(), Vec::new());
    let (mut types, mut nullable, mut defaults) = (Vec::new(), Vec::new(), Vec::new());
    let (mut generated, mut sequences, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries.values() {
        let table = entry.as_table().ok();
        let own: Vec<_> = table.into_iter().flat_map(|it| it.defined.sequences()).collect();
        let (schema, relation) = split(&entry.name);
        for (place, field) in entry.schema.fields().iter().enumerate() {
            let sequence = own.iter().find(|(column, ..)| *column == place);
            let default = table.and_then(|it| it.defaults.get(place)?.as_ref());
            names.push((schema.clone(), relation.clone(), field.name().as_str()));
            places.push(i32::try_from(place + 1).unwrap_or(i32::MAX));
            types.push(type_name(field.data_type()));
            nullable.push(field.is_nullable());
            defaults.push(default.map(default_text));
            generated
                .push(sequence.map(|(.., it)| if it.always { "always" } else { "by default" }));
            sequences.push(sequence.map(|(_, name, _)| name.clone()));
            said.push(comments.get(&entry.name, Some(field.name())).map(str::to_owned));
        }
    }
    vec![
        texts(names.iter().map(|(schema, ..)| schema)),
        texts(names.iter().map(|(_, relation, _)| relation)),
        texts(names.iter().map(|(.., name)| name)),
        Arc::new(Int32Array::from(places)),
        texts(types),
        flags(nullable),
        some_texts(defaults),
        some_texts(generated),
        some_texts(sequences),
        some_texts(said),
    ]
}

/// A constraint of a table.
struct Constraint {
    schema: String,
    relation: String,
    name: String,
    kind: &'static str,
    columns: Vec<String>,
    positions: Vec<i16>,
    condition: Option<String>,
    enforced: bool,
}

fn constraints(entries: &Entries) -> Result<Vec<ArrayRef>> {
    let mut all = Vec::new();
    for (entry, table) in tables(entries) {
        let (schema, relation) = split(&entry.name);
        let mut add = |name: String, kind, columns: &[usize], condition, enforced| {
            let (schema, relation) = (schema.clone(), relation.clone());
            let (columns, positions) = (named(entry, columns), placed(columns));
            all.push(Constraint {
                schema,
                relation,
                name,
                kind,
                columns,
                positions,
                condition,
                enforced,
            });
        };
        for (key, enforced) in [(&table.primary_key, true), (&table.promised_key, false)] {
            if !key.is_empty() {
                let name = format!("{relation}_pkey");
                add(name, "primary key", key, None, enforced);
            }
        }
        for (index, _) in entry.uniques() {
            add(split(&index.name).1, "unique", &index.columns, None, true);
        }
        let fields: Vec<&str> =
            entry.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let checks = &table.defined.checks;
        for (name, check) in check_names(&entry.name, &fields, checks)?.into_iter().zip(checks) {
            let condition = check.condition.to_string();
            add(name, "check", check.column.as_slice(), Some(condition), true);
        }
    }
    Ok(vec![
        texts(all.iter().map(|it| &it.schema)),
        texts(all.iter().map(|it| &it.relation)),
        texts(all.iter().map(|it| &it.name)),
        texts(all.iter().map(|it| it.kind)),
        lists(all.iter().map(|it| &it.columns)),
        places(all.iter().map(|it| &it.positions)),
        some_texts(all.iter().map(|it| it.condition.as_deref())),
        flags(all.iter().map(|it| it.enforced)),
    ])
}

fn indexes(entries: &Entries, comments: &Comments) -> Vec<ArrayRef> {
    let all = entries.values().flat_map(|entry| entry.indexes.iter().map(move |it| (entry, it)));
    let all: Vec<_> = all
        .map(|(entry, index)| (split(&entry.name), index, named(entry, &index.columns)))
        .collect();
    let positions: Vec<_> = all.iter().map(|(_, index, _)| placed(&index.columns)).collect();
    vec![
        texts(all.iter().map(|((schema, _), ..)| schema)),
        texts(all.iter().map(|((_, relation), ..)| relation)),
        texts(all.iter().map(|(_, index, _)| split(&index.name).1)),
        lists(all.iter().map(|(.., columns)| columns)),
        places(&positions),
        flags(all.iter().map(|(_, index, _)| index.unique.is_some())),
        some_texts(all.iter().map(|(_, index, _)| comments.get(&index.name, None))),
    ]
}

/// The names of a table and one of its columns.
type TableColumn = (String, String);

fn sequences(entries: &Entries) -> Vec<ArrayRef> {
    let created = entries.sequences.values();
    let mut all: Vec<(String, Option<TableColumn>, SequenceOptions)> =
        created.map(|it| (it.name.clone(), None, it.options)).collect();
    for (entry, table) in tables(entries) {
        for (column, name, generated) in table.defined.sequences() {
            let column = entry.schema.field(column).name().clone();
            all.push((name, Some((split(&entry.name).1, column)), generated.options));
        }
    }
    let owner = |it: &Option<TableColumn>| it.clone().unzip();
    vec![
        texts(all.iter().map(|(name, ..)| split(name).0)),
        texts(all.iter().map(|(name, ..)| split(name).1)),
        some_texts(all.iter().map(|(_, of, _)| owner(of).0)),
        some_texts(all.iter().map(|(_, of, _)| owner(of).1)),
        numbers(all.iter().map(|(.., options)| options.start)),
        numbers(all.iter().map(|(.., options)| options.increment)),
        numbers(all.iter().map(|(.., options)| options.minimum)),
        numbers(all.iter().map(|(.., options)| options.maximum)),
        flags(all.iter().map(|(.., options)| options.cycles)),
    ]
}

fn dependencies(entries: &Entries) -> Vec<ArrayRef> {
    let all = entries.values().flat_map(|entry| entry.depends.iter().map(move |it| (entry, it)));
    // A view may read what its readers may not know of.
    let all = all.filter(|(_, read)| entries.contains_key(*read));
    let all: Vec<_> = all.map(|(entry, read)| (split(&entry.name), split(read))).collect();
    vec![
        texts(all.iter().map(|((schema, _), _)| schema)),
        texts(all.iter().map(|((_, relation), _)| relation)),
        texts(all.iter().map(|(_, (schema, _))| schema)),
        texts(all.iter().map(|(_, (_, relation))| relation)),
    ]
}

/// The settings of the session that asks, if one does.
fn of_session(settings: Option<&dyn ShownSettings>) -> Vec<ArrayRef> {
    let all = settings.map_or_else(Vec::new, ShownSettings::all);
    vec![
        texts(all.iter().map(|(name, ..)| name)),
        texts(all.iter().map(|(_, value, _)| value)),
        texts(all.iter().map(|(.., description)| description)),
    ]
}
