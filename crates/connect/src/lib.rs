//! Alluvium's sources and sinks: files of CSV, JSON and Parquet, and systems other than files.
//!
//! They are registered when an engine is built, and serve its statements and connectors from then on:
//!
//! ```
//! # fn main() -> Result<(), alluvium::Error> {
//! let engine = alluvium_connect::formats(alluvium::Engine::builder()).open_in_memory()?;
//! # let _ = engine;
//! # Ok(()) }
//! ```
//!
//! Parts that all formats share: [`files`] finds those that a pattern names, and columns that are in no file, [`input`] opens one, [`blocks`] decodes parts of one at once, [`fit`] makes their values fit
//! a table's columns, [`target`] is a file being written, and [`options`] reads the values of options.

mod blocks;
mod csv;
#[cfg(feature = "kafka")]
pub mod decode;
#[cfg(any(feature = "kafka", feature = "webhook"))]
pub mod encode;
mod files;
mod fit;
mod input;
mod json;
mod live;
mod options;
mod parquet;
mod parts;
mod pipe;
#[cfg(any(feature = "kafka", feature = "postgres", feature = "webhook"))]
mod systems;
mod target;

use alluvium::Builder;

pub use csv::{Csv, CsvText};
pub use json::Json;
pub use parquet::Parquet;
#[cfg(feature = "kafka")]
pub use systems::kafka;
#[cfg(feature = "postgres")]
pub use systems::postgres;
#[cfg(feature = "webhook")]
pub use systems::webhook;
pub use target::remove_unfinished;

/// The program of `docs/guide/embedding.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/embedding.md")]
struct Embedding;

/// Registers all formats there are, as sources and as sinks, and the systems of the features that are on.
pub fn formats(builder: Builder) -> Builder {
    #[cfg(feature = "kafka")]
    let builder = builder.transport(kafka::Kafka).delivery(kafka::Kafka);
    #[cfg(feature = "postgres")]
    let builder = builder.transport(postgres::Postgres).delivery(postgres::Postgres);
    #[cfg(feature = "webhook")]
    let builder = builder.delivery(webhook::Webhook);
    builder
        .source(Csv)
        .source(Json::LINES)
        .source(Json::ARRAY)
        .source(Parquet)
        .sink(Csv)
        .sink(Json::LINES)
        .sink(Json::ARRAY)
        .sink(Parquet)
}
