//! Sources that read files.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod blocks;
mod cases;
mod connectors;
mod copy;
mod corpus;
mod csv;
mod damage;
mod decimals;
mod dialects;
mod durable;
mod file_access;
mod files;
mod folders;
#[cfg(target_os = "linux")]
mod golden;
mod json;
#[cfg(feature = "kafka")]
mod kafka;
mod live;
mod long;
mod nested;
mod parquet;
mod positions;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "webhook")]
mod webhooks;
mod workspace;
