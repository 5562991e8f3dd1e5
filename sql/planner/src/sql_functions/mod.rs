//! Functions that are defined by SQL: expressions with parameters.
//!
//! A call is replaced by the function's expression, with the arguments in the places of the parameters, before a statement is
//! planned. So views are maintained as if the expression had been written, and an aggregate in it is one of the query that
//! calls the function.
//!
//! - [`define`] checks a definition;
//! - [`inline`] replaces the calls of a statement.
mod define;
mod inline;

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlparser::ast::{DataType, Expr};

pub(crate) use self::define::define;
pub(crate) use self::inline::{Inlined, inlined, planned};

/// Functions by name.
pub type SqlFunctions = BTreeMap<String, Arc<SqlFunction>>;

/// A function that has been checked.
#[derive(Debug)]
pub struct SqlFunction {
    name: String,
    /// The folded names of its parameters, and what their arguments are cast to.
    parameters: Vec<(String, Option<DataType>)>,
    /// The expression, which calls no functions that SQL defines.
    body: Expr,
    /// How many levels the expression has.
    levels: usize,
    calls: Vec<String>,
    text: String,
}

impl SqlFunction {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The functions that its expression calls and that SQL defines, in alphabetical order.
    pub fn calls(&self) -> &[String] {
        &self.calls
    }

    /// The statement that created it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of levels of its expression.
    pub fn levels(&self) -> usize {
        self.levels
    }
}
