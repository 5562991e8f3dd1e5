//! Differential testing of Alluvium: random programs and SQL files, whose results are compared with other
//! databases.
//!
//! - `answers`: the databases that compute the contents of a view, and how their answers are compared;
//! - [`files`]: the SQL files under `sql/tests/slt`, checked against other databases;
//! - `query`: query trees, and how to write them in each database's dialect;
//! - `naive`: a naive evaluator of query trees;
//! - `generate`: programs generated from a seed;
//! - `program`: running, judging, varying and shrinking a program;
//! - `own`: functions that programs register;
//! - [`recursion`]: recursive views over random graphs;
//! - [`tally`]: running many programs, and statistics about them;
//! - [`hostile`]: statements and files that an engine must survive;
//! - [`suites`]: SQL files of other projects, whose queries become views;
//! - [`sweep`]: every function and operator over the edges of every type;
//! - `mutants`: the engine with seeded faults, and how soon they are found.

mod answers;
pub mod files;
mod generate;
pub mod hostile;
mod kept;
#[cfg(feature = "faults")]
pub mod mutants;
mod naive;
mod own;
mod program;
mod query;
pub mod recursion;
pub mod suites;
pub mod sweep;
pub mod tally;

pub use program::run::Judges;
