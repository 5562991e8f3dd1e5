//! Judges of Alluvium's answers, and what is put before them.
//!
//! - `answers`: who can say what a view holds, and how answers are held against each other;
//! - [`files`]: the SQL files under `sql/tests/slt`, each held against other engines;
//! - `query`: queries as trees, and what they are in the SQL of each judge;
//! - `naive`: what a query means, evaluated in the plainest way;
//! - `generate`: programs made up from numbers;
//! - `program`: a program on an engine, judged, varied and shrunk;
//! - [`tally`]: many programs, and what was seen in them;
//! - `mutants`: the engine with faults, and after how many pairs they are found.

mod answers;
pub mod files;
mod generate;
#[cfg(feature = "faults")]
pub mod mutants;
mod naive;
mod program;
mod query;
pub mod tally;

pub use program::run::Judges;
