//! Functions that are planned by their names, and bound to a session when a statement runs.

pub mod sequence;
pub mod session;
