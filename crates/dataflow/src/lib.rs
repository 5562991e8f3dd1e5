//! Alluvium's change: deltas, exchange, arrangements and the operators over them.
//!
//! A [`delta::Delta`] is what flows: columns of rows, each with a time and a weight. Stateless work is
//! done on columns ([`map`], [`unnest`], [`exchange`]). State is rows as bytes ([`codec`], [`layout`]), sorted by key
//! and kept in spines ([`arrangement`]); the operators over it are tactics under differential-dataflow's
//! drivers: [`join`], and on one frame of reductions (`fold`) [`aggregate`], [`ranked`], [`window`],
//! [`distinct`], [`table`] and [`errors`]. What depends on the rows of two inputs under a key is on a frame of its own
//! (`cogroup`): [`outer_join`] and [`sets`]. Changes enter by [`input`], [`constant`] and [`import`], and leave by
//! [`sink`] and [`contents`].

pub mod aggregate;
pub mod arrangement;
pub mod codec;
mod cogroup;
pub mod consolidate;
pub mod constant;
pub mod contents;
mod decoded;
pub mod default;
pub mod delta;
pub mod distinct;
pub mod errors;
pub mod exchange;
pub use alluvium_trace::fault;
mod fold;
mod fuel;
pub mod import;
pub mod input;
pub mod join;
mod key_columns;
pub use key_columns::KeyColumns;
pub mod layout;
pub mod map;
pub mod outer_join;
mod overlay;
mod panic_text;
pub use panic_text::panic_text;
pub mod ranked;
pub mod reader;
mod recompute;
mod semijoin;
pub mod sets;
pub mod sink;
pub mod table;
pub mod unnest;
mod weight;
pub mod window;
