//! Systems other than files, each a feature: tables are read from them, and views written to them.
//!
//! They share how they [wait](waiting) for a server that is away, the [addresses] that nothing connects to, and a client of
//! [HTTP](http).

mod addresses;
#[cfg(any(feature = "avro", feature = "webhook"))]
mod http;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "avro")]
pub(crate) mod registry;
pub(crate) mod waiting;
#[cfg(feature = "webhook")]
pub mod webhook;
