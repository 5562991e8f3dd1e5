//! Alluvium's side: the views of the Nexmark benchmark, maintained by its harness.

use alluvium::{Change, Durability, Engine};
use alluvium_nexmark::harness::{self, Options};
use alluvium_nexmark::source::Input;

use crate::Result;
use crate::allocator;
use crate::answer::Answer;
use crate::task::{Figures, Goal, Task};

fn options(task: &Task, goal: Goal) -> Options {
    Options {
        extent: task.extent,
        tables: task.mode.tables(),
        workers: task.workers,
        source: goal.source(task),
        revisions: task.mode.has_revisions(),
        memory: task.memory,
        rate: None,
        merge_threads: 0,
        state: None,
        durability: Durability::default(),
        on_pressure: allocator::tighten,
    }
}

/// Runs the task for its time or its memory.
pub fn run(task: &Task, goal: Goal) -> Result<Figures> {
    let measured = harness::measure(&task.query, &options(task, goal))?;
    Ok(Figures {
        seconds: measured.elapsed,
        processor: measured.processor,
        used_bytes: measured.used_bytes,
    })
}

/// Runs the task for its answer.
pub fn answer(task: &Task) -> Result<Answer> {
    let Options { source, extent, revisions, tables, workers, memory, on_pressure, .. } =
        options(task, Goal::Answer);
    let input = Input::prepare(&source, extent, revisions)?;
    let mut answer = Answer::default();
    let mut add = |Change { rows, weights, .. }: Change| {
        answer.contents.add(&rows, &weights)?;
        answer.decided.add(&harness::without(&rows, task.query.open())?, &weights)
    };
    let builder = Engine::builder().workers(workers.get()).memory(memory);
    let builder = builder.on_pressure(on_pressure);
    harness::changes(&task.query, tables, &input, builder, &mut add)?;
    Ok(answer)
}
