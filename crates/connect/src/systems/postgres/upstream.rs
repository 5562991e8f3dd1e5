//! What a database has: a publication, a table in it, and a slot.

use std::collections::BTreeSet;

use alluvium::Error;
use arrow::datatypes::SchemaRef;

use super::connection::{Connection, Row};
use super::failure::{Failure, Result};
use super::position::Lsn;
use super::settings::Settings;

/// The first version of Postgres that is read.
const OLDEST: u32 = 12;

/// The columns of a table here.
#[derive(Clone)]
pub struct Shape {
    pub schema: SchemaRef,
    pub has_default: Vec<bool>,
    pub key: Vec<usize>,
}

/// A table of a database, as far as it is read.
pub struct Table {
    /// Its number, which stays when it is renamed.
    pub id: u32,
    /// The columns of the table here that are there as well.
    pub columns: Vec<usize>,
    is_partitioned: bool,
    /// The condition of the publication on rows.
    filter: Option<String>,
}

/// A replication slot.
pub struct Slot {
    pub is_active: bool,
    pub is_temporary: bool,
    /// What comes before it was confirmed, and is not sent again.
    pub confirmed: Lsn,
    is_lost: bool,
    is_ours: bool,
}

/// Asks a server.
pub struct Upstream<'a> {
    pub connection: &'a mut Connection,
    pub settings: &'a Settings,
}

impl Upstream<'_> {
    /// The table, if it can be read as one of this shape.
    ///
    /// # Errors
    /// With a sentence, if it cannot.
    pub fn table(&mut self, shape: &Shape) -> Result<Table> {
        let version: u32 = self.number("SELECT current_setting('server_version_num')")? / 10_000;
        if version < OLDEST {
            return Err(Failure::last(format!(
                "the server is Postgres {version}, and {OLDEST} is the first that is read"
            )));
        }
        let level = self.ask("SELECT current_setting('wal_level')")?;
        if text(&level, 0) != Some("logical") {
            return Err(Failure::last(
                "the server has no logical replication: set wal_level = logical there, and restart it",
            ));
        }
        let (schema, name) = self.settings.table();
        let place = format!("\"{schema}.{name}\"");
        let of_table = format!("n.nspname = {} AND c.relname = {}", literal(schema), literal(name));
        let found = self.ask(&format!(
            "SELECT c.oid, c.relkind, c.relreplident FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {of_table}"
        ))?;
        let (Some(id), Some(kind)) = (number(&found), text(&found, 1)) else {
            return Err(Failure::last(format!("the database has no table {place}")));
        };
        if !["r", "p"].contains(&kind) {
            return Err(Failure::last(format!("{place} is no table that is replicated")));
        }
        let identity = text(&found, 2).unwrap_or("n").to_owned();
        let is_partitioned = kind == "p";
        let (filter, published) = self.published(version, is_partitioned)?;
        let columns = self.columns(id, shape, published.as_ref())?;
        self.check_identity(id, &identity, shape)?;
        Ok(Table { id, columns, is_partitioned, filter })
    }

    /// What the publication has of the table: a condition on rows, and columns, if it has them.
    fn published(
        &mut self,
        version: u32,
        is_partitioned: bool,
    ) -> Result<(Option<String>, Option<BTreeSet<String>>)> {
        let publication = self.settings.publication();
        let (schema, name) = self.settings.table();
        let root = if version >= 13 { "pubviaroot" } else { "false" };
        let found = self.ask(&format!(
            "SELECT {root} FROM pg_catalog.pg_publication WHERE pubname = {}",
            literal(publication)
        ))?;
        let Some(via_root) = text(&found, 0).map(|root| root == "t") else {
            return Err(Failure::last(format!(
                "the database has no publication \"{publication}\": CREATE PUBLICATION {} FOR TABLE {}",
                identifier(publication),
                qualified(schema, name)
            )));
        };
        if is_partitioned && !via_root {
            return Err(Failure::last(format!(
                "\"{schema}.{name}\" has partitions, and the publication \"{publication}\" tells of these: \
                 ALTER PUBLICATION {} SET (publish_via_partition_root = true)",
                identifier(publication)
            )));
        }
        let (filter, names) = match version {
            ..15 => ("NULL", "NULL"),
            _ => ("rowfilter", "array_to_json(attnames)"),
        };
        let found = self.ask(&format!(
            "SELECT {filter}, {names} FROM pg_catalog.pg_publication_tables \
             WHERE pubname = {} AND schemaname = {} AND tablename = {}",
            literal(publication),
            literal(schema),
            literal(name)
        ))?;
        let Some(row) = found.first() else {
            return Err(Failure::last(format!(
                "the publication \"{publication}\" does not have the table \"{schema}.{name}\": \
                 ALTER PUBLICATION {} ADD TABLE {}",
                identifier(publication),
                qualified(schema, name)
            )));
        };
        let names = row.get(1).and_then(|names| serde_json::from_str(names).ok());
        Ok((row.get(0).map(str::to_owned), names))
    }

    /// The columns of the table here that are there as well.
    fn columns(
        &mut self,
        id: u32,
        shape: &Shape,
        published: Option<&BTreeSet<String>>,
    ) -> Result<Vec<usize>> {
        let found = self.ask(&format!(
            "SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = {id} AND attnum > 0 \
             AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
        ))?;
        let found: Vec<&str> = found.iter().filter_map(|row| row.get(0)).collect();
        let mut columns = Vec::new();
        for (column, field) in shape.schema.fields().iter().enumerate() {
            let name = field.name();
            let is_there = found.contains(&name.as_str());
            if is_there && published.is_none_or(|published| published.contains(name)) {
                columns.push(column);
            } else if !shape.has_default[column] {
                let (schema, table) = self.settings.table();
                let publication = self.settings.publication();
                return Err(Failure::last(match is_there {
                    true => format!(
                        "the publication \"{publication}\" leaves out the column \"{name}\" of \"{schema}.{table}\""
                    ),
                    false => format!(
                        "the table \"{schema}.{table}\" has no column \"{name}\" that is replicated; it has {}",
                        found.join(", ")
                    ),
                }));
            }
        }
        Ok(columns)
    }

    /// Fails if updates and deletions do not tell which row they are of.
    fn check_identity(&mut self, id: u32, identity: &str, shape: &Shape) -> Result<()> {
        if identity == "f" {
            return Ok(());
        }
        let (schema, table) = self.settings.table();
        let (place, written) = (format!("\"{schema}.{table}\""), qualified(schema, table));
        let full = format!("ALTER TABLE {written} REPLICA IDENTITY FULL");
        let which = if identity == "i" { "indisreplident" } else { "indisprimary" };
        let found = self.ask(&format!(
            "SELECT a.attname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a \
             ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) \
             WHERE i.indrelid = {id} AND {which}"
        ))?;
        let found: BTreeSet<&str> = found.iter().filter_map(|row| row.get(0)).collect();
        let names =
            |columns: &BTreeSet<&str>| columns.iter().copied().collect::<Vec<_>>().join(", ");
        if identity == "n" || found.is_empty() {
            return Err(Failure::last(format!(
                "updates and deletions of {place} do not tell which row they are of: give it a primary key there, or {full}"
            )));
        }
        let key: BTreeSet<&str> =
            shape.key.iter().map(|&column| shape.schema.field(column).name().as_str()).collect();
        match key == found {
            true => Ok(()),
            false => Err(Failure::last(format!(
                "{place} tells rows apart by {}, and the table here {}: declare PRIMARY KEY ({}) here, or {full} there",
                names(&found),
                match key.is_empty() {
                    true => "has no primary key".to_owned(),
                    false => format!("by {}", names(&key)),
                },
                names(&found),
            ))),
        }
    }

    /// The slot, if it is there.
    pub fn slot(&mut self) -> Result<Option<Slot>> {
        let found = self.ask(&format!(
            "SELECT active, temporary, confirmed_flush_lsn, coalesce(plugin, '') = 'pgoutput' AND database = current_database(), \
             coalesce(to_jsonb(s) ->> 'wal_status', '') FROM pg_catalog.pg_replication_slots s WHERE slot_name = {}",
            literal(self.settings.slot())
        ))?;
        let is = |column: usize| text(&found, column) == Some("t");
        Ok((!found.is_empty()).then(|| Slot {
            is_active: is(0),
            is_temporary: is(1),
            confirmed: text(&found, 2).and_then(Lsn::read).unwrap_or_default(),
            is_ours: is(3),
            is_lost: text(&found, 4) == Some("lost"),
        }))
    }

    /// The slot, from which the changes after a place are to be read.
    ///
    /// # Errors
    /// If it does not have them any more.
    pub fn slot_with(&mut self, position: Lsn) -> Result<Slot> {
        let (name, slot) = (self.settings.slot(), self.slot()?);
        let again = "drop the table here and create it again, which begins with a new snapshot";
        match slot {
            None => Err(Failure::last(format!(
                "the slot \"{name}\" is gone, and with it the changes after {position}: {again}"
            ))),
            Some(slot) if slot.is_lost => Err(Failure::last(format!(
                "the server has removed the log that the slot \"{name}\" needs, after {position}; raise \
                 max_slot_wal_keep_size there, drop the slot, and {again}"
            ))),
            Some(slot) if !slot.is_ours => Err(Failure::last(format!(
                "the slot \"{name}\" is not one of pgoutput in this database: {again}"
            ))),
            Some(slot) if slot.confirmed > position => Err(Failure::last(format!(
                "the slot \"{name}\" has forgotten what comes before {}, and here everything before {position} was read: another \
                 reader has used it, or this state directory is an older copy; drop the slot, and {again}",
                slot.confirmed
            ))),
            Some(slot) => Ok(slot),
        }
    }

    /// Drops the slot.
    pub fn drop_slot(&mut self) -> Result<()> {
        let name = self.settings.slot();
        let what = format!("cannot drop the slot \"{name}\"");
        let sql = format!("SELECT pg_drop_replication_slot({})", literal(name));
        self.connection.query(&what, &sql).map(drop)
    }

    /// Makes the slot, and begins to read the rows of the table as of then. Returns the place in the log.
    pub fn begin_snapshot(
        &mut self,
        (table, shape): (&Table, &Shape),
        is_temporary: bool,
    ) -> Result<Lsn> {
        let name = self.settings.slot();
        let what = format!("cannot make the slot \"{name}\"");
        let temporary = if is_temporary { "TEMPORARY " } else { "" };
        self.connection.query(&what, "BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ")?;
        let made = self.connection.query(
            &what,
            &format!(
                "CREATE_REPLICATION_SLOT {} {temporary}LOGICAL pgoutput USE_SNAPSHOT",
                identifier(name)
            ),
        )?;
        let start = text(&made, 1).and_then(Lsn::read);
        let start = start.ok_or_else(|| Failure::last(format!("{what}: it has no place")))?;
        let names =
            table.columns.iter().map(|&column| identifier(shape.schema.field(column).name()));
        let names = names.collect::<Vec<_>>().join(", ");
        let (schema, relation) = self.settings.table();
        let filter = table.filter.as_ref().map(|filter| format!(" WHERE {filter}"));
        // Tables that inherit from it are replicated as tables of their own.
        let own = if table.is_partitioned { "" } else { "ONLY " };
        let sql = format!(
            "COPY (SELECT {names} FROM {own}{}{}) TO STDOUT",
            qualified(schema, relation),
            filter.unwrap_or_default()
        );
        let what = format!("cannot read the table \"{schema}.{relation}\"");
        self.connection.begin_copy(&what, &sql)?;
        Ok(start)
    }

    /// Begins to follow the slot, after a place in the log.
    pub fn follow(&mut self, from: Lsn) -> Result<()> {
        let (slot, publication) = (self.settings.slot(), self.settings.publication());
        let publications = literal(&identifier(publication));
        let what = format!("cannot follow the slot \"{slot}\"");
        let command = format!(
            "START_REPLICATION SLOT {} LOGICAL {from} (proto_version '1', publication_names {publications})",
            identifier(slot)
        );
        self.connection.begin_replication(&what, &command)
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<Row>> {
        let what = format!("cannot look at {}", self.settings.place());
        self.connection.query(&what, sql)
    }

    fn number(&mut self, sql: &str) -> Result<u32> {
        let found = self.ask(sql)?;
        number(&found).ok_or_else(|| Failure::last("the server is none of Postgres"))
    }
}

/// A slot that is to be made is there.
pub fn is_taken(settings: &Settings) -> Error {
    let slot = settings.slot();
    Error::source(format!(
        "the server has a slot \"{slot}\" already, which another reader may need: name another slot, or drop it, \
         SELECT pg_drop_replication_slot('{slot}')"
    ))
}

/// The number that the first row begins with.
fn number(rows: &[Row]) -> Option<u32> {
    text(rows, 0)?.parse().ok()
}

/// A column of the first row.
pub fn text(rows: &[Row], column: usize) -> Option<&str> {
    rows.first()?.get(column)
}

/// A name as SQL has it.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The name of a relation as SQL has it.
pub fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", identifier(schema), identifier(name))
}

/// A text as SQL has it.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
