//! Reductions: per key, a function of the rows under it, maintained as the rows change.
//!
//! # Design
//!
//! A reduction has one input ([`reduce()`]) or two ([`cogroup()`]) and is for totally ordered time. One driver runs both: it
//! waits until its inputs are complete up to a common time, and then processes all changes in the [`Interval`] since the
//! last such time, key by key in byte order. Within a key, changes are grouped in *time slices*: a key's result can change
//! only at times at which its rows do.
//!
//! An interval can be large. The driver processes it within its fuel ([`crate::movement::fuel`]), yields, and resumes; it holds the
//! capability of the interval until the interval is done.
//!
//! [`reduce()`] reads what the input and the output held before the interval ([`Prior`]), as far as their traces keep it:
//! [`alluvium_trace::NullTrace`] keeps nothing. Rows that need not be kept at all ([`Unkept`]) are sorted by the operator itself,
//! and it can decode its own output ([`reduce_decoded()`]): operators cost more than what they do where an epoch has few rows. Its
//! output is one batch per interval, with a time column, shipped at the
//! earliest held time. It can continue an output that exists already, as after a restart: it then starts at the end of
//! that output, and input before it counts as history.
//!
//! [`cogroup()`] reads both input traces in place and emits deltas. One input is often ahead of the other, so a batch may
//! hold times inside and after the interval; updates are therefore told apart by their time. This works as long as logical
//! compaction stays before the interval.
//!
//! Batches from before the interval may carry times equal to its lower bound, because compaction advanced them there.

mod changes;
mod cogroup;
mod driver;
mod history;
mod input;
mod interval;
mod output;
mod port;
mod prior;
mod rows;
mod single;
#[cfg(test)]
mod tests;

pub(crate) use self::changes::Changes;
pub(crate) use self::cogroup::{PairLogic, PairOutput, cogroup};
pub(crate) use self::driver::Unkept;
#[cfg(test)]
pub(crate) use self::history::READ;
pub(crate) use self::history::{History, Rows};
pub(crate) use self::output::Output;
pub(crate) use self::prior::Prior;
pub(crate) use self::rows::{OutputRows, Shape};
pub(crate) use self::single::{Logic, Reduction, reduce, reduce_decoded};
