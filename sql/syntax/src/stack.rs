//! The stack that deep trees need.
//!
//! Plans and expressions are trees, and most operations on them recurse: copying, comparing, printing, dropping.
//! So trees have a limited number of levels, which planning checks, and a thread that works on a tree has the stack for it:
//! clients through [`with_room`], and threads of the engine's own because they start with [`THREAD`] bytes.

/// The largest number of levels of a statement's syntax tree.
pub const DEEPEST: usize = 1_000;

/// The largest number of levels of a plan with the views that it expands: of its operations and their expressions.
pub const DEEPEST_PLAN: usize = DEEPEST;

/// The stack of a thread that evaluates or drops trees, in bytes. Only what is touched takes memory.
pub const THREAD: usize = 64 << 20;

/// The stack for planning shallow trees: less than any thread has.
const BASE: usize = 1 << 20;

/// The largest number of levels of a shallow tree, or of a bound of it that counts tokens.
const SHALLOW: usize = 100;

/// The stack for planning each level of a syntax tree, which may become several levels of a plan.
const LEVEL: usize = 64 << 10;

/// Whether trees of `depth` levels need no more stack than any thread has.
pub fn is_shallow(depth: usize) -> bool {
    depth <= SHALLOW
}

/// Runs on a stack that has room for planning trees of `depth` levels: on this one if it is large enough, and else on one
/// that lasts until `run` returns.
pub fn with_room<R>(depth: usize, run: impl FnOnce() -> R) -> R {
    let deep = if is_shallow(depth) { 0 } else { depth.min(DEEPEST + DEEPEST_PLAN) };
    with_bytes(BASE + deep * LEVEL, run)
}

/// As [`with_room`], for a number of bytes.
pub fn with_bytes<R>(bytes: usize, run: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(bytes, bytes, run)
}
