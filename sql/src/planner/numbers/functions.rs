//! Functions that only the planner calls.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type};
use datafusion_common::{Result, exec_datafusion_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::{decimal, leaves};

/// `round(x, target)`: whole numbers, still of a type with fractions, in place of those that a cast to the type of `target`
/// makes integers. A DECIMAL is rounded half away from zero, and floating point numbers half to the even one.
pub(super) static ROUND: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("round_to_whole", Act::Round));

/// `in_precision(x)`: a DECIMAL if it has no more digits than its type, and an error otherwise.
pub(super) static IN_PRECISION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("in_precision", Act::CheckPrecision));

/// `text_to_decimal(x, target)`: DECIMAL in place of the texts that a cast to the type of `target` makes DECIMAL.
pub(super) static OF_TEXT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("text_to_decimal", Act::Parse { or_null: false }));

/// As [`OF_TEXT`], with NULL for texts that are not such a DECIMAL.
pub(super) static OF_TEXT_OR_NULL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("try_text_to_decimal", Act::Parse { or_null: true }));

/// Whether `called` is one of the functions of this module.
pub(super) fn is_called(called: &Arc<ScalarUDF>, function: &LazyLock<Arc<ScalarUDF>>) -> bool {
    Arc::ptr_eq(called, function)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Round,
    CheckPrecision,
    Parse { or_null: bool },
}

/// A function that makes a number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Number {
    name: &'static str,
    act: Act,
    signature: Signature,
}

impl Number {
    fn function(name: &'static str, act: Act) -> Arc<ScalarUDF> {
        let arguments = match act {
            Act::Round | Act::Parse { .. } => 2,
            Act::CheckPrecision => 1,
        };
        let signature = Signature::any(arguments, Volatility::Immutable);
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
        Ok(match (self.act, arguments) {
            (Act::Round, [number, target]) => rounded_type(number, target),
            (Act::Parse { .. }, [text, target]) => decimal::of_texts_type(text, target),
            (_, arguments) => arguments[0].clone(),
        })
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable =
            arguments.arg_fields[0].is_nullable() || self.act == Act::Parse { or_null: true };
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let argument = &arguments.args[0];
        let is_scalar = matches!(argument, ColumnarValue::Scalar(_));
        let values = argument.to_array(if is_scalar { 1 } else { arguments.number_rows })?;
        let values = match (self.act, arguments.arg_fields.get(1)) {
            (Act::Round, Some(target)) => rounded(&values, target.data_type())?,
            (Act::Parse { or_null }, Some(target)) => {
                decimal::of_texts(&values, target.data_type(), or_null)?
            }
            _ => {
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

/// Whether a cast drops the fractions of numbers.
pub(in crate::planner) fn loses_fraction(source: &DataType, target: &DataType) -> bool {
    leaves::any(source, target, &is_cut)
}

/// Whether a cast of a plain value drops its fraction.
fn is_cut(source: &DataType, target: &DataType) -> bool {
    let may_have_fraction = match source {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale > 0,
        source => source.is_floating(),
    };
    may_have_fraction && target.is_integer()
}

/// The type that holds rounded numbers.
fn rounded_type(source: &DataType, target: &DataType) -> DataType {
    let whole_digits = |precision: u8, scale: i8| precision - scale.unsigned_abs() + 1;
    leaves::map_type(source, target, &|source, target| match source {
        DataType::Decimal128(precision, scale) if is_cut(source, target) => {
            DataType::Decimal128(whole_digits(*precision, *scale), 0)
        }
        DataType::Decimal256(precision, scale) if is_cut(source, target) => {
            DataType::Decimal256(whole_digits(*precision, *scale), 0)
        }
        source => source.clone(),
    })
}

fn rounded(values: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    leaves::map(values, target, &|values, target| {
        let source = values.data_type();
        Ok(match source {
            source if !is_cut(source, target) => Arc::clone(values),
            DataType::Float32 => Arc::new(
                values.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even),
            ),
            DataType::Float64 => Arc::new(
                values.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even),
            ),
            source => cast(values, &rounded_type(source, target))?,
        })
    })
}

fn check_precision(values: &ArrayRef) -> Result<()> {
    let DataType::Decimal128(precision, scale) = values.data_type() else { return Ok(()) };
    values.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision).map_err(|_| {
        exec_datafusion_err!(
            "overflow: the result has more digits than DECIMAL({precision}, {scale})"
        )
    })
}
