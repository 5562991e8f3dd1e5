//! Changed rows of tables, from where they are staged to the dataflows of the tables.
//!
//! - [`table_change`]: changes of one table;
//! - [`rows`]: their rows, in memory that is counted ([`counted`]) or in files;
//! - [`late`]: the bounds that rows must keep, and late rows;
//! - [`pace`]: how many rows pass through a source or a sink.

pub(crate) mod counted;
pub(crate) mod late;
pub(crate) mod pace;
pub(crate) mod rows;
mod table_change;

pub(crate) use self::counted::bytes_of;
pub(crate) use self::table_change::TableChange;
