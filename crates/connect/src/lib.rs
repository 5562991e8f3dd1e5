//! Alluvium's sources and sinks.
//!
//! A source is registered when an engine is built, and serves `COPY … FROM` from then on:
//!
//! ```
//! # fn main() -> Result<(), alluvium::Error> {
//! let engine = alluvium::Engine::builder().source(alluvium_connect::Csv).open_in_memory()?;
//! # let _ = engine;
//! # Ok(()) }
//! ```

mod csv;
mod file;

pub use csv::Csv;
