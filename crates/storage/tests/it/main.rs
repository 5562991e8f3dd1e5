//! Tests of blobs, journals and manifests. The behaviour of every implementation is tested on every twin.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod barrier;
mod blobs;
mod checkpoints;
mod claimed;
mod compaction;
mod concurrency;
mod errors;
mod failing;
mod journal;
mod local;
mod manifests;
mod names;
mod on_disk;
mod scratch;
mod slices;
mod temporary;
mod twins;
mod writing;
