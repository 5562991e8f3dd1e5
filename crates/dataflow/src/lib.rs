//! How Alluvium processes changes: deltas, exchange, arrangements and the operators over them.
//!
//! A [`Delta`](movement::delta::Delta) is a batch of changes in flight: columns of rows, each with a time and a weight. Stateless operators
//! work on columns. State is [rows] as bytes, sorted by key and kept in the spines of an
//! [`Arrangement`](state::arrangement). The chapters:
//!
//! - [`rows`]: their codecs and layouts;
//! - [`movement`]: how changes enter a dataflow, go to the worker of their key, and leave;
//! - [`state`]: arrangements, contents that other threads read, and starting again with kept state;
//! - [`map`], [`unnest`] and [`series`]: operators without state;
//! - [`reductions`]: aggregates, DISTINCT, top-k, windows and set operations;
//! - [`joins`]: inner, outer, ASOF and range joins;
//! - [`time`]: waterlines, late and final rows, comparisons with the time, sessions;
//! - [`recursion`]: rounds until nothing changes any more;
//! - [`messages`]: errors in the terms of SQL; [`fault`]: seeded faults.
//!
//! Stateful operators take a `Spec`. Its `compile` makes all layouts, codecs and functions and can fail, on any thread. The
//! operator, built on a worker, cannot fail. [`join`](joins::join) runs under differential-dataflow's driver; all others are
//! [reductions](reductions::reduce) of one input or of two.

pub mod fault;
pub mod joins;
pub mod map;
pub mod messages;
pub mod movement;
pub mod recursion;
pub mod reductions;
pub mod rows;
pub mod series;
pub mod state;
pub mod time;
pub mod unnest;

pub use self::messages::notice::without_notice;
pub use self::messages::panic_text::panic_text;
pub use self::rows::key_columns::KeyColumns;
