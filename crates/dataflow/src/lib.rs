//! How Alluvium processes changes: deltas, exchange, arrangements and the operators over them.
//!
//! A [`delta::Delta`] is a batch of changes in flight: columns of rows, each with a time and a weight. Stateless operators
//! work on columns: [`map`], [`unnest`], [`combine`], [`exchange`]. State is rows as bytes ([`codec`], [`layout`]), sorted by key and kept
//! in spines ([`arrangement`]).
//!
//! Stateful operators take a `Spec`. Its `compile` makes all layouts, codecs and functions and can fail, on any thread. The
//! operator, built on a worker, cannot fail. [`join`] runs under differential-dataflow's driver. All others are reductions
//! (`reduce`): of one input [`aggregate`], [`ranked`], [`window`], [`distinct`], [`table`] and [`errors`], and of two inputs
//! [`outer_join`], [`asof_join`], [`range_join`] and [`sets`].
//!
//! [`waterlines`] say which changes of a table cannot come any more, and [`late`] which rows it keeps cannot change any more.
//! [`in_time`] drops the changes of a view that come too late. [`final_rows`] waits with the rows of a view until they cannot
//! change. A [`temporal_filter`] compares rows with the time. Both of these keep rows until a rising bound passes them
//! (`passing`).
//!
//! A [`recursion`] goes through rounds until its rows do not change any more.
//!
//! [`states`] has all that the operators of a dataflow keep, so that it can start again, also on other workers (`placement`).
//!
//! Changes enter by [`input`], [`constant`] and [`import`], and leave by [`sink`], [`contents`] and [`publication`]. Other threads read
//! contents through a [`snapshot`], whole or in [`key_ranges`].

pub mod aggregate;
pub mod arrangement;
pub mod asof_join;
mod batcher;
pub mod changes;
pub mod codec;
mod columns;
pub mod combine;
pub mod consolidate;
pub mod constant;
pub mod contents;
#[cfg(test)]
mod costs;
pub mod default;
pub mod delta;
pub mod distinct;
pub mod errors;
pub mod exchange;
pub mod fault;
pub mod final_rows;
mod fuel;
pub mod import;
pub mod in_time;
pub mod input;
pub mod join;
mod key_columns;
pub use key_columns::KeyColumns;
pub mod key_ranges;
pub mod late;
pub mod layout;
pub mod map;
mod notice;
mod operator;
pub mod outer_join;
mod overlay;
mod panic_text;
mod passing;
mod placement;
pub mod publication;
pub use notice::without_notice;
pub use panic_text::panic_text;
pub mod range_join;
pub mod ranked;
pub mod reader;
mod recompute;
pub mod recursion;
mod reduce;
pub mod row_pairs;
mod semijoin;
pub mod series;
pub mod sessions;
pub mod sets;
pub mod shorten;
pub mod sink;
pub mod snapshot;
pub mod states;
pub mod table;
pub mod temporal_filter;
pub mod unnest;
pub mod waterlines;
mod weight;
mod widths;
pub mod window;
pub mod wording;
