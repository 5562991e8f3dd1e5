//! `trunc(x)` and `trunc(x, n)`, which cut digits off.
//!
//! Integers and DECIMAL are exact, and a DECIMAL keeps as many digits after the point as a constant `n` says, as in DuckDB.
//! DataFusion makes DOUBLE of integers, and of `-0.0` in columns `0.0`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Float64Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Float64Type, Int64Type};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, internal_err, plan_err};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::plain::wrong_number;

/// DECIMAL that holds all integers.
const INTEGERS: DataType = DataType::Decimal128(20, 0);

pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Trunc { signature: Signature::user_defined(Volatility::Immutable) }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Trunc {
    signature: Signature,
}

impl ScalarUDFImpl for Trunc {
    fn name(&self) -> &str {
        "trunc"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let (1 | 2, Some(number)) = (arguments.len(), arguments.first()) else {
            return wrong_number(1, 2, arguments.len());
        };
        let number = match number {
            DataType::Null => DataType::Float64,
            kept if kept.is_integer() || kept.is_floating() => kept.clone(),
            kept @ DataType::Decimal128(..) => kept.clone(),
            number if number.is_numeric() => DataType::Float64,
            other => return plan_err!("a number is expected, not {other}"),
        };
        let places = match arguments.get(1) {
            None => return Ok(vec![number]),
            // A literal stays one.
            Some(DataType::Int32) => DataType::Int32,
            Some(places) if places.is_integer() || places.is_null() => DataType::Int64,
            Some(other) => return plan_err!("a number of digits is an integer, not {other}"),
        };
        Ok(vec![number, places])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type depends on the number of digits")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let places = match arguments.scalar_arguments.get(1) {
            None => Some(0),
            Some(places) => places.and_then(|places| match places.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(places)) => places,
                _ => None,
            }),
        };
        let kind = match (arguments.arg_fields[0].data_type(), places) {
            (DataType::Decimal128(precision, scale), Some(places)) if *scale > 0 => {
                // The bounds are those of a scale.
                let scale = places.clamp(0, (*scale).into()) as i8;
                DataType::Decimal128(*precision, scale)
            }
            (kind, _) => kind.clone(),
        };
        let nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), kind, nullable)))
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        let is_constant =
            |places: &ExprProperties| matches!(places.sort_properties, SortProperties::Singleton);
        Ok(match inputs.get(1).is_none_or(is_constant) {
            true => inputs[0].sort_properties,
            false => SortProperties::Unordered,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_array = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Array(_));
        let is_constant = !arguments.args.iter().any(is_array);
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let numbers = arguments.args[0].to_array(rows)?;
        let cut = match arguments.args.get(1) {
            None => cut_all(&numbers, None, arguments.return_field.data_type())?,
            Some(places) => {
                let places = cast(&places.to_array(rows)?, &DataType::Int64)?;
                let places = Some(places.as_primitive::<Int64Type>());
                cut_all(&numbers, places, arguments.return_field.data_type())?
            }
        };
        match is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&cut, 0)?)),
            false => Ok(ColumnarValue::Array(cut)),
        }
    }
}

/// The numbers with so many digits after the point, each with its own or all with none.
fn cut_all(
    numbers: &ArrayRef,
    places: Option<&PrimitiveArray<Int64Type>>,
    kind: &DataType,
) -> Result<ArrayRef> {
    let at = |row: usize| match places {
        None => Some(0),
        Some(places) => arrow::array::Array::is_valid(places, row).then(|| places.value(row)),
    };
    if kind.is_integer() {
        if places.is_none() {
            return Ok(Arc::clone(numbers));
        }
        let exact = cut_all(&cast(numbers, &INTEGERS)?, places, &INTEGERS)?;
        return Ok(cast(&exact, kind)?);
    }
    if let (DataType::Decimal128(precision, scale), DataType::Decimal128(_, from)) =
        (kind, numbers.data_type())
    {
        let decimals = numbers.as_primitive::<Decimal128Type>();
        let fewer = power((*from - *scale).into())
            .ok_or_else(|| exec_datafusion_err!("a DECIMAL has at most 38 digits"))?;
        let cut = decimals.iter().enumerate().map(|(row, number)| {
            let (number, places) = (number?, at(row)?);
            // How many of its last digits go.
            let unit = power(i64::from(*from).saturating_sub(places).max(0));
            Some(unit.map_or(0, |unit| number - number % unit) / fewer)
        });
        let cut = cut.collect::<Decimal128Array>();
        return Ok(Arc::new(cut.with_precision_and_scale(*precision, *scale)?));
    }
    let doubles = cast(numbers, &DataType::Float64)?;
    let doubles = doubles.as_primitive::<Float64Type>();
    let cut: Float64Array =
        doubles.iter().enumerate().map(|(row, number)| Some(cut(number?, at(row)?))).collect();
    Ok(cast(&cut, kind)?)
}

/// Ten to the power; `None` beyond 38 digits.
fn power(exponent: i64) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// The number itself where it is too large to be multiplied.
fn cut(number: f64, places: i64) -> f64 {
    if places == 0 {
        return number.trunc();
    }
    let unit = 10_f64.powi(i32::try_from(places.unsigned_abs()).unwrap_or(i32::MAX));
    let cut = match places > 0 {
        true => (number * unit).trunc() / unit,
        false => (number / unit).trunc() * unit,
    };
    if cut.is_finite() { cut } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_cut_off_on_both_sides_of_the_point() {
        assert_eq!(cut(-1.999, 1), -1.9);
        assert_eq!(cut(1234.5, -2), 1200.0);
        assert_eq!(cut(1e300, 20), 1e300);
        assert!(cut(-0.0, 0).is_sign_negative() && cut(f64::NAN, 3).is_nan());
        let kind = DataType::Decimal128(6, 1);
        let numbers: ArrayRef = Arc::new(
            Decimal128Array::from(vec![199_999, -199_999]).with_precision_and_scale(6, 3).unwrap(),
        );
        let places = PrimitiveArray::<Int64Type>::from(vec![1, -1]);
        let cut = cut_all(&numbers, Some(&places), &kind).unwrap();
        assert_eq!(cut.as_primitive::<Decimal128Type>().values(), &[1_999, -1_900]);
    }
}
