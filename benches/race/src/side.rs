//! Who takes part.

use clap::ValueEnum;

use crate::answer::Answer;
use crate::task::{Figures, Goal, Task};
use crate::{Result, alluvium, datafusion, dbsp, differential};

/// An engine with its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// Alluvium with views in SQL.
    Alluvium,
    /// DBSP with programs in Rust.
    Dbsp,
    /// Differential-dataflow with programs in Rust, and its own spines.
    Differential,
    /// DataFusion, which evaluates the query once, over all events.
    Datafusion,
}

impl Side {
    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Alluvium => "Alluvium",
            Self::Dbsp => "DBSP",
            Self::Differential => "differential",
            Self::Datafusion => "DataFusion",
        }
    }

    /// Whether it has a program for the query, and can run it in this mode.
    pub fn takes(self, task: &Task) -> bool {
        match self {
            Self::Alluvium => true,
            Self::Dbsp => dbsp::program(task.query.name).is_some(),
            Self::Differential => differential::takes(task),
            Self::Datafusion => datafusion::takes(task),
        }
    }

    /// Runs the task for its time or its memory.
    pub fn run(self, task: &Task, goal: Goal) -> Result<Figures> {
        match self {
            Self::Alluvium => alluvium::run(task, goal),
            Self::Dbsp => dbsp::run(task, goal),
            Self::Differential => differential::run(task, goal),
            Self::Datafusion => datafusion::run(task),
        }
    }

    /// Runs the task for its answer.
    pub fn answer(self, task: &Task) -> Result<Answer> {
        match self {
            Self::Alluvium => alluvium::answer(task),
            Self::Dbsp => dbsp::answer(task),
            Self::Differential => differential::answer(task),
            Self::Datafusion => datafusion::answer(task),
        }
    }
}
