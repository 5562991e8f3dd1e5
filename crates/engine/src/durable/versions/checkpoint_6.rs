//! Version 6 of checkpoints: without relations that have failed.

#[cfg(test)]
use rkyv::Serialize;
use rkyv::{Archive, Deserialize};

use super::super::checkpoint::{OutputName, SavedDataflow, SavedWaterlines};
use super::super::portion::InputName;
use super::super::refused::SavedRefusals;
use super::checkpoint_7;
use super::record_2::Record;
use super::record_4::SavedPosition;
use crate::clock::Moment;

/// The version.
pub(in crate::durable) const VERSION: u8 = 6;

/// A checkpoint, whose fields are those of the newest version.
#[derive(Archive, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(in crate::durable) struct Checkpoint {
    epoch: u64,
    time: Option<Moment>,
    clock: Option<Moment>,
    workers: u32,
    retained: u32,
    end: u64,
    replay: u64,
    definitions: Vec<(String, Record)>,
    changed: Vec<String>,
    positions: Vec<(InputName, SavedPosition)>,
    keys: Vec<(String, u64)>,
    outputs: Vec<(OutputName, u64)>,
    refused: Vec<SavedRefusals>,
    blobs: Vec<String>,
    dataflows: Vec<SavedDataflow>,
    waterlines: Vec<SavedWaterlines>,
}

impl From<Checkpoint> for checkpoint_7::Checkpoint {
    fn from(checkpoint: Checkpoint) -> Self {
        let definitions = checkpoint.definitions.into_iter();
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
            positions: checkpoint.positions,
            keys: checkpoint.keys,
            outputs: checkpoint.outputs,
            refused: checkpoint.refused,
            blobs: checkpoint.blobs,
            dataflows: checkpoint.dataflows,
            waterlines: checkpoint.waterlines,
            failed: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;
    use crate::durable::{archive, checkpoint};

    /// If this fails, checkpoints of this version cannot be read any more.
    #[test]
    fn the_bytes_of_a_checkpoint_are_those_of_version_6() {
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
        };
        let bytes = archive::encode(&checkpoint, VERSION).unwrap();
        assert_eq!(xxh3_64(&bytes), 13_927_847_083_567_159_727);
        let expected =
            checkpoint::Checkpoint { failed: Vec::new(), sequences: Vec::new(), ..newest };
        assert_eq!(checkpoint::Checkpoint::decode(&bytes), Ok(expected));
        for length in 0..bytes.len() {
            assert!(checkpoint::Checkpoint::decode(&bytes[..length]).is_err());
        }
    }
}
