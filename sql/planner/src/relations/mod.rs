//! Relations in FROM.
//!
//! - `relation` is a scan's source, `literal_rows` those of VALUES, `series` those of `generate_series`;
//! - `asof` plans ASOF joins, `lateral` and `ordinality` UNNEST, `pivot` PIVOT and UNPIVOT, `time_window` TUMBLE, HOP and SESSION.

pub mod asof;
pub(crate) mod lateral;
pub(crate) mod literal_rows;
pub(crate) mod ordinality;
pub(crate) mod pivot;
pub mod relation;
pub mod series;
pub mod time_window;
