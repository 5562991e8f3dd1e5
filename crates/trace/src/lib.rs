//! Alluvium's state: sorted byte rows with times and weights, kept in pages, batches and spines.
//!
//! A *row* is a key and a value, both byte strings. This crate compares them as bytes and does not know what they mean.
//! An *update* is a row, a time and a weight. The contents of a collection at a time are the sums of the weights of all
//! updates at or before it.
//!
//! Read the chapters in this order:
//!
//! - [`time`]: the times that a page can hold;
//! - [`page`]: a sorted run of updates as one self-contained block of bytes;
//! - [`batch`] and [`builder`]: an immutable run of pages, and making one from sorted updates;
//! - [`mod@file`]: a batch as a file, and [`pack`]: copies of many batches in one;
//! - [`memory`]: the memory budget, and the context that state is made in;
//! - [`buffer`]: unsorted updates on their way into a batch, and [`sealing`]: making a large one on another thread;
//! - [`cursor`] and [`cursors`]: reading one batch, and several as one;
//! - [`mod@merge`]: several batches into one, with times advanced and weights added up;
//! - [`mod@deal`]: of several traces, the rows that belong in one;
//! - [`bound`]: rows that are no longer needed, which merges drop;
//! - [`spine`] and [`null_trace`]: the traces, with a history of batches and without; [`trace`]: what they share;
//! - [`metrics`]: the metrics of each spine and operator;
//! - [`failure`]: state that cannot be read or written, and [`origin`]: whose it was;
//! - [`typed`]: typed keys and values, for programs of differential-dataflow.
//!
//! Batches and traces implement the traits of differential-dataflow, so that its join and reduce
//! drivers, and tactics written for them, work on this state directly. A program that uses differential-dataflow without
//! Alluvium starts with [`typed`], and with `docs/guide/differential.md`.
//!
//! For tests there are [`fault`], which makes deliberate mistakes, and [`schedule`], which varies the timing of merges.
//! Timing must not change any result.
//!
//! Weights are `i64`. A sum of weights outside of that range never wraps: it panics with a message.

pub mod batch;
pub mod bound;
pub mod buffer;
pub mod builder;
pub mod cursor;
pub mod cursors;
pub mod deal;
pub mod failure;
pub mod fault;
pub mod file;
pub mod memory;
pub mod merge;
pub mod metrics;
pub mod null_trace;
pub mod origin;
pub mod pack;
pub mod page;
pub mod schedule;
pub mod sealing;
pub mod spine;
pub mod time;
pub mod trace;
pub mod typed;

mod fences;
mod last_rows;
mod page_reader;
mod prefetch;
mod prefix;
mod spill;
mod summary;
mod weight;

pub use batch::Batch;
pub use bound::{Bound, BoundColumn, FirstKey, Pruning};
pub use buffer::RowBuffer;
pub use builder::BatchBuilder;
pub use cursor::Cursor;
pub use cursors::Cursors;
pub use deal::deal;
pub use failure::Failure;
pub use merge::merge;
pub use metrics::Metrics;
pub use null_trace::NullTrace;
pub use origin::Origin;
pub use pack::{BlobRange, Pack};
pub use schedule::{Merging, Pace, Schedule};
pub use sealing::Sealing;
pub use spine::{Spine, Version, Waker};
pub use time::{Epoch, PageTime};
pub use trace::StateTrace;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/differential.md")]
struct Guide;
