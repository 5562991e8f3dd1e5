//! The process that runs the command line.
//!
//! [`allocator`] and [`descriptors`] set its limits, and [`memory`] reads how much it uses. [`panics`] keeps it from printing
//! panics. [`interrupt`] ends it after a signal: it removes [`temporary`] directories and restores the [`terminal`]. [`status`] is its
//! last word.

pub(crate) mod allocator;
pub(crate) mod descriptors;
pub(crate) mod interrupt;
pub(crate) mod memory;
pub(crate) mod panics;
pub(crate) mod status;
pub(crate) mod temporary;
mod terminal;
