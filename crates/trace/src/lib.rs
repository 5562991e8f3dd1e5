//! Alluvium's state: sorted byte rows with times and weights, kept in pages, batches and spines.
//!
//! A *row* is a key and a value, both byte strings whose meaning this crate does not know: keys and
//! values are compared as bytes, and nothing else. An *update* is a row, a time and a weight, and the
//! contents of a collection at a time are the sums of the weights of all updates at or before it.
//!
//! Read the chapters in this order:
//!
//! - [`time`]: which times a page can hold;
//! - [`page`]: a sorted run of updates as one self-contained block of bytes;
//! - [`batch`] and [`builder`]: an immutable run of pages, and how one is made from sorted updates;
//! - [`mod@file`]: a batch as a file;
//! - [`memory`]: how much memory state takes, and how much it may;
//! - [`buffer`]: unsorted updates on their way into a batch;
//! - [`cursor`] and [`cursors`]: reading one batch, and several as if they were one;
//! - [`mod@merge`]: several batches into one, with times advanced and weights added up;
//! - [`spine`] and [`null_trace`]: the traces, which keep a history of batches or none at all;
//! - [`metrics`]: what each spine holds.
//!
//! Batches and traces implement the traits of differential-dataflow, so that its join and reduce
//! drivers, and tactics written for them, work on this state directly.
//!
//! [`fault`] lets tests break all of this, and what is built on it, on purpose.
//!
//! Weights are `i64`. A sum of weights that leaves that range is an error and never wraps: it panics,
//! and the message says so.

pub mod batch;
pub mod buffer;
pub mod builder;
pub mod cursor;
pub mod cursors;
pub mod fault;
pub mod file;
pub mod memory;
pub mod merge;
pub mod metrics;
pub mod null_trace;
pub mod page;
pub mod spine;
pub mod time;
pub mod trace;

mod ahead;
mod fences;
mod page_reader;
mod prefix;
mod weight;

pub use batch::Batch;
pub use buffer::RowBuffer;
pub use builder::BatchBuilder;
pub use cursor::Cursor;
pub use cursors::Cursors;
pub use merge::merge;
pub use metrics::Metrics;
pub use null_trace::NullTrace;
pub use spine::Spine;
pub use time::{Epoch, PageTime};
pub use trace::StateTrace;
