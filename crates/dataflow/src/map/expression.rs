//! Evaluating an expression.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion_common::{DataFusionError, exec_err};
use datafusion_physical_expr::PhysicalExpr;

use super::bounded::check_copies;
use crate::messages::panic_text::panic_text;
use crate::movement::delta::Delta;

pub(super) type Expression = Arc<dyn PhysicalExpr>;

/// The expression that failed, and the message.
pub(super) struct Failure<'a> {
    pub(super) expression: &'a Expression,
    pub(super) error: DataFusionError,
}

/// The values of an expression for the rows of `delta`.
pub(super) fn evaluate<'a, T: Clone>(
    expression: &'a Expression,
    delta: &Delta<T>,
) -> Result<ArrayRef, Failure<'a>> {
    // Functions may panic, for example if the results of all rows together exceed what one array can hold.
    let evaluate = AssertUnwindSafe(|| {
        let value = expression.evaluate(&delta.rows)?;
        check_copies(&value, delta.len())?;
        value.into_array(delta.len())
    });
    let evaluated = catch_unwind(evaluate).unwrap_or_else(|panic| {
        exec_err!("{}", panic_text(&*panic).unwrap_or("a function failed"))
    });
    evaluated.map_err(|error| Failure { expression, error })
}

/// An expression as SQL.
pub(super) struct Printed<'a>(pub(super) &'a Expression);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}
