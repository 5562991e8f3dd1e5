//! What stands in FROM.

pub mod asof;
pub(crate) mod lateral;
pub(crate) mod literal_rows;
pub(crate) mod ordinality;
pub(crate) mod pivot;
pub mod relation;
pub mod series;
pub mod time_window;
