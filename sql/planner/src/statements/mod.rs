//! Each kind of statement.

pub mod declared;
pub(crate) mod locking;
pub(crate) mod parameter_types;
pub(crate) mod parameters;
pub(crate) mod parametrized;
pub(crate) mod query;
pub mod recursion;
pub mod set_operation;
pub(crate) mod uses;
pub(crate) mod view;
pub(crate) mod write;
