//! Tests of journals that a server keeps.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod certificates;
mod connections;
mod disks;
mod engines;
mod faults;
mod follow;
mod journal;
mod proxy;
mod standby;
mod terms;
