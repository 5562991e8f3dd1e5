//! Refused constructs.
//!
//! - `refusal` and `validate` refuse constructs that views do not support, `hopeless` calls that fail for every row;
//! - `extent` refuses plans that are too large, `dataflow_only` to evaluate some views as queries.

pub(crate) mod dataflow_only;
pub mod extent;
pub(crate) mod hopeless;
pub mod refusal;
pub(crate) mod validate;
