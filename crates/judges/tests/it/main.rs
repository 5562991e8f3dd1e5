//! Alluvium's results, compared with other databases.

mod duckdb;
mod files;
mod hostile;
mod random;
mod recursion;
mod sweep;
