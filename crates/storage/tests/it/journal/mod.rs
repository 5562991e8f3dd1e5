//! Tests of journals. The behaviour of every journal is tested on every twin.

mod concurrency;
mod conformance;
mod copies;
mod crashes;
mod cuts;
mod damage;
mod failures;
mod golden;
mod records;
mod recovery;
mod sharing;
mod twins;

pub use crashes::crashes;
