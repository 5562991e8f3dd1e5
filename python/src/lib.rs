//! Alluvium for Python: the compiled half of the package `alluvium`.
//!
//! A [`database`] is an engine of this process or a server: what works behind it is its [`backend`]. [`session`] runs statements, whose [`result`]s are pulled, or one for [`many`] rows, [`transaction`] writes batches of [`rows`],
//! [`subscription`] reads changes and [`view`] rows by key. [`table`] is rows in memory, [`convert`] makes Python's values of them and the other
//! way round. [`frames`] lets SQL read what Python's variables hold, [`function`] lets it call Python.
//!
//! What may block is a [`call`]: it runs without the GIL, and a signal ends it. Whatever belongs to a database is in a [`slot`], and is gone
//! once the database is [`closed`](open). [`failure`] says why a call has failed, and [`error`] has the exceptions.

#![warn(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod backend;
mod call;
mod change;
mod column;
mod convert;
mod database;
mod error;
mod export;
mod failure;
mod frames;
mod function;
mod info;
mod many;
mod open;
mod result;
mod rows;
mod session;
mod slot;
mod subscription;
mod table;
mod transaction;
mod view;
mod wake;

use pyo3::prelude::*;

/// The compiled half of the package.
#[pymodule]
mod _alluvium {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::change::Change;
    #[pymodule_export]
    use crate::database::Database;
    #[pymodule_export]
    use crate::function::Function;
    #[pymodule_export]
    use crate::info::{Progress, RelationInfo, State};
    #[pymodule_export]
    use crate::result::{Batches, Result};
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::subscription::Subscription;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::transaction::Transaction;
    #[pymodule_export]
    use crate::view::View;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Runs the command line with these arguments, without the program's name; returns the exit status.
    #[pyfunction]
    fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| alluvium_cli::main(arguments))
    }

    /// Tells that the interpreter ends: calls of other threads end with it, without an error.
    #[pyfunction]
    fn _end() {
        crate::open::end();
    }

    /// Tells that this process has been forked: threads of its parent are not here.
    #[pyfunction]
    fn _forked() {
        crate::call::forget_threads();
    }

    /// Ends what is left: no thread of an engine calls Python any more.
    #[pyfunction]
    fn _ended(py: Python<'_>) {
        crate::call::end(py);
    }
}
