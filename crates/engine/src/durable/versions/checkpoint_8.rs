//! Version 8 of checkpoints: with definitions and positions as version 4 of records has them.

#[cfg(test)]
use rkyv::Serialize;
use rkyv::{Archive, Deserialize};

use super::super::checkpoint::{self, OutputName, SavedDataflow, SavedWaterlines};
use super::super::portion::InputName;
use super::super::record::SequenceValue;
use super::super::refused::SavedRefusals;
use super::record_4::{Record, SavedPosition};
use crate::clock::Moment;

/// The version.
pub(in crate::durable) const VERSION: u8 = 8;

/// A checkpoint, whose fields are those of the newest version.
#[derive(Archive, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(in crate::durable) struct Checkpoint {
    pub(super) epoch: u64,
    pub(super) time: Option<Moment>,
    pub(super) clock: Option<Moment>,
    pub(super) workers: u32,
    pub(super) retained: u32,
    pub(super) end: u64,
    pub(super) replay: u64,
    pub(super) definitions: Vec<(String, Record)>,
    pub(super) changed: Vec<String>,
    pub(super) positions: Vec<(InputName, SavedPosition)>,
    pub(super) keys: Vec<(String, u64)>,
    pub(super) outputs: Vec<(OutputName, u64)>,
    pub(super) refused: Vec<SavedRefusals>,
    pub(super) blobs: Vec<String>,
    pub(super) dataflows: Vec<SavedDataflow>,
    pub(super) waterlines: Vec<SavedWaterlines>,
    pub(super) failed: Vec<(String, String)>,
    pub(super) sequences: Vec<(String, SequenceValue)>,
}

impl From<Checkpoint> for checkpoint::Checkpoint {
    fn from(checkpoint: Checkpoint) -> Self {
        let definitions = checkpoint.definitions.into_iter();
        let positions = checkpoint.positions.into_iter();
        Self {
            epoch: checkpoint.epoch,
            time: checkpoint.time,
            clock: checkpoint.clock,
            workers: checkpoint.workers,
            retained: checkpoint.retained,
            end: checkpoint.end,
            replay: checkpoint.replay,
            definitions: definitions.map(|(name, record)| (name, record.into())).collect(),
            changed: checkpoint.changed,
            positions: positions.map(|(input, position)| (input, position.into())).collect(),
            keys: checkpoint.keys,
            outputs: checkpoint.outputs,
            refused: checkpoint.refused,
            blobs: checkpoint.blobs,
            dataflows: checkpoint.dataflows,
            waterlines: checkpoint.waterlines,
            failed: checkpoint.failed,
            sequences: checkpoint.sequences,
        }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::durable::archive;

    /// If this fails, checkpoints of this version cannot be read any more.
    #[test]
    fn the_bytes_of_a_checkpoint_are_those_of_version_8() {
        let newest = checkpoint::example();
        let table = || Record::Definition {
            sql: "CREATE TABLE t (n INT)".to_owned(),
            base: String::new(),
            now: 5,
        };
        let position = SavedPosition { file: "/t.csv".to_owned(), offset: 1000, lines: 70 };
        let before = newest.clone();
        let checkpoint = Checkpoint {
            epoch: before.epoch,
            time: before.time,
            clock: before.clock,
            workers: before.workers,
            retained: before.retained,
            end: before.end,
            replay: before.replay,
            definitions: vec![("t".to_owned(), table())],
            changed: before.changed,
            positions: vec![(InputName { table: "t".to_owned(), number: 0 }, position)],
            keys: before.keys,
            outputs: before.outputs,
            refused: before.refused,
            blobs: before.blobs,
            dataflows: before.dataflows,
            waterlines: before.waterlines,
            failed: before.failed,
            sequences: before.sequences,
        };
        let bytes = archive::encode(&checkpoint, VERSION).unwrap();
        assert_eq!(xxh3_64(&bytes), 15_784_046_485_260_658_722);
        assert_eq!(checkpoint::Checkpoint::decode(&bytes), Ok(newest));
        for length in 0..bytes.len() {
            assert!(checkpoint::Checkpoint::decode(&bytes[..length]).is_err());
        }
    }
}
