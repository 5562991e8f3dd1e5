//! CREATE SCHEMA and DROP SCHEMA.

use std::sync::Arc;

use alluvium_sql::name::{self, OWN_SCHEMAS, SCHEMA, TEMPORARY};
use alluvium_sql::statement::{Drop, SchemaDefinition};

use super::Definitions;
use super::sequences::check_unused;
use crate::catalog::{Entries, Entry};
use crate::connectors::Connectors;
use crate::durable::record::{Record, Recorded};
use crate::error::{Error, Result, SqlState};
use crate::interrupt;
use crate::writer::Writer;

/// The schema in which servers have what Postgres's clients ask for.
const POSTGRES: &str = "pg_catalog";

impl Definitions {
    /// Creates a schema, durably; does nothing if it may be there and is.
    pub(crate) fn create_schema(&self, schema: &SchemaDefinition) -> Result<()> {
        let lock = self.lock();
        let name = &schema.name;
        check_free(name)?;
        if self.catalog.entries().has_schema(name) {
            return match schema.if_not_exists {
                true => Ok(()),
                false => Err(there_is(name)),
            };
        }
        let known = Record::name_of_schema(name);
        self.sequencer.record(&Recorded::new(known, Record::schema(name)))?;
        self.catalog.insert_schema(name);
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    /// Drops a schema, and with CASCADE what is in it and reads that. Nothing is committed meanwhile.
    pub(crate) fn drop_schema(
        &self,
        schema: &Drop,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<()> {
        let writing = writer.lock()?;
        let lock = self.lock();
        let name = &schema.name;
        check_free(name)?;
        if *name == SCHEMA {
            return Err(Error::sql(format!("\"{SCHEMA}\" is the default schema, and stays")));
        }
        if !self.catalog.entries().has_schema(name) {
            return match schema.if_exists {
                true => Ok(()),
                false => Err(no_schema(name)),
            };
        }
        let gone = self.gone_with(name);
        let sequences = self.sequences_of(name, &gone)?;
        if !schema.cascade && (!gone.is_empty() || !sequences.is_empty()) {
            let inside = gone.iter().map(|entry| &entry.name).chain(&sequences);
            let inside = inside.map(|name| format!("\"{name}\""));
            return Err(Error::sql(format!(
                "there are {} in \"{name}\" or reading what is; drop them first, or DROP SCHEMA … CASCADE",
                inside.collect::<Vec<_>>().join(", ")
            )));
        }
        let dropped = interrupt::deferred(|| {
            let of_schema = Record::name_of_schema(name);
            let names = gone.iter().map(|entry| &entry.name).chain(&sequences);
            let names = names.map(String::as_str).chain([&*of_schema]);
            self.sequencer.record_drop(&Record::dropped_schema(name), names)?;
            self.catalog.remove_schema(name);
            sequences.iter().for_each(|sequence| self.remove_sequence(sequence));
            let removed = gone.iter().map(|entry| self.remove(entry, connectors));
            removed.fold(Ok(()), Result::and)
        });
        drop((writing, lock));
        dropped.and_then(|()| self.sequencer.durable().sync_all())
    }

    /// The sequences of a schema that statements have created. Fails if a relation that stays takes values of one.
    fn sequences_of(&self, schema: &str, gone: &[Arc<Entry>]) -> Result<Vec<String>> {
        let entries = self.catalog.entries();
        let inside = entries.sequences.keys().filter(|name| name::split(name).0 == schema);
        let inside: Vec<String> = inside.cloned().collect();
        inside.iter().try_for_each(|sequence| check_unused(&entries, sequence, gone))?;
        Ok(inside)
    }

    /// The relations of a schema and those that depend on them, each before those it depends on.
    fn gone_with(&self, schema: &str) -> Vec<Arc<Entry>> {
        let mut gone: Vec<Arc<Entry>> = Vec::new();
        for entry in self.catalog.entries().values() {
            if name::split(&entry.name).0 != schema {
                continue;
            }
            for entry in self.catalog.dependents(&entry.name).into_iter().chain([entry.clone()]) {
                if gone.iter().all(|other| other.name != entry.name) {
                    gone.push(entry);
                }
            }
        }
        gone
    }
}

/// Fails if no relation can be created in the schema of this one.
pub(super) fn check_schema(entries: &Entries, relation: &str) -> Result<()> {
    let (schema, _) = name::split(relation);
    check_free(&schema)?;
    match entries.has_schema(&schema) {
        true => Ok(()),
        false => Err(no_schema(&schema)),
    }
}

/// Fails if a schema is one of the engine's own.
pub(super) fn check_free(schema: &str) -> Result<()> {
    if schema == TEMPORARY {
        return Err(Error::sql(format!(
            "the schema \"{TEMPORARY}\" has the temporary tables of a session, and nothing else: create what lasts in another one"
        )));
    }
    match OWN_SCHEMAS.contains(&schema) || schema == POSTGRES {
        false => Ok(()),
        true => Err(Error::sql(format!(
            "the schema \"{schema}\" is the engine's own: create what is yours in another one"
        ))
        .with_sqlstate(SqlState::RESERVED_NAME)),
    }
}

pub(super) fn there_is(name: &str) -> Error {
    Error::sql(format!("there is already a schema \"{name}\""))
        .with_sqlstate(SqlState::DUPLICATE_SCHEMA)
}

fn no_schema(name: &str) -> Error {
    Error::sql(format!("there is no schema \"{name}\": CREATE SCHEMA makes one"))
        .with_sqlstate(SqlState::NO_SCHEMA)
}
