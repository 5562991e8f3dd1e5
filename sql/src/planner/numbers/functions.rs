//! Functions that only the planner calls.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type};
use datafusion_common::{Result, exec_datafusion_err, internal_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// `round_to_even(x)`: the whole number nearest to a floating point number; of two, the even one.
pub(super) static ROUND_TO_EVEN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("round_to_even", Act::RoundToEven));

/// `in_precision(x)`: a DECIMAL if it has no more digits than its type, and an error otherwise.
pub(super) static IN_PRECISION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("in_precision", Act::CheckPrecision));

/// Whether `called` is one of the functions of this module.
pub(super) fn is_called(called: &Arc<ScalarUDF>, function: &LazyLock<Arc<ScalarUDF>>) -> bool {
    Arc::ptr_eq(called, function)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    RoundToEven,
    CheckPrecision,
}

/// A function from a number to one of its type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Number {
    name: &'static str,
    act: Act,
    signature: Signature,
}

impl Number {
    fn function(name: &'static str, act: Act) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Number { name, act, signature }))
    }
}

impl ScalarUDFImpl for Number {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [argument] = arguments.arg_fields else {
            return internal_err!("{} takes one argument", self.name);
        };
        let (data_type, nullable) = (argument.data_type().clone(), argument.is_nullable());
        Ok(Arc::new(Field::new(self.name, data_type, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return internal_err!("{} takes one argument", self.name);
        };
        let is_scalar = matches!(argument, ColumnarValue::Scalar(_));
        let values = argument.to_array(if is_scalar { 1 } else { arguments.number_rows })?;
        let values = match self.act {
            Act::RoundToEven => rounded(&values)?,
            Act::CheckPrecision => {
                check_precision(&values)?;
                values
            }
        };
        match is_scalar {
            true => datafusion_common::ScalarValue::try_from_array(&values, 0)
                .map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(values)),
        }
    }
}

fn rounded(values: &ArrayRef) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Float32 => Ok(Arc::new(
            values.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even),
        )),
        DataType::Float64 => Ok(Arc::new(
            values.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even),
        )),
        _ => Ok(Arc::clone(values)),
    }
}

fn check_precision(values: &ArrayRef) -> Result<()> {
    let DataType::Decimal128(precision, scale) = values.data_type() else { return Ok(()) };
    values.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision).map_err(|_| {
        exec_datafusion_err!(
            "overflow: the result has more digits than DECIMAL({precision}, {scale})"
        )
    })
}
