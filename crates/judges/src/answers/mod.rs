//! The databases that compute the contents of a view, and how their answers are compared.
//!
//! In reading order: [`row`] represents rows of any database, and [`compare`] compares multisets of them. [`contents`] reads
//! relations of the engine itself, [`batch`] wraps DataFusion, [`sqlite`] SQLite, and [`deltas`] adds up the changes of a
//! subscription. [`words`] writes queries as others read them. [`evidence`] collects all answers about a view and finds contradictions.

pub(crate) mod batch;
pub(crate) mod compare;
pub(crate) mod contents;
pub(crate) mod deltas;
pub(crate) mod duckdb;
pub(crate) mod evidence;
pub(crate) mod row;
pub(crate) mod sqlite;
pub(crate) mod words;

#[cfg(test)]
mod known;
