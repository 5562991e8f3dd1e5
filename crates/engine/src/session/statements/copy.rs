//! COPY … FROM, COPY … TO, and CREATE TABLE … FROM, of files, and COPY … FROM STDIN, of rows that a client sends.

use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

use alluvium_sql::error::Position;
use alluvium_sql::statement::{IfTaken, Setting, Statement, StatementKind, TableDefinition};
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use datafusion::sql::sqlparser::ast;

use crate::catalog::Entry;
use crate::connectors::{self, Asked, FormatOption};
use crate::definitions::taken;
use crate::error::{Error, Result, SqlState};
use crate::file_access::Purpose;
use crate::interrupt;
use crate::query::Execution;
use crate::session::{Outcome, Session};
use crate::sink::{SinkRequest, Visibility};
use crate::source::{Portion, Refusal, Refusing, Source, SourceRequest};
use crate::writer::column_names;

/// The origin of rows that a client sends.
const CLIENT: &str = "client";

/// How many refused rows an outcome lists.
const REPORTED: usize = 10;

/// A file to be read.
struct Origin {
    path: PathBuf,
    source: Arc<dyn Source>,
    options: Vec<FormatOption>,
    /// Whether a row that cannot be read ends the statement.
    fails: bool,
}

impl Session {
    /// The table, and those of its columns, that `COPY … FROM STDIN` copies into.
    pub(in crate::session) fn copied_into(
        &self,
        statement: &Statement,
    ) -> Result<(Arc<Entry>, Vec<usize>)> {
        let StatementKind::Copy { table, columns, .. } = &statement.kind else {
            return Err(Error::sql("COPY … FROM STDIN is expected here"));
        };
        let entry = self.relation(table)?;
        entry.as_table()?;
        let columns = columns_of(&entry, columns)?;
        Ok((entry, columns))
    }

    /// Copies the rows that `next` gives until there are no more, and returns how many they were.
    pub(in crate::session) fn copy_sent(
        &mut self,
        statement: &Statement,
        next: &mut dyn FnMut() -> Result<Option<RecordBatch>>,
    ) -> Result<u64> {
        let (entry, columns) = self.copied_into(statement)?;
        let (read, _) = self.in_one_transaction(|session| {
            let portion = || Ok(next()?.map(Portion::new));
            session.stage_portions(&entry, &columns, CLIENT, portion)
        })?;
        Ok(read.rows)
    }

    /// Reads all of a file into some columns of a table, or all if none is named, in one transaction.
    pub(in crate::session) fn copy(
        &mut self,
        table: &str,
        columns: &[(String, Position)],
        path: &str,
        options: &[Setting],
    ) -> Result<Outcome> {
        let entry = self.catalog_entries().get(table).cloned();
        let entry = entry.ok_or_else(|| {
            Error::sql(format!("there is no table \"{table}\""))
                .with_sqlstate(SqlState::NO_RELATION)
        })?;
        entry.as_table()?;
        let columns = columns_of(&entry, columns)?;
        let origin = self.origin(path, options)?;
        let (read, epoch) =
            self.in_one_transaction(|session| session.read_into(&entry, &columns, &origin))?;
        Ok(read.outcome(epoch))
    }

    /// Creates a table of the columns that a file has, and reads the file into it.
    pub(in crate::session) fn create_table_from(
        &mut self,
        name: &str,
        position: Position,
        path: &str,
        options: &[Setting],
    ) -> Result<Outcome> {
        if let Some(epoch) = self.is_committed()? {
            return Ok(Read::default().outcome(Some(epoch)));
        }
        let free = taken(&self.catalog_entries(), name, IfTaken::Fail, Entry::is_table);
        free.map_err(|error| error.at(position))?;
        let mut origin = self.origin(path, options)?;
        let Origin { path, source, options, .. } = &origin;
        let inferred = self.instance().connectors.formats.infer(
            &**source,
            (slice::from_ref(path), &self.base),
            options,
        )?;
        let definition = TableDefinition::with_columns(name, position, &inferred.schema)?;
        origin.options = inferred.options;
        let (read, epoch) = self.create_with_rows(&definition, |session, created| {
            let columns: Vec<usize> = (0..created.schema.fields().len()).collect();
            session.read_into(created, &columns, &origin)
        })?;
        Ok(read.outcome(epoch))
    }

    /// Writes the result of a query to a file.
    pub(in crate::session) fn copy_to(
        &mut self,
        statement: &Statement,
        query: &ast::Query,
        path: &str,
        options: &[Setting],
    ) -> Result<Outcome> {
        let Asked { format, others, .. } = Asked::of(options)?;
        let path = self.file(path, Purpose::Write)?;
        let sink = self
            .instance()
            .connectors
            .formats
            .sink(format.map(|format| format.value.as_str()), &path)
            .map_err(|error| at(error, format))?;
        let options = connectors::checked(&others, |name, value| sink.check(name, value))?;
        let answer = self.answer(Execution { statement, values: &[], own: None }, query)?;
        let (visibility, schema) = (Visibility::WhenFinished, answer.schema().clone());
        let request = SinkRequest { path, options, schema, visibility, start: None };
        let mut writer = self.instance().connectors.formats.create(&*sink, &request)?;
        let mut rows = 0;
        for batch in answer {
            interrupt::check()?;
            let batch = batch?;
            writer.write(&batch)?;
            rows += batch.num_rows() as u64;
        }
        writer.finish()?;
        Ok(Outcome::Copied { rows, refused: 0, messages: Vec::new(), epoch: None })
    }

    fn origin(&self, path: &str, options: &[Setting]) -> Result<Origin> {
        let Asked { format, ignores_errors, others } = Asked::of(options)?;
        let path = self.file(path, Purpose::Read)?;
        let source = self
            .instance()
            .connectors
            .formats
            .source(format.map(|format| format.value.as_str()), &path)
            .map_err(|error| at(error, format))?;
        let options = connectors::checked(&others, |name, value| source.check(name, value))?;
        let fails = ignores_errors == Some(false);
        Ok(Origin { path, source, options, fails })
    }

    /// Inserts the rows of a file into columns of a table, within the open transaction.
    fn read_into(&mut self, entry: &Entry, columns: &[usize], origin: &Origin) -> Result<Read> {
        let instance = self.instance();
        let transaction = self.transaction.as_ref();
        let time = transaction.map_or_else(|| instance.writer.now(), |open| Ok(open.time()))?;
        let defaults = instance.writer.defaults(entry, time);
        let exist = defaults.exist()?;
        let request = SourceRequest {
            path: origin.path.clone(),
            base: self.base.clone(),
            options: origin.options.clone(),
            schema: Arc::new(entry.schema.project(columns)?),
            has_default: columns.iter().map(|&column| exist[column]).collect(),
            batch_rows: instance.settings.batch_rows,
            batch_bytes: instance.settings.batch_bytes,
            threads: instance.settings.workers,
            live: None,
            start: None,
        };
        let mut reader = instance.connectors.formats.open(&*origin.source, &request)?;
        self.stage_portions(entry, columns, origin.source.name(), || {
            let portion = reader.next()?;
            match portion.as_ref().and_then(|portion| portion.refused.first()) {
                Some(refusal) if origin.fails => Err(Error::source(refusal.to_string())),
                _ => Ok(portion),
            }
        })
    }

    /// Inserts the rows that `next` gives into columns of a table, within the open transaction.
    fn stage_portions(
        &mut self,
        entry: &Entry,
        columns: &[usize],
        origin: &str,
        mut next: impl FnMut() -> Result<Option<Portion>>,
    ) -> Result<Read> {
        let instance = self.instance();
        let Some(transaction) = self.transaction.as_ref() else { return Ok(Read::default()) };
        let defaults = instance.writer.defaults(entry, transaction.time());
        let exist = defaults.exist()?;
        let mut staging = transaction.begin_staging(entry)?;
        let mut refusing = Refusing::new(instance.context.budget());
        while let Some(portion) = next()? {
            interrupt::check()?;
            check_left_out(entry, columns, &exist)?;
            let Portion { rows, absent, .. } = &portion;
            staging.insert(&defaults.complete(&column_names(rows), rows, absent)?)?;
            refusing.extend(portion.refused);
        }
        let refused = refusing.len();
        let messages = refusing.kept().iter().take(REPORTED).cloned().collect();
        transaction.check_refused(refusing.kept())?;
        transaction.lock_rows(&staging, self.settings.lock_timeout())?;
        transaction.check_new_keys(&staging)?;
        let rows = self.finish_staging(staging)?;
        // Others do not see what a temporary table has refused.
        if let Some(transaction) = &mut self.transaction
            && entry.temporary().is_none()
        {
            transaction.refuse(&entry.name, origin, refusing);
        }
        Ok(Read { rows, refused, messages })
    }
}

/// The counts of rows read from a file.
#[derive(Default)]
struct Read {
    rows: u64,
    refused: u64,
    /// The first that were refused.
    messages: Vec<Refusal>,
}

impl Read {
    fn outcome(self, epoch: Option<Epoch>) -> Outcome {
        let Self { rows, refused, messages } = self;
        Outcome::Copied { rows, refused, messages, epoch }
    }
}

fn at(error: Error, setting: Option<&Setting>) -> Error {
    match setting {
        Some(setting) => error.at(setting.position),
        None => error,
    }
}

/// The columns of a table that are named, each once; all if none is. Those left out take a default.
fn columns_of(entry: &Entry, named: &[(String, Position)]) -> Result<Vec<usize>> {
    let fields = entry.schema.fields();
    if named.is_empty() {
        return Ok((0..fields.len()).collect());
    }
    let mut columns = Vec::with_capacity(named.len());
    for (name, position) in named {
        let column = fields.iter().position(|field| field.name() == name).ok_or_else(|| {
            Error::sql(format!("no column \"{name}\" in \"{}\"", entry.name)).at(*position)
        })?;
        if columns.contains(&column) {
            return Err(Error::sql(format!("column \"{name}\" appears twice")).at(*position));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Fails if a column that is NOT NULL and has no DEFAULT is not among those that are copied.
fn check_left_out(entry: &Entry, columns: &[usize], has_default: &[bool]) -> Result<()> {
    for (column, field) in entry.schema.fields().iter().enumerate() {
        if !columns.contains(&column) && !field.is_nullable() && !has_default[column] {
            let message = format!(
                "column \"{}\" is NOT NULL and is not among the columns that are copied",
                field.name()
            );
            return Err(Error::data(message).with_sqlstate(SqlState::NOT_NULL));
        }
    }
    Ok(())
}

/// The error of a COPY whose rows a client would send or take, where there is none.
pub(super) fn without_client(end: &str) -> Error {
    Error::sql(format!(
        "COPY … {end} is for clients of a server, which send and take its rows: name a file here"
    ))
    .with_sqlstate(SqlState::NOT_SUPPORTED)
}
