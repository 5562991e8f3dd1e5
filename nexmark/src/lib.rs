//! The Nexmark benchmark for Alluvium: the events of an online auction, 23 queries over them, and a harness that
//! measures how fast the queries are maintained.
//!
//! [`source`] provides the events in epochs, and [`query`] the queries as SQL files, over [`tables`] that keep their
//! rows or do not. [`harness`] runs a query over
//! a source through the SQL interface, as a program that embeds the engine would. [`measurement`] is the result,
//! with the [`latency`] of epochs and the [`resources`] of the process, and [`checksum`] summarizes the contents of the view.

pub mod checksum;
mod error;
pub mod harness;
pub mod latency;
pub mod measurement;
pub mod query;
pub mod resources;
pub mod source;
mod stream;
pub mod tables;

pub use error::{Error, Result};
pub use stream::Stream;
