//! Whole numbers next to a DECIMAL: `ceil`, `floor` and `round`.
//!
//! The result has no digits after the point, as in DuckDB and PostgreSQL, and the precision of the argument, so that there is
//! room for a carry. DataFusion keeps the digits, and fails where a carry needs one more. All other types are DataFusion's,
//! but for unsigned integers that are rounded to tens, whose results are signed ones with room for a carry.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

/// The function, which is `others` for arguments other than one DECIMAL with digits after the point.
pub(super) fn function(others: Arc<ScalarUDF>, to: Whole) -> Arc<ScalarUDF> {
    let signature = match to {
        Whole::Nearest => Signature::user_defined(Volatility::Immutable),
        Whole::Above | Whole::Below => others.signature().clone(),
    };
    Arc::new(ScalarUDF::from(WholeDecimal { others, to, signature }))
}

/// Which whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Whole {
    Above,
    Below,
    /// The nearest one, and of two the one farther from zero.
    Nearest,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeDecimal {
    others: Arc<ScalarUDF>,
    to: Whole,
    signature: Signature,
}

impl Whole {
    /// The whole number of `number`, of which there are `unit` in one.
    fn of(self, number: i128, unit: i128) -> i128 {
        let (whole, rest) = (number / unit, number % unit);
        whole
            + match self {
                Whole::Above => i128::from(rest > 0),
                Whole::Below => -i128::from(rest < 0),
                Whole::Nearest if rest.abs() >= unit - rest.abs() => rest.signum(),
                Whole::Nearest => 0,
            }
    }
}

/// The precision and the scale of the argument, if it is one DECIMAL with digits after the point.
fn decimal(arguments: &[DataType]) -> Option<(u8, u32)> {
    match arguments {
        [DataType::Decimal128(precision, scale @ 1..)] => {
            Some((*precision, scale.unsigned_abs().into()))
        }
        _ => None,
    }
}

impl ScalarUDFImpl for WholeDecimal {
    fn name(&self) -> &str {
        self.others.name()
    }

    fn aliases(&self) -> &[String] {
        self.others.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let field = |kind: &DataType| Arc::new(Field::new("argument", kind.clone(), true));
        let mut fields: Vec<FieldRef> = arguments.iter().map(field).collect();
        // 255 to tens is 260.
        if let [number, _] = arguments
            && number.is_unsigned_integer()
        {
            fields[0] = field(match number {
                DataType::UInt64 => &DataType::Decimal128(20, 0),
                _ => &DataType::Int64,
            });
        }
        let fields = fields_with_udf(&fields, self.others.as_ref())?;
        Ok(fields.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match decimal(arguments) {
            Some((precision, _)) => Ok(DataType::Decimal128(precision, 0)),
            None => self.others.return_type(arguments),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        match decimal(&types) {
            None => self.others.return_field_from_args(arguments),
            Some(_) => {
                let nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
                Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
            }
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.others.documentation()
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.others.output_ordering(inputs)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let Some((precision, scale)) = decimal(&types) else {
            return self.others.invoke_with_args(arguments);
        };
        let unit = 10_i128.pow(scale);
        let argument = &arguments.args[0];
        let is_scalar = matches!(argument, ColumnarValue::Scalar(_));
        let numbers = argument.to_array(if is_scalar { 1 } else { arguments.number_rows })?;
        let whole = numbers
            .as_primitive::<Decimal128Type>()
            .unary::<_, Decimal128Type>(|number| self.to.of(number, unit))
            .with_precision_and_scale(precision, 0)?;
        match is_scalar {
            true => ScalarValue::try_from_array(&whole, 0).map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(Arc::new(whole))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_next_to_both_sides_of_zero() {
        let of = |number| [Whole::Above, Whole::Below, Whole::Nearest].map(|to| to.of(number, 100));
        assert_eq!(of(99_950), [1000, 999, 1000]);
        assert_eq!(of(-99_950), [-999, -1000, -1000]);
        assert_eq!(of(149), [2, 1, 1]);
        assert_eq!(of(-149), [-1, -2, -1]);
        assert_eq!(of(200), [2, 2, 2]);
    }
}
