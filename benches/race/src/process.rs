//! A side in a process of its own: its memory is its own, and nothing of another run is left in it.

use std::env;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::answer::Answer;
use crate::side::Side;
use crate::task::{Figures, Goal, Task};
use crate::{Result, allocator};

/// The first argument of the process that runs one side.
pub const ALONE: &str = "alone";

/// Runs the task for its time or its memory.
pub fn run(side: Side, task: &Task, goal: Goal) -> Result<Figures> {
    let report = report(side, task, goal)?;
    Figures::from_json(&report).ok_or_else(|| incomplete(side))
}

/// Runs the task for its answer.
pub fn answer(side: Side, task: &Task) -> Result<Answer> {
    let report = report(side, task, Goal::Answer)?;
    Answer::from_json(&report).ok_or_else(|| incomplete(side))
}

/// Prints the report of a side's process.
pub fn print(side: Side, task: &Task, goal: Goal) -> Result<()> {
    let report = match goal {
        Goal::Answer => side.answer(task)?.to_json(),
        Goal::Time | Goal::Memory => side.run(task, goal)?.to_json(),
    };
    println!("{report}");
    Ok(())
}

fn report(side: Side, task: &Task, goal: Goal) -> Result<Value> {
    let Task { query, mode, extent, workers, memory, directory } = task;
    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    let mut command = Command::new(env::current_exe()?);
    command
        .arg(ALONE)
        .args(["--side", &name(clap::ValueEnum::to_possible_value(&side))])
        .args(["--goal", &name(clap::ValueEnum::to_possible_value(&goal))])
        .args(["--query", query.name])
        .args(["--mode", &mode.name()])
        .args(["--events", &extent.events.to_string()])
        .args(["--epoch-rows", &extent.epoch_rows.to_string()])
        .args(["--workers", &workers.to_string()])
        .arg("--directory")
        .arg(directory)
        .stderr(Stdio::inherit());
    if let Some(memory) = memory {
        command.args(["--memory", &memory.to_string()]);
    }
    match side {
        Side::Dbsp => command.env(allocator::VARIABLE, "1"),
        _ => command.env_remove(allocator::VARIABLE),
    };
    let output = command.output()?;
    if !output.status.success() {
        let what = format!("{} in mode {}", query.name, mode.name());
        return Err(format!("{}: {what} ended with {}", side.title(), output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn incomplete(side: Side) -> crate::Error {
    format!("{}: the report of its process is incomplete", side.title()).into()
}
