//! Records and checkpoints as earlier versions of Alluvium have written them.
//!
//! Archives are written in the newest version. They may be read in any version that was ever released: each has a
//! module here with the types as they were, and becomes the next version by `From`, step by step, up to the newest, which
//! [`record`](super::record) and [`checkpoint`](super::checkpoint) have.
//!
//! Types that are the same in several versions are those of the newest. To change one of them, or the record or the checkpoint
//! itself:
//!
//! 1. keep a golden directory of the version that is about to become an old one: `crates/connect/tests/it/golden/` says how;
//! 2. copy the type as it is to a module of that version, with its `From`, and whatever contains it;
//! 3. raise `VERSION`, and have `decode` read the version before by its module.
//!
//! Each module has a test of the bytes of its version, so a type that was changed without that is noticed.

pub(super) mod checkpoint_6;
pub(super) mod checkpoint_7;
pub(super) mod checkpoint_8;
pub(super) mod record_2;
pub(super) mod record_3;
pub(super) mod record_4;
