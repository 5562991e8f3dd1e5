//! Writing a table, exactly once.

use std::sync::Arc;

use alluvium::{Error, Live};
use arrow::array::{Array as _, ArrayRef, AsArray as _, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::connection::{Connection, Row};
use super::failure::{Failure, Result};
use super::settings::Settings;
use super::spelling::arrays;
use super::upstream::{identifier, literal, qualified, text};
use crate::CsvText;

/// The table with the marks of all writers, in the schema of the tables that they write.
const PROGRESS: &str = "alluvium_progress";

/// The temporary table with the changes of a transaction, and its columns beside those of the view.
const CHANGES: &str = "alluvium_changes";
const EPOCH: &str = "alluvium_epoch";
const WEIGHT: &str = "alluvium_weight";

/// What a table has of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of the writer among those of its id: with the last number alone one can write.
    number: i64,
    /// The last epoch that the table has; none if it has none of a writer of this id.
    pub last: Option<u64>,
}

/// Makes the changes of epochs in a table, all of them in one transaction with a row that names the last one.
///
/// A row is found by the table's primary key. Whoever reads the table sees all of an epoch or nothing.
pub struct Writer {
    connection: Connection,
    settings: Settings,
    id: String,
    mark: Mark,
    /// For each column of the view whether the table has an array there.
    arrays: Vec<bool>,
    /// The statements that make the changes which were copied.
    apply: String,
}

impl Writer {
    /// Finds out which epoch was the last. Goes on as the writer that had this mark, over a connection instead of its own; without one,
    /// replaces the writer of this id, which cannot write from then on.
    ///
    /// # Errors
    /// If the table cannot be written, if another writer has replaced the one of the mark, or if the table has forgotten what it had.
    pub fn open(
        settings: &Settings,
        (id, schema): (&str, &SchemaRef),
        before: Option<Mark>,
        live: &Live,
    ) -> Result<Self> {
        let mut connection = Connection::open(settings, false, Some(live))?;
        let target = Target::find(&mut connection, settings, schema)?;
        let (progress, what) = (progress(settings), format!("cannot write {}", settings.place()));
        let found = connection
            .query(&what, &format!("SELECT to_regclass({}) IS NOT NULL", literal(&progress)))?;
        if text(&found, 0) != Some("t") {
            let make = format!(
                "CREATE TABLE IF NOT EXISTS {progress} (output text PRIMARY KEY, writer bigint NOT NULL, epoch numeric)"
            );
            let what = format!("cannot make the table {progress}, which has the marks of writers");
            // Another writer may make it at the same time.
            connection.query(&what, &make).map_err(|failure| match failure {
                Failure::Final(error) if error.to_string().contains("23505") => {
                    Failure::Passing(error.to_string())
                }
                failure => failure,
            })?;
        }
        connection.query(&what, &target.stage())?;
        // Both wait for a transaction of the writer before, which may be this one over a connection that was lost.
        let take = match before {
            Some(Mark { number, .. }) => format!(
                "UPDATE {progress} AS p SET writer = p.writer WHERE output = {} AND writer = {number}",
                literal(id)
            ),
            None => format!(
                "INSERT INTO {progress} AS p (output, writer) VALUES ({}, 1) \
                 ON CONFLICT (output) DO UPDATE SET writer = p.writer + 1",
                literal(id)
            ),
        };
        let taken = connection.query(&what, &format!("{take} RETURNING writer, epoch"))?;
        if taken.is_empty() {
            return Err(replaced(&what));
        }
        let mark = Mark::read(&taken)
            .ok_or_else(|| Failure::last(format!("the mark of {id} in {progress} is none")))?;
        mark.check_since(before, &what)?;
        Ok(Self {
            connection,
            settings: settings.clone(),
            id: id.to_owned(),
            mark,
            apply: target.apply(),
            arrays: target.arrays,
        })
    }

    /// What the table has of this writer.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Ends to wait when this is over, from now on.
    pub fn set_live(&mut self, live: Live) {
        self.connection.set_live(live);
    }

    /// Makes the changes of epochs, of which `epoch` is the last.
    ///
    /// # Errors
    /// If another writer has taken over, the server refuses a row, or the connection is lost: then the table has all of the
    /// changes or none, and a writer that is opened again says which.
    pub fn commit(&mut self, epoch: u64, changes: &[(u64, RecordBatch, Vec<i64>)]) -> Result<()> {
        let what = format!("cannot write {}", self.settings.place());
        let progress = progress(&self.settings);
        let data = self.data(changes)?;
        let mark = format!(
            "BEGIN; UPDATE {progress} SET epoch = {epoch} WHERE output = {} AND writer = {} RETURNING 1",
            literal(&self.id),
            self.mark.number
        );
        if self.connection.query(&what, &mark)?.is_empty() {
            return Err(replaced(&what));
        }
        if !data.is_empty() {
            let copy = format!("COPY {CHANGES} FROM STDIN (FORMAT csv)");
            self.connection.copy_in(&what, &copy, &data)?;
            self.connection.query(&what, &self.apply)?;
        }
        self.connection.query(&what, "COMMIT")?;
        self.mark.last = Some(epoch);
        Ok(())
    }

    /// The rows of changes as CSV.
    fn data(&self, changes: &[(u64, RecordBatch, Vec<i64>)]) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        for (epoch, rows, weights) in changes {
            if weights.iter().any(|weight| weight.abs() > 1) {
                return Err(Failure::last(
                    "the view has several copies of a row, and a table has one row of each key: give the view a key, as by GROUP BY",
                ));
            }
            let rows = self.with_weights(*epoch, rows, weights);
            let rows = rows.map_err(|error| Failure::Final(Error::from(error)))?;
            CsvText::with_null("").write_rows(&rows, &mut data)?;
        }
        Ok(data)
    }

    fn with_weights(
        &self,
        epoch: u64,
        rows: &RecordBatch,
        weights: &[i64],
    ) -> std::result::Result<RecordBatch, ArrowError> {
        let schema = rows.schema();
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for ((field, column), is_array) in
            schema.fields().iter().zip(rows.columns()).zip(&self.arrays)
        {
            let column: ArrayRef = match is_array {
                true => Arc::new(arrays(column.as_list())?),
                false => column.clone(),
            };
            fields.push(Field::new(field.name(), column.data_type().clone(), true));
            columns.push(column);
        }
        let epochs =
            Int64Array::from(vec![i64::try_from(epoch).unwrap_or(i64::MAX); weights.len()]);
        let weights = Int64Array::from(weights.to_vec());
        for (name, column) in [(EPOCH, epochs), (WEIGHT, weights)] {
            fields.push(Field::new(name, DataType::Int64, true));
            columns.push(Arc::new(column));
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }
}

impl Mark {
    /// The mark in a row of a writer's number and epoch.
    fn read(found: &[Row]) -> Option<Self> {
        let last = text(found, 1).map(str::parse).transpose();
        Some(Self { number: text(found, 0)?.parse().ok()?, last: last.ok()? })
    }

    /// Fails if the table had more when it had the mark before: what was written since is gone, and nobody writes it again.
    fn check_since(self, before: Option<Self>, what: &str) -> Result<()> {
        let shown = |mark: Self| mark.last.map_or("none".to_owned(), |last| last.to_string());
        match before {
            Some(before) if self.last < before.last => Err(Failure::last(format!(
                "{what}: the database was set back, as by a backup or a standby that lacked commits: its last epoch is {}, and {} was \
                 written; drop the output and create it again",
                shown(self),
                shown(before)
            ))),
            _ => Ok(()),
        }
    }
}

/// Another writer has taken over.
fn replaced(what: &str) -> Failure {
    Failure::last(format!(
        "{what}: another writer of the same name has taken over, and this one must not write any more"
    ))
}

/// The table that is written.
struct Target {
    table: String,
    columns: Vec<String>,
    key: Vec<String>,
    arrays: Vec<bool>,
}

impl Target {
    /// The table that the settings name, if it can have the rows of a view with these columns.
    fn find(connection: &mut Connection, settings: &Settings, view: &SchemaRef) -> Result<Self> {
        let (schema, name) = settings.table();
        let (place, table) = (format!("\"{schema}.{name}\""), qualified(schema, name));
        let what = format!("cannot look at {}", settings.place());
        let found = connection.query(
            &what,
            &format!(
                "SELECT a.attname, t.typcategory = 'A', coalesce(a.attnum = ANY (i.indkey), false) \
                 FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
                 LEFT JOIN pg_catalog.pg_index i ON i.indrelid = a.attrelid AND i.indisprimary \
                 WHERE a.attrelid = to_regclass({}) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
                literal(&table)
            ),
        )?;
        if found.is_empty() {
            return Err(Failure::last(format!("the database has no table {place}")));
        }
        let (mut columns, mut arrays) = (Vec::new(), Vec::new());
        for field in view.fields() {
            let there = found.iter().find(|row| row.get(0) == Some(field.name()));
            let there = there.ok_or_else(|| {
                let names = found.iter().filter_map(|row| row.get(0));
                let names = names.collect::<Vec<_>>().join(", ");
                Failure::last(format!(
                    "the table {place} has no column \"{}\", as the view does; it has {names}",
                    field.name()
                ))
            })?;
            columns.push(field.name().clone());
            let is_list = matches!(field.data_type(), DataType::List(_));
            arrays.push(is_list && there.get(1) == Some("t"));
        }
        let of_key = found.iter().filter(|row| row.get(2) == Some("t"));
        let key: Vec<String> = of_key.filter_map(|row| row.get(0).map(str::to_owned)).collect();
        if key.is_empty() {
            return Err(Failure::last(format!(
                "the table {place} has no primary key, by which rows are replaced and deleted"
            )));
        }
        match key.iter().find(|name| !columns.contains(name)) {
            Some(name) => Err(Failure::last(format!(
                "the view has no column \"{name}\", which the primary key of {place} has"
            ))),
            None => Ok(Self { table, columns, key, arrays }),
        }
    }

    /// The statement that makes the temporary table of changes.
    fn stage(&self) -> String {
        format!(
            "CREATE TEMPORARY TABLE {CHANGES} ON COMMIT DELETE ROWS AS SELECT {}, 0::bigint AS {EPOCH}, 0::bigint AS {WEIGHT} \
             FROM {} WITH NO DATA",
            names(&self.columns, ""),
            self.table
        )
    }

    /// The statements that make its changes: of each key those of the last epoch count.
    fn apply(&self) -> String {
        let Self { table, columns, key, .. } = self;
        let keys = names(key, "");
        let same = |one: &str, other: &str| {
            let same = key.iter().map(|name| {
                let name = identifier(name);
                format!("{one}.{name} = {other}.{name}")
            });
            same.collect::<Vec<_>>().join(" AND ")
        };
        let last = format!("SELECT {keys}, max({EPOCH}) AS {EPOCH} FROM {CHANGES} GROUP BY {keys}");
        let others: Vec<String> = columns
            .iter()
            .filter(|name| !key.contains(name))
            .map(|name| format!("{0} = excluded.{0}", identifier(name)))
            .collect();
        let replace = match others.is_empty() {
            true => "NOTHING".to_owned(),
            false => format!("UPDATE SET {}", others.join(", ")),
        };
        format!(
            "DELETE FROM {table} AS t USING ({last}) AS l WHERE {} AND NOT EXISTS (\
             SELECT FROM {CHANGES} AS c WHERE {} AND c.{EPOCH} = l.{EPOCH} AND c.{WEIGHT} > 0); \
             INSERT INTO {table} ({}) SELECT {} FROM {CHANGES} AS c JOIN ({last}) AS l \
             ON {} AND c.{EPOCH} = l.{EPOCH} WHERE c.{WEIGHT} > 0 ON CONFLICT ({keys}) DO {replace}",
            same("t", "l"),
            same("c", "l"),
            names(columns, ""),
            names(columns, "c."),
            same("c", "l"),
        )
    }
}

fn names(columns: &[String], of: &str) -> String {
    let names = columns.iter().map(|name| format!("{of}{}", identifier(name)));
    names.collect::<Vec<_>>().join(", ")
}

fn progress(settings: &Settings) -> String {
    qualified(settings.table().0, PROGRESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_has_less_than_before_is_told() {
        let mark = |epoch: Option<&str>| {
            Mark::read(&[Row::from(vec![Some("3".to_owned()), epoch.map(str::to_owned)])])
        };
        let (none, four, five) = (mark(None), mark(Some("4")), mark(Some("5")));
        assert_eq!(five, Some(Mark { number: 3, last: Some(5) }));
        assert_eq!(mark(Some("five")), None);
        assert_eq!(Mark::read(&[]), None);
        for (now, before, is_good) in [
            (none, None, true),
            (none, none, true),
            (none, four, false),
            (four, five, false),
            (five, four, true),
            (five, five, true),
        ] {
            let checked = now.unwrap().check_since(before, "cannot write t");
            assert_eq!(checked.is_ok(), is_good, "{checked:?}");
        }
    }
}
