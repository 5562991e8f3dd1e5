//! The `alluvium` command as its users see it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod binary;
mod configured;
mod connect;
mod demo;
mod durable;
mod endings;
mod failures;
mod flights;
mod forgetting;
mod init;
mod journal;
mod library;
mod log;
mod man;
mod nexmark_killed;
mod report;
mod resumed;
mod run;
mod serve;
mod shell;
mod signals;
mod sqlite;
mod standby;
mod state;
mod tutorial;
mod upgrade;
