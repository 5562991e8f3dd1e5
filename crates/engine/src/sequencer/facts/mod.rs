//! Facts about what was committed, which checkpoints have.

mod failed;

pub(super) use failed::FailedRelations;
