//! The Nexmark benchmark for Alluvium: an online auction's events, 23 queries over them, and the harness that
//! measures how fast the queries are kept up to date.
//!
//! [`source`] makes the events and cuts them into epochs; [`query`] holds the queries as SQL files;
//! [`harness`] runs a query over a source, by way of the whole of SQL, as a program that embeds the engine
//! would; [`measurement`] is what came of it, and [`checksum`] what the view held in the end, in one number.

pub mod checksum;
mod error;
pub mod harness;
pub mod measurement;
pub mod query;
mod resources;
pub mod source;
mod stream;

pub use error::{Error, Result};
pub use stream::Stream;
