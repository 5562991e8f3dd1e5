//! Who can say what a view holds, and how answers are held against each other.
//!
//! In reading order: [`row`] is a row whoever it comes from, [`compare`] tells multisets of rows apart; [`batch`] is
//! DataFusion, [`sqlite`] is SQLite, [`deltas`] are the changes of a subscription added up; and [`evidence`] is all
//! that is known of a view, with what does not fit together.

pub(crate) mod batch;
pub(crate) mod compare;
pub(crate) mod deltas;
pub(crate) mod duckdb;
pub(crate) mod evidence;
pub(crate) mod row;
pub(crate) mod sqlite;

#[cfg(test)]
mod known;
