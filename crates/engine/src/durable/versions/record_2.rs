//! Version 2 of records: without relations that fail and resume.

#[cfg(test)]
use rkyv::Serialize;
use rkyv::{Archive, Deserialize};

use super::super::record::ChangedTable;
use super::super::refused::RefusedRows;
use super::record_3;
use super::record_4::ReadPortion;
use crate::clock::Moment;

/// The version.
pub(in crate::durable) const VERSION: u8 = 2;

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
        number: u32,
        changes: Vec<ChangedTable>,
    },
    Epoch {
        number: u64,
        time: Moment,
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
}

impl From<Record> for record_3::Record {
    fn from(record: Record) -> Self {
        match record {
            Record::Definition { sql, base, now } => Self::Definition { sql, base, now },
            Record::Table { name, columns } => Self::Table { name, columns },
            Record::Clock { now } => Self::Clock { now },
            Record::Part { number, changes } => Self::Part { number, changes },
            Record::Epoch { number, time, parts, changes, key, refused } => {
                Self::Epoch { number, time, parts, changes, key, refused }
            }
            Record::Read { number, time, portion } => Self::Read { number, time, portion },
            Record::Output { relation, path, format, options, changes } => {
                Self::Output { relation, path, format, options, changes }
            }
            Record::Incomplete { name, columns } => Self::Incomplete { name, columns },
            Record::Completing { table, epoch } => Self::Completing { table, epoch },
        }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::super::record_4::{self, SavedPosition};
    use super::*;
    use crate::catalog::RelationKind;
    use crate::durable::portion::InputName;
    use crate::durable::{archive, record};
    use crate::source::{Refusal, Refusing};

    /// If this fails, journals of this version cannot be read any more.
    #[test]
    fn the_bytes_of_records_are_those_of_version_2() {
        let changed =
            |table: &str| ChangedTable { table: table.to_owned(), weights: 2, rows: vec![1, 2, 3] };
        let portion = || ReadPortion {
            input: InputName { table: "t".to_owned(), number: 1 },
            rows: 40,
            refused: 2,
            bytes: 500,
            end: SavedPosition { file: "/t.csv".to_owned(), offset: 1000, lines: 70 },
        };
        let refusal = Refusal { file: "/t.csv".into(), line: 3, message: "no number".to_owned() };
        let refusing = Refusing::of(vec![refusal], 5);
        let epoch = || Record::Epoch {
            number: 42,
            time: 43,
            parts: 4,
            changes: vec![changed("t")],
            key: Some("a key".to_owned()),
            refused: vec![RefusedRows::new("t", "csv", &refusing).unwrap()],
        };
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
                Record::Part { number: 3, changes: vec![changed("t"), changed("a longer name")] },
                epoch(),
                Record::Read { number: 43, time: 44, portion: portion() },
                Record::Output {
                    relation: "v".to_owned(),
                    path: "/v.csv".to_owned(),
                    format: None,
                    options: vec![("HEADERS".to_owned(), "false".to_owned())],
                    changes: true,
                },
            ]
        };
        let mut all = Vec::new();
        for record in records() {
            let bytes = archive::encode(&record, VERSION).unwrap();
            all.extend_from_slice(&bytes);
            assert_eq!(
                record::Record::decode(&bytes),
                Ok(record_4::Record::from(record_3::Record::from(record)).into())
            );
        }
        assert_eq!(xxh3_64(&all), 8_733_113_258_089_675_783);
        // The record in a record has a version of its own.
        let epoch = archive::encode(&epoch(), VERSION).unwrap().to_vec();
        let others = [
            Record::Incomplete { name: "t".to_owned(), columns: vec![9; 5] },
            Record::Completing { table: "t".to_owned(), epoch },
        ];
        for record in others {
            let bytes = archive::encode(&record, VERSION).unwrap();
            assert_eq!(
                record::Record::decode(&bytes),
                Ok(record_4::Record::from(record_3::Record::from(record)).into())
            );
        }
    }
}
