//! Rows and the time: those that come late, that are final, and that are in view for a while.

pub mod final_rows;
pub mod in_time;
pub mod late;
pub(crate) mod passing;
pub mod sessions;
pub mod temporal_filter;
pub mod waterlines;
