//! Strict engines: an error of a view is an error of the engine.

use arrow::array::{Array, AsArray};

use super::Reader;
use crate::error::{Error, Result};

impl Reader {
    /// Fails if the engine is strict and a view has failed, or an expression of a view fails for a row, as of the last committed
    /// epoch. Waits for that epoch, if the engine is strict.
    pub(crate) fn check_views(&self) -> Result<()> {
        if !self.strict {
            return Ok(());
        }
        self.check_none_failed()?;
        let errors =
            self.select("SELECT view, message, expression, \"row\" FROM alluvium.errors LIMIT 1")?;
        let Some(rows) = errors.batches.iter().find(|rows| rows.num_rows() > 0) else {
            return Ok(());
        };
        let text = |column: usize| {
            let column = rows.column(column).as_string::<i32>();
            if column.is_null(0) { "" } else { column.value(0) }
        };
        let (view, message, expression, row) = (text(0), text(1), text(2), text(3));
        Err(Error::data(format!("view \"{view}\": {message} in {expression}, for the row {row}")))
    }
}
