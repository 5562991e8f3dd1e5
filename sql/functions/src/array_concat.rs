//! `array_concat` of NULLs.
//!
//! DataFusion returns NULL where all lists of a batch are NULL. Beside other rows such lists may become `[NULL]`, if they nest
//! differently deep. Here NULLs alone are always NULL, as in DuckDB and PostgreSQL.

use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::compute::{and, is_null, nullif};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use datafusion_functions_nested::concat::array_concat_udf;

use super::around::as_others;

/// The function.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(ArrayConcat { others: array_concat_udf() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayConcat {
    /// DataFusion's, for rows in which some list is not NULL.
    others: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for ArrayConcat {
    as_others!();

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.others.coerce_types(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = ColumnarValue::values_to_arrays(&arguments.args)?;
        let joined = self.others.invoke_with_args(arguments)?;
        let nulls = lists.iter().map(|list| is_null(list)).reduce(|a, b| and(&a?, &b?));
        let nulls = nulls.transpose()?.filter(|nulls: &BooleanArray| nulls.has_true());
        match (joined, nulls) {
            (joined, None) => Ok(joined),
            (ColumnarValue::Scalar(joined), Some(_)) => {
                Ok(ColumnarValue::Scalar(ScalarValue::try_from(joined.data_type())?))
            }
            (ColumnarValue::Array(joined), Some(nulls)) => {
                Ok(ColumnarValue::Array(nullif(&joined, &nulls)?))
            }
        }
    }
}
