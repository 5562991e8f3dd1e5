//! A race of two sides over one query: their answers, then their memory, then their times in turn.

use crate::answer::Answer;
use crate::mode::Mode;
use crate::side::Side;
use crate::task::{Figures, Goal, Task};
use crate::warm::warm;
use crate::{Result, process};

/// The least limit of memory: below it, neither side has room for one epoch.
const LEAST_LIMIT: usize = 16 << 20;

/// The outcome of a race.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The query.
    pub query: &'static str,
    /// The conditions.
    pub mode: Mode,
    /// The limit of both sides' memory in bytes, if there is one.
    pub limit: Option<usize>,
    /// The answers of both sides.
    pub answers: [Answer; 2],
    /// Their figures with events that are made epoch by epoch.
    pub memory: [Figures; 2],
    /// Their figures with events that exist before, run by run.
    pub times: Vec<[Figures; 2]>,
}

impl Outcome {
    /// Whether both sides have given the same answer.
    pub fn agrees(&self) -> bool {
        let [one, other] = self.answers;
        one.decided == other.decided
    }
}

/// Has Alluvium and another side run the task, in turn, so many times.
pub fn race(mut task: Task, other: Side, pairs: usize) -> Result<Outcome> {
    let sides = [Side::Alluvium, other];
    if task.mode == Mode::Budget {
        let without = process::run(Side::Alluvium, &task, Goal::Memory)?;
        task.memory = Some((without.used_bytes as usize / 4).max(LEAST_LIMIT));
    }
    let answers = [process::answer(sides[0], &task)?, process::answer(sides[1], &task)?];
    let memory = [
        process::run(sides[0], &task, Goal::Memory)?,
        process::run(sides[1], &task, Goal::Memory)?,
    ];
    let mut times = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        let mut figures = [Figures::default(); 2];
        // Forth and back: neither always follows the other.
        for place in 0..2 {
            let number = (place + pair) % 2;
            warm()?;
            figures[number] = process::run(sides[number], &task, Goal::Time)?;
        }
        times.push(figures);
    }
    let (query, mode, limit) = (task.query.name, task.mode, task.memory);
    Ok(Outcome { query, mode, limit, answers, memory, times })
}
