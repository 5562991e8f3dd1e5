//! Judges of Alluvium's answers.
//!
//! - [`files`]: the SQL files under `sql/tests/slt`, each held against other engines.

mod answers;
pub mod files;
