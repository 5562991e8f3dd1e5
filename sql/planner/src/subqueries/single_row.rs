//! The check that a scalar subquery returns at most one row.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// `single_row(value, rows)`: the value, or an error if there is more than one row.
///
/// It is declared volatile so that no rule moves it: it fails for the outer rows that evaluate it, and not for groups that
/// no outer row uses.
pub(crate) fn single_row() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(2, Volatility::Volatile);
        Arc::new(ScalarUDF::from(SingleRow { signature }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SingleRow {
    signature: Signature,
}

impl ScalarUDFImpl for SingleRow {
    fn name(&self) -> &str {
        "single_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, rows] = &arguments.args[..] else {
            return exec_err!("single_row takes a value and a number of rows");
        };
        let rows = rows.to_array(arguments.number_rows)?;
        let several = match rows.as_primitive_opt::<Int64Type>() {
            Some(rows) => rows.iter().flatten().any(|rows| rows > 1),
            None => rows.null_count() < rows.len(),
        };
        if several {
            return exec_err!("more than one row returned by a subquery used as an expression");
        }
        Ok(value.clone())
    }
}
