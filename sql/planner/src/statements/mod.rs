//! Each kind of statement.
//!
//! - `query`, `view` and `write` plan queries, views, and INSERT, UPDATE and DELETE; `locking` plans queries that lock rows;
//! - `parameters` binds `$1`, `parameter_types` infers its type, `own_types` gives it that of its value, and `parametrized` makes parameters of
//!   literals;
//! - `recursion` reads the rows of WITH RECURSIVE, `declared` those of views that recur; `set_operation` plans INTERSECT and EXCEPT;
//! - `uses` finds the relations that a statement names, and how it uses them.

pub mod declared;
pub(crate) mod locking;
pub(crate) mod own_types;
pub(crate) mod parameter_types;
pub(crate) mod parameters;
pub(crate) mod parametrized;
pub(crate) mod query;
pub mod recursion;
pub mod set_operation;
pub(crate) mod uses;
pub(crate) mod view;
pub(crate) mod write;
