//! The contents of a checkpoint, which a manifest holds.

use alluvium_sql::plan::Fingerprint;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Serialize};

use super::archive;
use super::portion::{InputName, SavedPosition};
use super::record::{Record, SequenceValue};
use super::refused::SavedRefusals;
use super::versions::{checkpoint_6, checkpoint_7, checkpoint_8};
use crate::clock::Moment;
use crate::error::{Error, Result};

/// The version of the format, which the bytes of a checkpoint end with.
pub(crate) const VERSION: u8 = 9;

/// The state of an engine at the end of an epoch.
///
/// Its bytes are an rkyv archive, which is validated before it is read, and its version.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// The epoch.
    pub(crate) epoch: u64,
    /// Its time, which no later one is before; `None` if there was none.
    pub(crate) time: Option<Moment>,
    /// The time that the relation of the clock has, if there is one.
    pub(crate) clock: Option<Moment>,
    /// The number of workers that the state is partitioned for.
    pub(crate) workers: u32,
    /// How many checkpoints are kept, with this one.
    pub(crate) retained: u32,
    /// The position in the journal of the first record that is not part of it.
    pub(crate) end: u64,
    /// Where to begin to replay: parts of an epoch that is not part of it may come before `end`.
    pub(crate) replay: u64,
    /// The definitions of all relations, by their names, in an order in which they can be executed.
    pub(crate) definitions: Vec<(String, Record)>,
    /// The tables that have been changed.
    pub(crate) changed: Vec<String>,
    /// How far inputs were read.
    pub(crate) positions: Vec<(InputName, SavedPosition)>,
    /// The keys of transactions, and their epochs.
    pub(crate) keys: Vec<(String, u64)>,
    /// The length of each output of changes, with all changes up to the epoch.
    pub(crate) outputs: Vec<(OutputName, u64)>,
    /// The rows that sources refused.
    pub(crate) refused: Vec<SavedRefusals>,
    /// The names of all blobs.
    pub(crate) blobs: Vec<String>,
    /// The state of the dataflows.
    pub(crate) dataflows: Vec<SavedDataflow>,
    /// The waterlines of the tables that have some.
    pub(crate) waterlines: Vec<SavedWaterlines>,
    /// The relations that have failed, and why: they have no dataflows.
    pub(crate) failed: Vec<(String, String)>,
    /// The last values of sequences.
    pub(crate) sequences: Vec<(String, SequenceValue)>,
}

/// The waterlines of a table.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedWaterlines {
    /// Its name.
    pub(crate) table: String,
    /// The columns, by their numbers, and their waterlines; `None` before the first value.
    pub(crate) columns: Vec<(u32, Option<i64>)>,
    /// How many of its rows came too late, without those that its workers count.
    pub(crate) late: u64,
    /// When its last rows came, if it can be idle.
    pub(crate) active: Option<Moment>,
}

/// The name of a dataflow: the same in every process.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum DataflowName {
    /// A table or view, by its name.
    Relation(String),
    /// An index, by its fingerprint.
    Index(String),
    /// The changes of a relation on their way to a path.
    Output(OutputName),
}

/// An output of the changes of a relation.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OutputName {
    pub(crate) relation: String,
    pub(crate) path: String,
}

/// The identity of a dataflow, and the meaning of its state.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataflowKey {
    pub(crate) name: DataflowName,
    /// The fingerprint of its plan, as a number in hexadecimal digits.
    pub(crate) fingerprint: String,
}

impl DataflowKey {
    /// The key of a table or view.
    pub(crate) fn relation(name: &str, fingerprint: Fingerprint) -> Self {
        let name = DataflowName::Relation(name.to_owned());
        Self { name, fingerprint: fingerprint.to_string() }
    }

    /// The key of an output.
    pub(crate) fn output(relation: &str, path: &str, fingerprint: Fingerprint) -> Self {
        let output = OutputName { relation: relation.to_owned(), path: path.to_owned() };
        Self { name: DataflowName::Output(output), fingerprint: fingerprint.to_string() }
    }

    /// The key of an index.
    pub(crate) fn index(fingerprint: Fingerprint) -> Self {
        let name = DataflowName::Index(fingerprint.to_string());
        Self { name, fingerprint: fingerprint.to_string() }
    }
}

/// The state of a dataflow.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedDataflow {
    pub(crate) key: DataflowKey,
    /// Its state tells all changes after this epoch apart; a subscription can resume from there.
    pub(crate) since: u64,
    /// The number of workers it was first built for, if its rows were repartitioned since.
    pub(crate) built_for: Option<u32>,
    /// The state of each worker.
    pub(crate) shards: Vec<SavedShard>,
}

/// The state of a dataflow on one worker.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedShard {
    /// How many deletions of absent rows were refused, if it is a table.
    pub(crate) refused: u64,
    pub(crate) states: Vec<SavedState>,
    /// How many writes to rows below a waterline were dropped, if it is a table, or changes, if it is a view with lateness.
    pub(crate) late: u64,
}

/// A trace.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedState {
    pub(crate) id: String,
    pub(crate) fingerprint: String,
    pub(crate) operator: String,
    pub(crate) number: u32,
    /// Its batches, in the order of their times, without empty ones.
    pub(crate) batches: Vec<SavedBatch>,
}

/// A batch.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedBatch {
    /// The blob that has it, by its place in the list of blobs.
    pub(crate) blob: u32,
    /// Where it begins and ends there.
    pub(crate) range: (u64, u64),
    /// All of its updates are of earlier epochs; `None` if no later ones can come.
    pub(crate) upper: Option<u64>,
    /// The epoch to which the times of its updates may have been advanced; `None` if they have no readers any more.
    pub(crate) since: Option<u64>,
}

impl Checkpoint {
    /// Its bytes.
    pub(crate) fn encode(&self) -> Result<AlignedVec> {
        archive::encode(self, VERSION)
            .map_err(|error| Error::data(format!("a checkpoint cannot be written: {error}")))
    }

    /// Reads a checkpoint of any version, which it returns as well, or says what is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> std::result::Result<(u8, Self), String> {
        Ok((archive::split(bytes)?.1, Self::decode(bytes)?))
    }

    /// Reads a checkpoint of any version, or says what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<Self, String> {
        let (archive, version) = archive::split(bytes)?;
        match version {
            VERSION => archive::decode(archive),
            checkpoint_8::VERSION => {
                archive::decode::<checkpoint_8::Checkpoint>(archive).map(Self::from)
            }
            checkpoint_7::VERSION => archive::decode::<checkpoint_7::Checkpoint>(archive)
                .map(|checkpoint| checkpoint_8::Checkpoint::from(checkpoint).into()),
            checkpoint_6::VERSION => {
                archive::decode::<checkpoint_6::Checkpoint>(archive).map(|checkpoint| {
                    checkpoint_8::Checkpoint::from(checkpoint_7::Checkpoint::from(checkpoint))
                        .into()
                })
            }
            other => Err(archive::unknown(other, checkpoint_6::VERSION..=VERSION)),
        }
    }
}

/// A checkpoint with something in every field.
#[cfg(test)]
pub(super) fn example() -> Checkpoint {
    use std::path::Path;

    use crate::source::SourcePosition;

    let batch = SavedBatch { blob: 1, range: (4096, 9000), upper: Some(43), since: None };
    let state = SavedState {
        id: "aggregate.1".to_owned(),
        fingerprint: "c0ffee".to_owned(),
        operator: "Aggregate".to_owned(),
        number: 2,
        batches: vec![batch.clone(), SavedBatch { upper: None, since: Some(7), ..batch }],
    };
    let name = |name: &str| DataflowName::Relation(name.to_owned());
    let dataflow = |name| SavedDataflow {
        key: DataflowKey { name, fingerprint: "beef".to_owned() },
        since: 41,
        built_for: Some(2),
        shards: vec![SavedShard { refused: 3, states: vec![state.clone()], late: 4 }],
    };
    let definition = Record::definition("CREATE TABLE t (n INT)", Path::new(""), 5).unwrap();
    let position = SourcePosition::in_file(Path::new("/t.csv"), 1000, 70);
    let position = SavedPosition::new(&position);
    let output = OutputName { relation: "v".to_owned(), path: "/v.csv".to_owned() };
    let refused = SavedRefusals {
        table: "t".to_owned(),
        rows: vec![7; 9],
        left_out: Some((5, "csv".to_owned(), 40)),
    };
    Checkpoint {
        epoch: 42,
        time: Some(-1),
        clock: None,
        workers: 1,
        retained: 3,
        end: 100,
        replay: 99,
        definitions: vec![("t".to_owned(), definition)],
        changed: vec!["t".to_owned()],
        positions: vec![(InputName { table: "t".to_owned(), number: 0 }, position)],
        keys: vec![("a key".to_owned(), 41)],
        outputs: vec![(output.clone(), 12)],
        refused: vec![refused],
        blobs: vec!["batch-1".to_owned(), "pack-2".to_owned()],
        dataflows: vec![
            dataflow(name("t")),
            dataflow(DataflowName::Index("1".to_owned())),
            dataflow(DataflowName::Output(output)),
        ],
        waterlines: vec![SavedWaterlines {
            table: "t".to_owned(),
            columns: vec![(0, Some(-8)), (2, None)],
            late: 6,
            active: Some(11),
        }],
        failed: vec![("v".to_owned(), "it overflows".to_owned())],
        sequences: vec![("s".to_owned(), SequenceValue { last: 7, is_called: false })],
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    /// If this fails, checkpoints that were written before cannot be read: that needs a new version.
    #[test]
    fn the_bytes_of_a_checkpoint_are_these() {
        let checkpoint = example();
        let bytes = checkpoint.encode().unwrap();
        assert_eq!(Checkpoint::decode(&bytes), Ok(checkpoint));
        assert_eq!(xxh3_64(&bytes), 107_624_234_021_251_478);
        for length in 0..bytes.len() {
            assert!(Checkpoint::decode(&bytes[..length]).is_err());
        }
    }
}
