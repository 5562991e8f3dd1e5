//! Random runs: the harness that the randomized tests of this crate share.
//!
//! A [`Run`] is drawn from a seed. It fixes how many workers and epochs there are, whether arrangements emit a batch
//! per time, whether state lives in memory or in files, and which fault is armed. A test
//!
//! 1. draws one [`history`] of changes per input,
//! 2. builds a dataflow in [`Run::execute`], watches its outputs with [`Watch`] and feeds the histories with [`feed`],
//! 3. compares the outputs with a model at every epoch ([`Run::compare`]).
//!
//! [`every_seed`] and [`assert_caught`] turn such a check into a test: the dataflow must agree with the model for
//! every seed, and a seeded fault must make it disagree for some.

mod feed;
mod history;
mod random;
mod run;
mod seeds;
mod single;
mod watch;

pub use feed::{Feed, feed};
pub use history::{History, Row, Rows, at, delta, history, numbers};
pub use random::Random;
pub use run::Run;
pub use seeds::{assert_caught, every_seed};
pub use single::compare_single;
pub use watch::{Watch, keyed};
