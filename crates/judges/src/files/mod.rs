//! SQL files, and what they say held against other engines.
//!
//! The files under `sql/tests/slt` are written for `sqllogictest`. Each runs on 1, 2 and 3 workers, and what
//! a file says itself is only a part of what is checked. After every transaction, for every view:
//!
//! ```text
//!   tables ──► DataFusion, all at once ──► the batch answer ──┐
//!   the same statements ──► SQLite ──► its answer ────────────┼──► equal, as multisets
//!   the view ──► what it holds ───────────────────────────────┤
//!   its subscriptions ──► the sum of all changes ─────────────┘    and no row less than once on the way
//! ```
//!
//! In reading order: [`suite`] finds files and runs them; [`database`] is what `sqllogictest` talks to;
//! [`trial`] is one file on one engine; `tampering` shows that each check does object. [`shipped`] runs the
//! files through the binary that users get, and checks only what the files say themselves.
//!
//! What a file says to the judge, besides the records of `sqllogictest`:
//! - `skipif sqlite` before a statement that SQLite cannot do or means differently; a view that is skipped is
//!   not judged by SQLite. `onlyif sqlite` before what SQLite does in its stead.
//! - `onlyif datafusion` before a view in other words, for DataFusion, which does not know those of the view of
//!   that name that follows.
//! - `# sqlite: none, …` with the reason, for a whole file.
//! - `skipif datafusion` before a view of which DataFusion is known to be wrong.
//!
//! `ALLUVIUM_SLT=joins/` runs only files whose path contains that text.

pub(crate) mod database;
mod shipped;
mod suite;
pub(crate) mod trial;

#[cfg(test)]
mod tampering;

pub use shipped::run as run_shipped;
pub use suite::run;
