//! A function that is defined by SQL.

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlparser::ast::{DataType, Expr};

/// Functions by name.
pub type SqlFunctions = BTreeMap<String, Arc<SqlFunction>>;

/// A function that has been checked.
#[derive(Debug)]
pub struct SqlFunction {
    pub(super) name: String,
    /// The folded names of its parameters, and the types that their arguments are cast to.
    pub(super) parameters: Vec<(String, Option<DataType>)>,
    /// The expression, which calls no functions that SQL defines.
    pub(super) body: Expr,
    /// How many levels the expression has.
    pub(super) levels: usize,
    pub(super) calls: Vec<String>,
    pub(super) text: String,
    /// Whether a call may leave out arguments at its end, which are NULL then.
    pub(super) pads: bool,
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
