//! Per key, a function of the rows under it.

pub mod aggregate;
pub mod default;
pub mod distinct;
pub mod ranked;
pub(crate) mod recompute;
pub(crate) mod reduce;
pub mod sets;
pub mod window;
