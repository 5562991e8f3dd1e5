//! Functions that make equal floats the same: their argument, in which one value stands for several.

use std::sync::{Arc, LazyLock};

use alluvium_dataflow::rows::codec::{canonical_floats, has_floats, one_nan};
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::error::ArrowError;
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expressions::types::type_of;

/// The name of the function that makes NaNs the same. It never fails, and is NULL only for NULL.
pub const NAN_FUNCTION: &str = "one_nan";

/// The function that makes -0.0 the same as 0.0.
pub const ZERO_FUNCTION: &str = "one_zero";

/// Its argument, in which every NaN is the same.
pub(crate) static ONE_NAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Canonical::Nan.function());

/// As [`ONE_NAN`], and in which -0.0 is 0.0.
pub(crate) static ONE_ZERO: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Canonical::Zero.function());

/// Whether the values of an expression are floats, or have them.
pub(crate) fn is_float(expression: &Expr, schema: &DFSchema) -> bool {
    type_of(expression, schema).is_some_and(|of| has_floats(&of))
}

/// The floats that are made the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Canonical {
    Nan,
    Zero,
}

impl Canonical {
    fn function(self) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(CanonicalFloats { canonical: self, signature }))
    }

    fn of(self, floats: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Nan => one_nan(floats),
            Self::Zero => canonical_floats(floats),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CanonicalFloats {
    canonical: Canonical,
    signature: Signature,
}

impl ScalarUDFImpl for CanonicalFloats {
    fn name(&self) -> &str {
        match self.canonical {
            Canonical::Nan => NAN_FUNCTION,
            Canonical::Zero => ZERO_FUNCTION,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = &arguments.arg_fields[0];
        Ok(Arc::new(Field::new(self.name(), field.data_type().clone(), field.is_nullable())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &arguments.args[0] {
            ColumnarValue::Array(floats) => ColumnarValue::Array(self.canonical.of(floats)?),
            ColumnarValue::Scalar(float) => {
                let float = self.canonical.of(&float.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&float, 0)?)
            }
        })
    }
}
