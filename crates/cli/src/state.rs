//! Checking, listing, copying and upgrading state directories.

use std::path::{Path, PathBuf};

use alluvium::StateDirectory;
use alluvium::state_directory::{CheckpointInfo, DataflowInfo, InputInfo, OutputInfo};
use serde_json::{Value, json};

use crate::args::BackupArgs;
use crate::console::{LINES, escaped};
use crate::process::status::Status;
use crate::shell;

/// Reads everything in a state directory, and reports damage. The status is 1 if anything is damaged.
pub(crate) fn check(directory: PathBuf) -> Status {
    match StateDirectory::open(directory).and_then(|directory| directory.check()) {
        Ok(check) => match print(&check.to_string()) {
            Status::SUCCESS if !check.is_sound() => Status::FAILURE,
            status => status,
        },
        Err(error) => failed(error),
    }
}

/// Lists the checkpoints of a state directory.
pub(crate) fn manifest(directory: PathBuf, json: bool) -> Status {
    let listed = StateDirectory::open(directory).and_then(|directory| directory.checkpoints());
    match listed {
        Err(error) => failed(error),
        Ok(checkpoints) if json => {
            let checkpoints: Vec<Value> = checkpoints.iter().map(as_json).collect();
            shell::write(format!("{:#}\n", Value::from(checkpoints)).as_bytes())
        }
        Ok(checkpoints) if checkpoints.is_empty() => print("no checkpoint was taken yet"),
        Ok(checkpoints) => {
            let shown: String = checkpoints.iter().map(CheckpointInfo::to_string).collect();
            print(shown.trim_end())
        }
    }
}

/// Copies a state directory.
pub(crate) fn backup(args: BackupArgs) -> Status {
    let BackupArgs { directory, to, checkpoint, without_roles } = args;
    let copied = StateDirectory::open(directory).and_then(|directory| match checkpoint {
        None if without_roles => directory.backup_without_roles(to),
        None => directory.backup(to),
        Some(number) => directory.backup_from(number, to),
    });
    match copied {
        Ok(backup) => print(&backup.to_string()),
        Err(error) => failed(error),
    }
}

/// Writes a state directory in the newest formats.
pub(crate) fn upgrade(directory: &Path) -> Status {
    let upgraded = || {
        let state = StateDirectory::open(directory)?;
        let before = state.formats()?;
        if before.are_newest() {
            return Ok(format!("nothing to upgrade: {before}"));
        }
        let checkpoints = state.checkpoints()?;
        let workers = checkpoints.last().map_or(1, |checkpoint| checkpoint.workers);
        let url = format!("file:{}", directory.display());
        let engine = shell::engine(workers as usize, None).state(url).open()?;
        // Each checkpoint takes the place of the oldest one that is kept, and the first may be of records alone.
        for _ in 0..=checkpoints.len() {
            engine.checkpoint()?;
        }
        drop(engine);
        Ok(format!("before: {before}\nnow: {}", state.formats()?))
    };
    match upgraded() {
        Ok(done) => print(&done),
        Err(error) => failed(error),
    }
}

/// Writes lines to standard output, with escapes for control characters in names.
fn print(lines: &str) -> Status {
    shell::write(format!("{}\n", escaped(lines, LINES)).as_bytes())
}

fn failed(error: alluvium::Error) -> Status {
    shell::status(Err(shell::failed(None, error)))
}

fn as_json(checkpoint: &CheckpointInfo) -> Value {
    let relation = |(name, sql): &(String, String)| json!({"name": name, "sql": sql});
    let failed = |(name, reason): &(String, String)| json!({"name": name, "reason": reason});
    let dataflow = |DataflowInfo { name, fingerprint, states, batches, bytes, .. }: &_| {
        json!({
            "name": name,
            "fingerprint": fingerprint,
            "states": states,
            "batches": batches,
            "bytes": bytes,
        })
    };
    let input = |InputInfo { table, number, position, .. }: &_| json!({"table": table, "number": number, "position": position});
    let output = |OutputInfo { relation, path, length, .. }: &_| json!({"relation": relation, "path": path, "length": length});
    json!({
        "number": checkpoint.number,
        "current": checkpoint.is_current,
        "epoch": checkpoint.epoch,
        "time": checkpoint.time,
        "workers": checkpoint.workers,
        "replay": checkpoint.replay,
        "end": checkpoint.end,
        "relations": checkpoint.relations.iter().map(relation).collect::<Vec<_>>(),
        "failed": checkpoint.failed.iter().map(failed).collect::<Vec<_>>(),
        "dataflows": checkpoint.dataflows.iter().map(dataflow).collect::<Vec<_>>(),
        "inputs": checkpoint.inputs.iter().map(input).collect::<Vec<_>>(),
        "outputs": checkpoint.outputs.iter().map(output).collect::<Vec<_>>(),
        "keys": checkpoint.keys,
        "blobs": checkpoint.blobs,
    })
}
