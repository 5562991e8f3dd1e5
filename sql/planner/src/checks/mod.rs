//! What is refused.

pub(crate) mod dataflow_only;
pub mod extent;
pub(crate) mod hopeless;
pub mod refusal;
pub(crate) mod validate;
