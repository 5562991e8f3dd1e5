//! DECIMAL as DOUBLE.

use std::sync::Arc;

use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, DecimalType, Field};
use datafusion_common::ScalarValue;
use datafusion_expr::expr::Cast;
use datafusion_expr::{Expr, lit};

/// Whether a type is floating point, or a list of it.
pub(super) fn is_floating(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(element) => is_floating(element.data_type()),
        other => other.is_floating(),
    }
}

/// The type of the values of a DECIMAL type, or a list of one, as DOUBLE; `None` for any other type.
pub(super) fn as_double(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::List(element) => {
            let double = as_double(element.data_type())?;
            let element = Field::clone(element).with_data_type(double);
            Some(DataType::List(Arc::new(element)))
        }
        other => other.is_decimal().then_some(DataType::Float64),
    }
}

/// The expression as `data_type`, which is floating point or a list of it. A literal keeps all digits that fit.
pub(super) fn to_double(expression: Expr, data_type: DataType) -> Expr {
    match (literal(&expression), &data_type) {
        (Some(value), DataType::Float64) => lit(value),
        _ => Expr::Cast(Cast::new(Box::new(expression), data_type)),
    }
}

/// The DOUBLE nearest to a DECIMAL literal; a cast divides, which rounds twice.
pub fn literal(expression: &Expr) -> Option<f64> {
    let text = match expression {
        Expr::Literal(ScalarValue::Decimal128(Some(value), precision, scale), _) => {
            Decimal128Type::format_decimal(*value, *precision, *scale)
        }
        Expr::Literal(ScalarValue::Decimal256(Some(value), precision, scale), _) => {
            Decimal256Type::format_decimal(*value, *precision, *scale)
        }
        _ => return None,
    };
    text.parse().ok()
}
