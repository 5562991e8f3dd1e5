//! Functions that only the planner calls.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Fields, Float32Type, Float64Type,
};
use datafusion_common::{Result, exec_datafusion_err, internal_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// `round(x, target)`: whole numbers, still of a type with fractions, in place of those that a cast to the type of `target`
/// makes integers. A DECIMAL is rounded half away from zero, and floating point numbers half to the even one.
pub(super) static ROUND: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("round_to_whole", Act::Round));

/// `in_precision(x)`: a DECIMAL if it has no more digits than its type, and an error otherwise.
pub(super) static IN_PRECISION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Number::function("in_precision", Act::CheckPrecision));

/// Whether `called` is one of the functions of this module.
pub(super) fn is_called(called: &Arc<ScalarUDF>, function: &LazyLock<Arc<ScalarUDF>>) -> bool {
    Arc::ptr_eq(called, function)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Round,
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
        let arguments = match act {
            Act::Round => 2,
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
        Ok(match arguments {
            [number, target] => rounded_type(number, target),
            arguments => arguments[0].clone(),
        })
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = arguments.arg_fields[0].is_nullable();
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let argument = &arguments.args[0];
        let is_scalar = matches!(argument, ColumnarValue::Scalar(_));
        let values = argument.to_array(if is_scalar { 1 } else { arguments.number_rows })?;
        let values = match (self.act, arguments.arg_fields.get(1)) {
            (Act::Round, Some(target)) => rounded(&values, target.data_type())?,
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
    match (source, target) {
        (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale), target) => {
            target.is_integer() && *scale > 0
        }
        (DataType::List(here), DataType::List(there)) => {
            loses_fraction(here.data_type(), there.data_type())
        }
        (DataType::Struct(here), DataType::Struct(there)) => {
            let mut pairs = here.iter().filter_map(|field| Some((field, named(there, field)?)));
            pairs.any(|(here, there)| loses_fraction(here.data_type(), there.data_type()))
        }
        (source, target) => source.is_floating() && target.is_integer(),
    }
}

/// The field of the target of a cast that gets the values of a field.
fn named<'a>(fields: &'a Fields, field: &Field) -> Option<&'a FieldRef> {
    fields.iter().find(|other| other.name() == field.name())
}

/// The type that holds rounded numbers.
fn rounded_type(source: &DataType, target: &DataType) -> DataType {
    let whole_digits = |precision: u8, scale: i8| precision - scale.unsigned_abs() + 1;
    let rounded_field = |here: &FieldRef, there: &FieldRef| {
        let rounded = rounded_type(here.data_type(), there.data_type());
        Arc::new(Field::clone(here).with_data_type(rounded))
    };
    match (source, target) {
        (source, target) if !loses_fraction(source, target) => source.clone(),
        (DataType::Decimal128(precision, scale), _) => {
            DataType::Decimal128(whole_digits(*precision, *scale), 0)
        }
        (DataType::Decimal256(precision, scale), _) => {
            DataType::Decimal256(whole_digits(*precision, *scale), 0)
        }
        (DataType::List(here), DataType::List(there)) => DataType::List(rounded_field(here, there)),
        (DataType::Struct(here), DataType::Struct(there)) => {
            let fields = here.iter().map(|field| match named(there, field) {
                Some(there) => rounded_field(field, there),
                None => Arc::clone(field),
            });
            DataType::Struct(fields.collect())
        }
        (source, _) => source.clone(),
    }
}

fn rounded(values: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let source = values.data_type();
    Ok(match (source, target) {
        (source, target) if !loses_fraction(source, target) => Arc::clone(values),
        (DataType::Float32, _) => Arc::new(
            values.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even),
        ),
        (DataType::Float64, _) => Arc::new(
            values.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even),
        ),
        (DataType::List(element), DataType::List(wanted)) => {
            let lists = values.as_list::<i32>();
            let elements = rounded(lists.values(), wanted.data_type())?;
            let element = Field::clone(element).with_data_type(elements.data_type().clone());
            let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::new(element), offsets, elements, nulls)?)
        }
        (DataType::Struct(fields), DataType::Struct(wanted)) => {
            let (structs, mut columns) = (values.as_struct(), Vec::with_capacity(fields.len()));
            for (field, column) in fields.iter().zip(structs.columns()) {
                columns.push(match named(wanted, field) {
                    Some(wanted) => rounded(column, wanted.data_type())?,
                    None => Arc::clone(column),
                });
            }
            let DataType::Struct(fields) = rounded_type(source, target) else {
                return internal_err!("a struct is rounded to a struct");
            };
            let (length, nulls) = (structs.len(), structs.nulls().cloned());
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls, length)?)
        }
        _ => cast(values, &rounded_type(source, target))?,
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
