//! The SQL files, checked against other databases.
//!
//! The files under `sql/tests/slt` are written for `sqllogictest`. Each runs on 1, 2 and 3 workers; the engine with 3
//! ends at some record, and another resumes what it did, with 2 workers and a budget of 32 MiB, or with 5. Besides the expectations in the file, the harness checks every
//! view after every transaction:
//!
//! ```text
//!   tables ──► DataFusion, all at once ──► the batch answer ──┐
//!   the same statements ──► SQLite ──► its answer ────────────┼──► equal, as multisets
//!   the view ──► what it holds ───────────────────────────────┤
//!   its subscriptions ──► the sum of all changes ─────────────┘    and no row with a negative count on the way
//! ```
//!
//! In reading order: [`suite`] finds files and runs them, [`database`] implements the interface of `sqllogictest`,
//! and [`trial`] runs one file on one engine. The tests in `tampering` show that each check detects errors.
//! [`shipped`] runs the files through the released binary, and checks only the expectations in the files;
//! [`served`] through a server, by the wire protocol of Postgres.
//!
//! Directives in a file besides the records of `sqllogictest`:
//! - `skipif sqlite` precedes a statement that SQLite does not support or interprets differently; SQLite does not
//!   judge a view that is skipped. `onlyif sqlite` precedes a replacement.
//! - `onlyif datafusion` precedes a replacement for DataFusion of the view of the same name that follows.
//! - `# sqlite: none, …`, with a reason, excludes a whole file from SQLite.
//! - `skipif datafusion` precedes a view for which DataFusion is known to be wrong.
//!
//! `ALLUVIUM_SLT=joins/` runs only files whose path contains that text.

pub(crate) mod database;
mod served;
mod shipped;
mod suite;
pub(crate) mod trial;

#[cfg(test)]
mod tampering;

pub use served::run as run_served;
pub use shipped::run as run_shipped;
pub use suite::run;
pub(crate) use suite::{find, texts};
