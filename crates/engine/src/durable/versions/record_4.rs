//! Version 4 of records: a position is one in a file, and changes do not say which input they come from.

use std::path::Path;

#[cfg(test)]
use rkyv::Serialize;
use rkyv::{Archive, Deserialize};

use super::super::portion::{self, InputName};
use super::super::record::{self, ChangedTable, SequenceValue};
use super::super::refused::RefusedRows;
use crate::clock::Moment;
use crate::source::SourcePosition;

/// The version.
pub(in crate::durable) const VERSION: u8 = 4;

/// A position in an input.
#[derive(Archive, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(in crate::durable) struct SavedPosition {
    pub(super) file: String,
    pub(super) offset: u64,
    pub(super) lines: u64,
}

impl From<SavedPosition> for portion::SavedPosition {
    fn from(position: SavedPosition) -> Self {
        let SavedPosition { file, offset, lines } = position;
        Self::new(&SourcePosition::in_file(Path::new(&file), offset, lines))
    }
}

/// A portion of an input that can be read again.
#[derive(Archive, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(in crate::durable) struct ReadPortion {
    pub(super) input: InputName,
    pub(super) rows: u64,
    pub(super) refused: u64,
    pub(super) bytes: u64,
    pub(super) end: SavedPosition,
}

impl From<ReadPortion> for portion::ReadPortion {
    fn from(portion: ReadPortion) -> Self {
        let ReadPortion { input, rows, refused, bytes, end } = portion;
        Self { input, rows, refused, bytes, end: end.into() }
    }
}

/// A record, whose fields are those of the newest version.
#[derive(Archive, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(in crate::durable) enum Record {
    Definition {
        sql: String,
        base: String,
        now: Moment,
    },
    Table {
        name: String,
        columns: Vec<u8>,
    },
    Clock {
        now: Moment,
    },
    Part {
        transaction: u64,
        number: u32,
        changes: Vec<ChangedTable>,
    },
    Epoch {
        number: u64,
        time: Moment,
        transaction: u64,
        parts: u32,
        changes: Vec<ChangedTable>,
        key: Option<String>,
        refused: Vec<RefusedRows>,
    },
    Read {
        number: u64,
        time: Moment,
        portion: ReadPortion,
    },
    Output {
        relation: String,
        path: String,
        format: Option<String>,
        options: Vec<(String, String)>,
        changes: bool,
    },
    Incomplete {
        name: String,
        columns: Vec<u8>,
    },
    Completing {
        table: String,
        epoch: Vec<u8>,
    },
    Failed {
        relation: String,
        reason: String,
    },
    Resumed {
        relation: String,
    },
    Sequence {
        name: String,
        value: SequenceValue,
    },
    Transaction {
        definitions: Vec<Vec<u8>>,
        epoch: Option<Vec<u8>>,
    },
}

impl From<Record> for record::Record {
    fn from(record: Record) -> Self {
        match record {
            Record::Definition { sql, base, now } => Self::Definition { sql, base, now },
            Record::Table { name, columns } => Self::Table { name, columns },
            Record::Clock { now } => Self::Clock { now },
            Record::Part { transaction, number, changes } => {
                Self::Part { transaction, number, changes }
            }
            Record::Epoch { number, time, transaction, parts, changes, key, refused } => {
                Self::Epoch { number, time, transaction, parts, changes, key, refused, end: None }
            }
            Record::Read { number, time, portion } => {
                Self::Read { number, time, portion: portion.into() }
            }
            Record::Output { relation, path, format, options, changes } => {
                Self::Output { relation, path, format, options, changes }
            }
            Record::Incomplete { name, columns } => Self::Incomplete { name, columns },
            Record::Completing { table, epoch } => Self::Completing { table, epoch },
            Record::Failed { relation, reason } => Self::Failed { relation, reason },
            Record::Resumed { relation } => Self::Resumed { relation },
            Record::Sequence { name, value } => Self::Sequence { name, value },
            Record::Transaction { definitions, epoch } => Self::Transaction { definitions, epoch },
        }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::catalog::RelationKind;
    use crate::durable::archive;
    use crate::source::{Refusal, Refusing};

    /// If this fails, journals of this version cannot be read any more.
    #[test]
    fn the_bytes_of_records_are_those_of_version_4() {
        let changed =
            |table: &str| ChangedTable { table: table.to_owned(), weights: 2, rows: vec![1, 2, 3] };
        let position = || SavedPosition { file: "/t.csv".to_owned(), offset: 1000, lines: 70 };
        let portion = || ReadPortion {
            input: InputName { table: "t".to_owned(), number: 1 },
            rows: 40,
            refused: 2,
            bytes: 500,
            end: position(),
        };
        let refusal = Refusal { file: "/t.csv".into(), line: 3, message: "no number".to_owned() };
        let refusing = Refusing::of(vec![refusal], 5);
        let sql = |sql: &str, base: &str, now| Record::Definition {
            sql: sql.to_owned(),
            base: base.to_owned(),
            now,
        };
        let dropped = record::Record::dropped(RelationKind::View, "\"a \"\"view\"\"\"", true);
        let record::Record::Definition { sql: dropped, .. } = dropped else {
            panic!("a statement")
        };
        let records = || {
            [
                sql("CREATE TABLE t (n INT)", "/base", -7),
                sql(&dropped, "", 0),
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
                },
                Record::Read { number: 43, time: 44, portion: portion() },
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
                Record::Transaction {
                    definitions: vec![vec![4; 3], vec![5]],
                    epoch: Some(vec![6; 2]),
                },
            ]
        };
        let mut all = Vec::new();
        for record in records() {
            let bytes = archive::encode(&record, VERSION).unwrap();
            all.extend_from_slice(&bytes);
            assert_eq!(record::Record::decode(&bytes), Ok(record.into()));
        }
        let read = record::Record::from(Record::Read { number: 43, time: 44, portion: portion() });
        let record::Record::Read { portion, .. } = read else { panic!("a portion") };
        let position = SourcePosition::in_file(Path::new("/t.csv"), 1000, 70);
        assert_eq!(portion.end.position(), position);
        assert_eq!(xxh3_64(&all), 13_153_689_628_675_292_371);
    }
}
