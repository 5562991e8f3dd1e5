//! Who takes part.

use clap::ValueEnum;

use crate::answer::Answer;
use crate::task::{Figures, Goal, Task};
use crate::{Result, alluvium, dbsp};

/// An engine with its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Alluvium with views in SQL.
    Alluvium,
    /// DBSP with programs in Rust.
    Dbsp,
}

impl Side {
    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Alluvium => "Alluvium",
            Self::Dbsp => "DBSP",
        }
    }

    /// Whether it has a program for the task.
    pub fn takes(self, task: &Task) -> bool {
        match self {
            Self::Alluvium => true,
            Self::Dbsp => dbsp::program(task.query.name).is_some(),
        }
    }

    /// Runs the task for its time or its memory.
    pub fn run(self, task: &Task, goal: Goal) -> Result<Figures> {
        match self {
            Self::Alluvium => alluvium::run(task, goal),
            Self::Dbsp => dbsp::run(task, goal),
        }
    }

    /// Runs the task for its answer.
    pub fn answer(self, task: &Task) -> Result<Answer> {
        match self {
            Self::Alluvium => alluvium::answer(task),
            Self::Dbsp => dbsp::answer(task),
        }
    }
}
