//! The contents of checkpoints.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use alluvium_storage::ManifestFiles;
use arrow::ipc::reader::StreamReader;
use arrow::temporal_conversions::timestamp_us_to_datetime;

use super::{StateDirectory, failed};
use crate::clock::Moment;
use crate::durable::checkpoint::{Checkpoint, DataflowName, OutputName, SavedDataflow};
use crate::durable::damage;
use crate::durable::directory::MANIFESTS;
use crate::durable::record::Record;
use crate::error::Result;

/// How often the directory is listed again, because checkpoints were given up while they were read.
const ATTEMPTS: usize = 10;

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointInfo {
    /// Its number, from 1 on.
    pub number: u64,
    /// Whether it is the last one.
    pub is_current: bool,
    /// It has everything up to the end of this epoch.
    pub epoch: u64,
    /// The time of the epoch in microseconds since 1970.
    pub time: Option<i64>,
    /// The number of workers that the state is partitioned for.
    pub workers: u32,
    /// The record of the journal that replaying begins with.
    pub replay: u64,
    /// The first record of the journal that it does not have.
    pub end: u64,
    /// The relations in an order in which they can be created: their names, and the statements that create them.
    pub relations: Vec<(String, String)>,
    /// The relations that have failed, and why.
    pub failed: Vec<(String, String)>,
    /// The state of each table, view, index and output.
    pub dataflows: Vec<DataflowInfo>,
    /// How far inputs were read.
    pub inputs: Vec<InputInfo>,
    /// How long outputs of changes were.
    pub outputs: Vec<OutputInfo>,
    /// How many keys of transactions it remembers.
    pub keys: usize,
    /// How many blobs it names.
    pub blobs: usize,
}

/// The state of a dataflow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataflowInfo {
    /// The name of the table or view, or what else it is.
    pub name: String,
    /// The fingerprint of its plan.
    pub fingerprint: String,
    /// How many states it has, on all workers.
    pub states: usize,
    /// How many batches they have.
    pub batches: usize,
    /// How many bytes those have.
    pub bytes: u64,
}

/// How far an input was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputInfo {
    /// The table that it is for.
    pub table: String,
    /// How many inputs of the table come before it.
    pub number: u32,
    /// The file and the line, or row.
    pub position: String,
}

/// How long an output was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputInfo {
    /// The relation whose changes are written.
    pub relation: String,
    /// The file.
    pub path: String,
    /// Its length, in bytes.
    pub length: u64,
}

/// The checkpoints of a directory, the oldest first.
pub(super) fn list(directory: &StateDirectory) -> Result<Vec<CheckpointInfo>> {
    let mut failure = failed("the checkpoints change too fast to be listed");
    for _ in 0..ATTEMPTS {
        match list_once(directory) {
            Ok(listed) => return Ok(listed),
            Err(error) if error.is_missing() => {
                failure = failed(damage::of_storage(&error));
            }
            Err(error) => return Err(failed(damage::of_storage(&error))),
        }
    }
    Err(failure)
}

fn list_once(directory: &StateDirectory) -> alluvium_storage::Result<Vec<CheckpointInfo>> {
    let (current, retained) = retained(directory)?;
    let info = |Retained { number, checkpoint, .. }| {
        CheckpointInfo::new(number, number == current, checkpoint)
    };
    Ok(retained.into_iter().map(info).collect())
}

/// A checkpoint that is kept.
pub(super) struct Retained {
    number: u64,
    /// The version of its format.
    pub(super) version: u8,
    pub(super) checkpoint: Checkpoint,
}

/// The number of the current checkpoint, and those that are kept, the oldest first.
pub(super) fn retained(
    directory: &StateDirectory,
) -> alluvium_storage::Result<(u64, Vec<Retained>)> {
    let disk = directory.disk(MANIFESTS);
    let files = ManifestFiles::list(&disk)?;
    let current = files.current(&disk)?;
    let mut numbers = files.numbers;
    numbers.retain(|number| *number <= current);
    let read = |number: u64| {
        let bytes = ManifestFiles::read(&disk, number)?;
        let (version, checkpoint) = Checkpoint::read(&bytes).map_err(|what| {
            let place = ManifestFiles::place(&disk, number);
            alluvium_storage::Error::Corrupt { place, offset: 0, what }
        })?;
        Ok(Retained { number, version, checkpoint })
    };
    let retained = match numbers.last() {
        Some(number) => read(*number)?.checkpoint.retained as usize,
        None => 0,
    };
    let retained = numbers.split_off(numbers.len().saturating_sub(retained));
    let retained: alluvium_storage::Result<_> = retained.into_iter().map(read).collect();
    Ok((current, retained?))
}

impl CheckpointInfo {
    fn new(number: u64, is_current: bool, checkpoint: Checkpoint) -> Self {
        let input = |(name, position): (crate::durable::portion::InputName, _)| InputInfo {
            table: name.table,
            number: name.number,
            position: crate::durable::portion::SavedPosition::position(&position).to_string(),
        };
        let output =
            |(OutputName { relation, path }, length)| OutputInfo { relation, path, length };
        Self {
            number,
            is_current,
            epoch: checkpoint.epoch,
            time: checkpoint.time,
            workers: checkpoint.workers,
            replay: checkpoint.replay,
            end: checkpoint.end,
            relations: checkpoint
                .definitions
                .into_iter()
                // They have verifiers of passwords, which are not to be shown.
                .filter(|(_, record)| !record.is_of_roles())
                .map(|(name, record)| (name, statement(record)))
                .collect(),
            failed: checkpoint.failed,
            dataflows: checkpoint.dataflows.iter().map(DataflowInfo::new).collect(),
            inputs: checkpoint.positions.into_iter().map(input).collect(),
            outputs: checkpoint.outputs.into_iter().map(output).collect(),
            keys: checkpoint.keys.len(),
            blobs: checkpoint.blobs.len(),
        }
    }
}

impl DataflowInfo {
    fn new(SavedDataflow { key, shards, .. }: &SavedDataflow) -> Self {
        let states = || shards.iter().flat_map(|shard| &shard.states);
        let batches: Vec<_> = states().flat_map(|state| &state.batches).collect();
        // Batches can be shared.
        let ranges: BTreeSet<_> = batches.iter().map(|batch| (batch.blob, batch.range)).collect();
        Self {
            name: match &key.name {
                DataflowName::Relation(name) => name.clone(),
                DataflowName::Index(_) => "index".to_owned(),
                DataflowName::Output(output) => format!("changes of {}", output.relation),
            },
            fingerprint: key.fingerprint.clone(),
            states: states().count(),
            batches: batches.len(),
            bytes: ranges.iter().map(|(_, (start, end))| end.saturating_sub(*start)).sum(),
        }
    }
}

/// The statement that makes a relation again, or what else does.
fn statement(record: Record) -> String {
    match record {
        Record::Definition { sql, .. } => sql,
        Record::Table { name, columns } | Record::Incomplete { name, columns } => {
            let columns = StreamReader::try_new(&columns[..], None).map(|stream| stream.schema());
            let columns = columns.map_or_else(
                |error| error.to_string(),
                |schema| {
                    let column = |field: &arrow::datatypes::FieldRef| {
                        format!("{} {}", field.name(), field.data_type())
                    };
                    schema.fields().iter().map(column).collect::<Vec<_>>().join(", ")
                },
            );
            format!("-- the columns of a file\nCREATE TABLE {name} ({columns})")
        }
        Record::Clock { .. } => "-- the clock".to_owned(),
        Record::Output { relation, path, .. } => format!("-- {relation} is written to {path}"),
        Record::Part { .. }
        | Record::Epoch { .. }
        | Record::Completing { .. }
        | Record::Read { .. }
        | Record::Failed { .. }
        | Record::Resumed { .. }
        | Record::Sequence { .. }
        | Record::Transaction { .. } => String::new(),
    }
}

/// A time in words.
fn shown(time: Moment) -> String {
    timestamp_us_to_datetime(time).map_or_else(|| time.to_string(), |time| format!("{time} UTC"))
}

impl Display for CheckpointInfo {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Self { number, epoch, workers, replay, end, keys, blobs, .. } = self;
        let current = if self.is_current { ", the current one" } else { "" };
        writeln!(to, "checkpoint {number}{current}")?;
        let time = self.time.map(shown).map_or_else(String::new, |time| format!(" of {time}"));
        writeln!(to, "  epoch {epoch}{time}, for {workers} workers")?;
        writeln!(to, "  journal: replayed from record {replay}, has all before record {end}")?;
        writeln!(to, "  transaction keys: {keys}; blobs: {blobs}")?;
        for (name, statement) in &self.relations {
            writeln!(to, "  relation {name}: {}", statement.trim().replace('\n', "\n    "))?;
        }
        for (name, reason) in &self.failed {
            writeln!(to, "  failed {name}: {reason}")?;
        }
        for DataflowInfo { name, fingerprint, states, batches, bytes } in &self.dataflows {
            let fingerprint = fingerprint.get(..8).unwrap_or(fingerprint);
            let what = format!("{states} states, {batches} batches, {bytes} bytes");
            writeln!(to, "  state of {name} ({fingerprint}): {what}")?;
        }
        for InputInfo { table, number, position } in &self.inputs {
            writeln!(to, "  input {number} of {table}: read up to {position}")?;
        }
        for OutputInfo { relation, path, length } in &self.outputs {
            writeln!(to, "  output of {relation}: {length} bytes of {path}")?;
        }
        Ok(())
    }
}
