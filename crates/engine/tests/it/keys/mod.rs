//! Reads by key.

mod answers;
mod plans;
