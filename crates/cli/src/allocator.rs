//! The allocator, which is to have resident what is counted against the budget and little more.
//!
//! mimalloc is the one of those measured (`docs/benchmarks.md`) whose resident memory follows what is allocated for the
//! least time. A program that embeds the engine has an allocator of its own.

use libmimalloc_sys::{mi_option_set_default, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The number of the option `mi_option_purge_delay` in `mimalloc.h`.
const PURGE_DELAY: mi_option_t = 15;

/// For so long memory that nobody has is kept for whoever wants some, in milliseconds, where a budget was asked for. The
/// allocator's own default, a second, is as long as many epochs, and quicker.
const MILLISECONDS: std::ffi::c_long = 10;

/// Memory that is free is given back to the system soon, unless `MIMALLOC_PURGE_DELAY` in the environment says when.
pub(crate) fn give_back_soon() {
    // SAFETY: the function sets a number; mimalloc lets it be called at any time.
    unsafe { mi_option_set_default(PURGE_DELAY, MILLISECONDS) }
}
