//! Functions that are defined by SQL: expressions with parameters.
//!
//! A call is replaced by the function's expression, with the arguments in the places of the parameters, before a statement is
//! planned. So views are maintained as if the expression had been written, and an aggregate in it is one of the query that
//! calls the function.
//!
//! - [`function`] is one that has been checked;
//! - [`define`] checks a definition;
//! - [`inline`] replaces the calls of a statement.
mod define;
mod function;
mod inline;

pub(crate) use self::define::define;
pub use self::function::{SqlFunction, SqlFunctions};
pub(crate) use self::inline::{Inlined, inlined, planned};
