//! Alluvium's change: deltas, exchange, arrangements and the operators over them.
//!
//! A [`delta::Delta`] is what flows: columns of rows, each with a time and a weight. Stateless work is
//! done on columns ([`map`], [`exchange`]). State is rows as bytes ([`codec`], [`layout`]), sorted by key
//! and kept in spines ([`arrangement`]); the operators over it are tactics under differential-dataflow's
//! drivers: [`join`], and on one frame of reductions (`fold`) [`aggregate`], [`ranked`], [`distinct`],
//! [`table`] and [`errors`]. Changes enter by [`input`], [`constant`] and [`import`], and leave by
//! [`sink`] and [`contents`].

pub mod aggregate;
pub mod arrangement;
pub mod codec;
pub mod consolidate;
pub mod constant;
pub mod contents;
pub mod default;
pub mod delta;
pub mod distinct;
pub mod errors;
pub mod exchange;
pub mod fault;
mod fold;
pub mod import;
pub mod input;
pub mod join;
pub mod layout;
pub mod map;
pub mod ranked;
pub mod sink;
pub mod table;
