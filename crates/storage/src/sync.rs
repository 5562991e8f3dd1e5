//! The locks, atomics and threads by which jobs are handed over.
//!
//! They are those of the standard library. The package `alluvium-storage-shuttle` compiles the same files with those of
//! shuttle, which runs tests in many orders.

#[cfg(shuttle)]
pub(crate) use shuttle::{sync::*, thread};
#[cfg(not(shuttle))]
pub(crate) use std::{sync::*, thread};
