//! Tests of the dataflow crate.

mod enter;
mod import;
mod model;
mod random;
