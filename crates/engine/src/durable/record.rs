//! Records of the journal.

use std::path::Path;

use alluvium_sql::name;
use arrow::datatypes::Schema;
use arrow::ipc::writer::StreamWriter;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Serialize};

use super::archive;
use super::portion::{InputName, ReadPortion, SavedPosition};
use super::refused::RefusedRows;
use super::versions::{record_2, record_3, record_4};
use crate::catalog::RelationKind;
use crate::changes::TableChange;
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::roles::is_of_roles;
use crate::sink::OutputMode;

/// How many bytes of rows a record has, give or take a part of a change.
const RECORD_BYTES: usize = 1 << 20;

/// The most rows of a change that are encoded at a time.
const PART_ROWS: usize = 8192;

/// The version of the records' format, which every record ends with.
pub(crate) const VERSION: u8 = 5;

/// The number of all transactions in records of versions before 4: there, the parts of one come right before its epoch.
pub(crate) const UNNUMBERED: u64 = 0;

/// An action of an engine, as its journal holds it: enough to replay it.
///
/// The bytes of a record are an rkyv archive, which is validated before it is read, and its version.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// A statement that created or dropped a relation.
    Definition {
        /// Its text.
        sql: String,
        /// The directory that relative paths in it are counted from.
        base: String,
        /// The time of the clock.
        now: Moment,
    },
    /// A table of the columns of a file, without keys, defaults or options.
    Table {
        /// Its name.
        name: String,
        /// Its columns, as an Arrow stream without rows.
        columns: Vec<u8>,
    },
    /// The clock began to be a relation, in an epoch of its own.
    Clock {
        /// The time of the clock.
        now: Moment,
    },
    /// Changes of a transaction that is too large for one record. The record of its epoch follows, unless the transaction fails;
    /// records of others may come in between.
    Part {
        /// The number of the transaction, which no other one with parts has in this journal, or [`UNNUMBERED`].
        transaction: u64,
        /// How many parts of the transaction come before this one.
        number: u32,
        /// Its changes.
        changes: Vec<ChangedTable>,
    },
    /// An epoch: the changes of the parts before it and these.
    Epoch {
        /// Its number.
        number: u64,
        /// Its time.
        time: Moment,
        /// The number of the transaction in its parts, if it has some.
        transaction: u64,
        /// How many parts it has.
        parts: u32,
        /// Its other changes.
        changes: Vec<ChangedTable>,
        /// The key of its transaction.
        key: Option<String>,
        /// The rows that sources refused to bring into its tables.
        refused: Vec<RefusedRows>,
        /// The input that its changes come from, and where it has come to with them, if it can go on from there.
        end: Option<(InputName, SavedPosition)>,
    },
    /// An epoch that a portion of an input makes.
    Read {
        /// Its number.
        number: u64,
        /// Its time.
        time: Moment,
        /// The portion.
        portion: ReadPortion,
    },
    /// A relation is written to a file from here on.
    Output {
        /// The name of the relation.
        relation: String,
        /// The path of the file.
        path: String,
        /// The name of the format, if it is not that of the path.
        format: Option<String>,
        /// The options of the format.
        options: Vec<(String, String)>,
        /// Whether each change is written, or else the contents.
        changes: bool,
    },
    /// As `Table`, of one that is created with its first rows: it is complete with an epoch, and without that not there.
    Incomplete {
        /// Its name.
        name: String,
        /// Its columns, as an Arrow stream without rows.
        columns: Vec<u8>,
    },
    /// An epoch with which a table is complete.
    Completing {
        /// The name of the table.
        table: String,
        /// The record of the epoch.
        epoch: Vec<u8>,
    },
    /// The dataflow of a relation has failed, and the relation is left out from here on.
    Failed {
        /// The name of the relation.
        relation: String,
        /// Why.
        reason: String,
    },
    /// A relation that had failed is there again.
    Resumed {
        /// Its name.
        relation: String,
    },
    /// A sequence has come so far, or will have: values up to this one may have been taken.
    Sequence {
        /// Its name.
        name: String,
        /// Its last value.
        value: SequenceValue,
    },
    /// A transaction that defines relations: all of it, or none.
    Transaction {
        /// The records of its definitions, which come before its epoch, in their order.
        definitions: Vec<Vec<u8>>,
        /// The record of its epoch, if it makes one.
        epoch: Option<Vec<u8>>,
    },
}

/// Where a sequence is.
#[derive(Archive, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SequenceValue {
    /// The last value.
    pub(crate) last: i64,
    /// Whether it has been taken; if not, it is the next one.
    pub(crate) is_called: bool,
}

/// A change of one table.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedTable {
    /// The name of the table.
    pub(crate) table: String,
    /// How rows are weighted, as [`TableChange::encode`] says.
    pub(crate) weights: u8,
    /// The rows, as an Arrow stream.
    pub(crate) rows: Vec<u8>,
}

/// A definition, as it is recorded.
pub(crate) struct Recorded {
    /// The name of the relation.
    pub(crate) name: String,
    /// The name that it had before, if it is another one.
    pub(crate) before: Option<String>,
    /// The statement.
    pub(crate) definition: Record,
    /// The whole definition of the relation, for checkpoints.
    pub(crate) whole: Record,
    /// Whether this definition adds to earlier ones instead of replacing them.
    pub(crate) adds: bool,
}

impl Recorded {
    /// A statement that is the whole definition, and after which nothing can fail.
    pub(crate) fn new(name: String, statement: Record) -> Self {
        let whole = statement.clone();
        Self { name, before: None, definition: statement, whole, adds: false }
    }
}

impl Record {
    /// A statement that creates a relation.
    pub(crate) fn definition(sql: &str, base: &Path, now: Moment) -> Result<Self> {
        Ok(Self::Definition { sql: sql.to_owned(), base: text_of(base)?, now })
    }

    /// A statement that drops a relation.
    pub(crate) fn dropped(kind: RelationKind, name: &str, cascade: bool) -> Self {
        let kind = if kind == RelationKind::Table { "TABLE" } else { "VIEW" };
        let name = name::written(name);
        let cascade = if cascade { " CASCADE" } else { "" };
        Self::without_base(format!("DROP {kind} {name}{cascade}"))
    }

    /// A statement that drops an index.
    pub(crate) fn dropped_index(name: &str) -> Self {
        Self::without_base(format!("DROP INDEX {}", name::written(name)))
    }

    /// A statement that creates a schema.
    pub(crate) fn schema(name: &str) -> Self {
        Self::without_base(format!("CREATE SCHEMA {}", name::spelled(name)))
    }

    /// A statement that drops a schema, with its contents.
    pub(crate) fn dropped_schema(name: &str) -> Self {
        Self::without_base(format!("DROP SCHEMA {} CASCADE", name::spelled(name)))
    }

    /// The name by which a checkpoint has the definition of a schema, which no relation has.
    pub(crate) fn name_of_schema(name: &str) -> String {
        format!("{}.", name::spelled(name))
    }

    /// A statement that creates a sequence.
    pub(crate) fn sequence(text: &str) -> Self {
        Self::without_base(text.to_owned())
    }

    /// A statement that drops a sequence.
    pub(crate) fn dropped_sequence(name: &str) -> Self {
        Self::without_base(format!("DROP SEQUENCE {}", name::written(name)))
    }

    /// A comment on a relation.
    pub(crate) fn comment(text: String) -> Self {
        Self::without_base(text)
    }

    /// A statement about the source of a table.
    pub(crate) fn of_source(text: String) -> Self {
        Self::without_base(text)
    }

    /// Statements about roles.
    pub(crate) fn role(text: String) -> Self {
        Self::without_base(text)
    }

    /// Whether it is about roles and their rights.
    pub(crate) fn is_of_roles(&self) -> bool {
        let Self::Definition { sql, .. } = self else { return false };
        let statement = alluvium_sql::statement::parse(sql).next();
        statement.is_some_and(|read| read.is_ok_and(|statement| is_of_roles(&statement.kind)))
    }

    /// The bytes of a record without what is about roles, if some of it is.
    pub(crate) fn without_roles(bytes: &[u8]) -> std::result::Result<Option<AlignedVec>, String> {
        let (definitions, epoch) = match Self::decode(bytes)? {
            Self::Transaction { definitions, epoch } => {
                let count = definitions.len();
                let mut kept = Vec::with_capacity(count);
                for definition in definitions {
                    if !Self::decode(&definition)?.is_of_roles() {
                        kept.push(definition);
                    }
                }
                if kept.len() == count {
                    return Ok(None);
                }
                (kept, epoch)
            }
            record if record.is_of_roles() => (Vec::new(), None),
            _ => return Ok(None),
        };
        let rest = Self::Transaction { definitions, epoch };
        rest.encode().map(Some).map_err(|error| error.to_string())
    }

    /// A statement that creates a function.
    pub(crate) fn function(text: &str) -> Self {
        Self::without_base(text.to_owned())
    }

    /// A statement that drops a function.
    pub(crate) fn dropped_function(name: &str) -> Self {
        Self::without_base(format!("DROP FUNCTION {}", name::spelled(name)))
    }

    /// The name by which a checkpoint has the definition of a function, which no relation has.
    pub(crate) fn name_of_function(name: &str) -> String {
        format!("{}.()", name::spelled(name))
    }

    /// The name by which a checkpoint has the definition of a secret, which no relation has.
    pub(crate) fn name_of_secret(name: &str) -> String {
        format!("{}.(secret)", name::spelled(name))
    }

    /// The name by which a checkpoint has the definition of a connection, which no relation has.
    pub(crate) fn name_of_connection(name: &str) -> String {
        format!("{}.(connection)", name::spelled(name))
    }

    /// The name by which a checkpoint has the definition of a sink, which no relation has.
    pub(crate) fn name_of_sink(name: &str) -> String {
        format!("{}.(sink)", name::spelled(name))
    }

    /// A statement about what connectors name.
    pub(crate) fn of_systems(text: String) -> Self {
        Self::without_base(text)
    }

    fn without_base(sql: String) -> Self {
        Self::Definition { sql, base: String::new(), now: 0 }
    }

    /// An output of a relation.
    pub(crate) fn output(
        relation: &str,
        path: &Path,
        format: Option<&str>,
        options: &[(String, String)],
        mode: OutputMode,
    ) -> Result<Self> {
        let (relation, format) = (relation.to_owned(), format.map(str::to_owned));
        let (path, options) = (text_of(path)?, options.to_vec());
        Ok(Self::Output { relation, path, format, options, changes: mode == OutputMode::Changes })
    }

    /// A table of these columns.
    pub(crate) fn table(name: &str, columns: &Schema) -> Result<Self> {
        let mut table = Self::incomplete(name, columns)?;
        table.complete();
        Ok(table)
    }

    /// A table of these columns, whose first rows come later.
    pub(crate) fn incomplete(name: &str, columns: &Schema) -> Result<Self> {
        let stream = StreamWriter::try_new(Vec::new(), columns)?;
        Ok(Self::Incomplete { name: name.to_owned(), columns: stream.into_inner()? })
    }

    /// The first rows of an incomplete table have come.
    pub(crate) fn complete(&mut self) {
        if let Self::Incomplete { name, columns } = self {
            *self = Self::Table { name: std::mem::take(name), columns: std::mem::take(columns) };
        }
    }

    /// The same epoch, with which a table is complete.
    pub(crate) fn completing(&self, table: &str) -> Result<Self> {
        Ok(Self::Completing { table: table.to_owned(), epoch: self.encode()?.to_vec() })
    }

    /// Definitions, with the epoch of their transaction if it makes one.
    pub(crate) fn transaction(definitions: &[Self], epoch: Option<&Self>) -> Result<Self> {
        let bytes = |record: &Self| record.encode().map(|bytes| bytes.to_vec());
        let definitions = definitions.iter().map(bytes).collect::<Result<_>>()?;
        Ok(Self::Transaction { definitions, epoch: epoch.map(bytes).transpose()? })
    }

    /// The number of the epoch that it is, if it is one and has its number.
    pub(crate) fn epoch(&self) -> std::result::Result<Option<u64>, String> {
        match self {
            Self::Epoch { number, .. } | Self::Read { number, .. } => Ok(Some(*number)),
            Self::Completing { epoch, .. } | Self::Transaction { epoch: Some(epoch), .. } => {
                Self::decode(epoch)?.epoch()
            }
            _ => Ok(None),
        }
    }

    /// Its bytes.
    pub(crate) fn encode(&self) -> Result<AlignedVec> {
        archive::encode(self, VERSION).map_err(|error| {
            Error::data(format!("a record of the journal cannot be written: {error}"))
        })
    }

    /// The version of the format of a record, or what is wrong with it.
    pub(crate) fn version(bytes: &[u8]) -> std::result::Result<u8, String> {
        archive::split(bytes).map(|(_, version)| version)
    }

    /// Reads a record of any version, or says what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<Self, String> {
        let (archive, version) = archive::split(bytes)?;
        match version {
            VERSION => archive::decode(archive),
            record_4::VERSION => archive::decode::<record_4::Record>(archive).map(Self::from),
            record_3::VERSION => archive::decode::<record_3::Record>(archive)
                .map(|record| record_4::Record::from(record).into()),
            record_2::VERSION => archive::decode::<record_2::Record>(archive)
                .map(|record| record_4::Record::from(record_3::Record::from(record)).into()),
            other => Err(archive::unknown(other, record_2::VERSION..=VERSION)),
        }
    }
}

/// A path as it is recorded.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let path = path.display();
        Error::source(format!("the path {path} is not UTF-8 and cannot be recorded"))
    })
}

/// A change in parts of about as many bytes as a record has, or of one row.
fn parts(change: &TableChange) -> impl Iterator<Item = TableChange> {
    let fitting = RECORD_BYTES.saturating_mul(change.len()) / change.rows().bytes().max(1);
    change.parts(fitting.clamp(1, PART_ROWS))
}

/// The changes of a transaction as they are recorded: hands all but the last of them to `emit`, as much at a time as a record
/// should have, and returns these.
pub(crate) fn split<'a>(
    changes: impl IntoIterator<Item = (&'a str, &'a [TableChange])>,
    mut emit: impl FnMut(Vec<ChangedTable>) -> Result<()>,
) -> Result<Vec<ChangedTable>> {
    let (mut written, mut bytes) = (Vec::new(), 0);
    for (table, changes) in changes {
        for part in changes.iter().flat_map(parts) {
            if bytes >= RECORD_BYTES {
                emit(std::mem::take(&mut written))?;
                bytes = 0;
            }
            let (weights, rows) = part.encode()?;
            bytes += rows.len();
            written.push(ChangedTable { table: table.to_owned(), weights, rows });
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::source::{Refusal, Refusing, SourcePosition};

    /// If this fails, journals that were written before cannot be read: that needs a new version.
    #[test]
    fn the_bytes_of_records_are_these() {
        let changed =
            |table: &str| ChangedTable { table: table.to_owned(), weights: 2, rows: vec![1, 2, 3] };
        let position = SourcePosition::in_file(Path::new("/t.csv"), 1000, 70);
        let input = || InputName { table: "t".to_owned(), number: 1 };
        let portion = ReadPortion {
            input: input(),
            rows: 40,
            refused: 2,
            bytes: 500,
            end: SavedPosition::new(&position),
        };
        let refusal = Refusal { file: "/t.csv".into(), line: 3, message: "no number".to_owned() };
        let refusing = Refusing::of(vec![refusal], 5);
        let records = [
            Record::definition("CREATE TABLE t (n INT)", Path::new("/base"), -7).unwrap(),
            Record::dropped(RelationKind::View, "\"a \"\"view\"\"\"", true),
            Record::Table { name: "t".to_owned(), columns: vec![9; 5] },
            Record::Clock { now: 11 },
            Record::Part {
                transaction: 9,
                number: 3,
                changes: vec![changed("t"), changed("a longer name")],
            },
            Record::Epoch {
                number: 42,
                time: 43,
                transaction: 9,
                parts: 4,
                changes: vec![changed("t")],
                key: Some("a key".to_owned()),
                refused: vec![RefusedRows::new("t", "csv", &refusing).unwrap()],
                end: Some((input(), SavedPosition::new(&position))),
            },
            Record::Read { number: 43, time: 44, portion },
            Record::Output {
                relation: "v".to_owned(),
                path: "/v.csv".to_owned(),
                format: None,
                options: vec![("HEADERS".to_owned(), "false".to_owned())],
                changes: true,
            },
            Record::Failed { relation: "v".to_owned(), reason: "it overflows".to_owned() },
            Record::Resumed { relation: "v".to_owned() },
            Record::Sequence {
                name: "s".to_owned(),
                value: SequenceValue { last: -5, is_called: true },
            },
            Record::Transaction { definitions: vec![vec![4; 3], vec![5]], epoch: Some(vec![6; 2]) },
        ];
        let mut all = Vec::new();
        for record in records {
            let bytes = record.encode().unwrap();
            assert_eq!(Record::decode(&bytes), Ok(record));
            all.extend_from_slice(&bytes);
        }
        assert_eq!(xxh3_64(&all), 7_907_146_856_673_133);
    }
}
