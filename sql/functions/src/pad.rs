//! `lpad` and `rpad` to a length below zero: an empty text, as in DuckDB and Postgres. DataFusion's panic.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use datafusion_functions::unicode;

use super::around::as_others;

/// The functions.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    [unicode::lpad(), unicode::rpad()].map(|others| Arc::new(ScalarUDF::from(Pad { others })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Pad {
    /// DataFusion's.
    others: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Pad {
    as_others!();

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(length) = arguments.args.get_mut(1) {
            match length {
                ColumnarValue::Scalar(ScalarValue::Int64(Some(length))) => {
                    *length = (*length).max(0);
                }
                ColumnarValue::Scalar(_) => {}
                ColumnarValue::Array(lengths) => {
                    let whole = cast(lengths, &DataType::Int64)?;
                    *lengths = Arc::new(
                        whole
                            .as_primitive::<Int64Type>()
                            .unary::<_, Int64Type>(|length| length.max(0)),
                    );
                }
            }
        }
        self.others.invoke_with_args(arguments)
    }
}
