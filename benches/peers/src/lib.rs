//! Alluvium's tables beside other embedded stores, on the same machine in the same minutes.
//!
//! `commits` measures transactions that are durable before they return, `ycsb` reads and writes by key. All stores hold the
//! same [`row`]s and stay open while they are measured in turn, so that what else the machine does meets them alike.
//! `docs/benchmarks.md` has the commands and the figures.
//!
//! - [`store`]: the operations that are measured, and one file for each: [`alluvium`], [`fjall`], [`redb`], [`rocksdb`], and
//!   the bare [`log`];
//! - [`workload`]: the mixes of YCSB, and which keys they ask for;
//! - [`round`]: threads that do something for a while; [`measured`]: the results, as a table;
//! - [`folder`]: where the stores are.

pub mod alluvium;
pub mod fjall;
pub mod folder;
pub mod log;
pub mod measured;
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
pub mod round;
pub mod row;
pub mod store;
pub mod workload;

/// Any error: a benchmark prints it and ends.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
