//! Alluvium's views beside programs for other engines, over the same events in the same epochs.
//!
//! `race` is the program; `docs/benchmarks.md` has its commands and figures. Each [`side`] runs in a process of its own
//! with the [`allocator`] that its authors use, and sides take turns. A [`task`] is one query in one [`mode`]; of a side it
//! asks for the time, the memory or the [`answer`]. The answers of all sides must have one checksum.
//!
//! - [`alluvium`]: the views of `alluvium-nexmark`, written in SQL;
//! - [`dbsp`]: a program for each query, written in Rust for DBSP, the engine of Feldera;
//! - [`differential`]: programs for differential-dataflow with its own spines, for some of them;
//! - [`datafusion`]: DataFusion, which evaluates the query once, over all events;
//! - [`model`]: the rows of the programs in Rust;
//! - [`race`]: who runs when; [`process`]: how, in [`warm`] memory; [`report`]: its result, with its [`spread`].

pub mod allocator;
pub mod alluvium;
pub mod answer;
pub mod datafusion;
pub mod dbsp;
pub mod differential;
pub mod mode;
pub mod model;
pub mod process;
pub mod race;
pub mod report;
pub mod side;
pub mod spread;
pub mod task;
pub mod warm;

/// Any error: the race prints it and ends.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A result of the race.
pub type Result<T> = std::result::Result<T, Error>;
