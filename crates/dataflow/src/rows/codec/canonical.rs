//! One representation for floats that are equal as keys.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, make_array};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::error::ArrowError;

use crate::fault::{self, Fault};

/// Whether a float occurs in `data_type`.
pub fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        _ => false,
    }
}

/// `column` with every NaN as the same NaN, at any depth: SQL has one.
///
/// # Errors
/// None that is known: Arrow checks the parts of nested values that are put together again.
pub fn one_nan(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match has_other_nan(column) {
        true => with_floats(column, |x| x, |x| x),
        false => Ok(Arc::clone(column)),
    }
}

/// Whether a NaN occurs that is not the one.
fn has_other_nan(column: &ArrayRef) -> bool {
    match column.data_type() {
        DataType::Float32 => {
            let is_other = |x: &f32| x.is_nan() && x.to_bits() != f32::NAN.to_bits();
            column.as_primitive::<Float32Type>().values().iter().any(is_other)
        }
        DataType::Float64 => {
            let is_other = |x: &f64| x.is_nan() && x.to_bits() != f64::NAN.to_bits();
            column.as_primitive::<Float64Type>().values().iter().any(is_other)
        }
        data_type if has_floats(data_type) => {
            let children = column.to_data();
            children.child_data().iter().any(|child| has_other_nan(&make_array(child.clone())))
        }
        _ => false,
    }
}

/// `column` with -0.0 as 0.0 and every NaN as the same NaN, at any depth.
///
/// As a key -0.0 equals 0.0 and all NaN are equal; the encoding of keys compares bits.
///
/// # Errors
/// None that is known, as of [`one_nan`].
pub fn canonical_floats(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if fault::armed(Fault::TwoZeros) {
        return one_nan(column);
    }
    // Adding zero makes -0.0 zero and leaves every other number as it is.
    let canonical = with_floats(column, |x| x + 0.0, |x| x + 0.0)?;
    Ok(if fault::armed(Fault::ManyNans) { with_two_nans(&canonical) } else { canonical })
}

/// `column` with a sign for the NaN of every other row, which is a fault.
fn with_two_nans(column: &ArrayRef) -> ArrayRef {
    let Some(floats) = column.as_primitive_opt::<Float64Type>() else { return Arc::clone(column) };
    let signed =
        |(row, x): (usize, Option<f64>)| x.map(|x| if row % 2 == 1 && x.is_nan() { -x } else { x });
    let is_nan = |x: &f64| x.is_nan();
    match floats.values().iter().any(is_nan) {
        true => Arc::new(floats.iter().enumerate().map(signed).collect::<Float64Array>()),
        false => Arc::clone(column),
    }
}

/// `column` with other numbers and one NaN.
fn with_floats(
    column: &ArrayRef,
    single: impl Fn(f32) -> f32 + Copy,
    double: impl Fn(f64) -> f64 + Copy,
) -> Result<ArrayRef, ArrowError> {
    Ok(match column.data_type() {
        DataType::Float32 => {
            let column = column.as_primitive::<Float32Type>();
            let floats: Float32Array =
                column.unary(|x| if x.is_nan() { f32::NAN } else { single(x) });
            Arc::new(floats)
        }
        DataType::Float64 => {
            let column = column.as_primitive::<Float64Type>();
            let floats: Float64Array =
                column.unary(|x| if x.is_nan() { f64::NAN } else { double(x) });
            Arc::new(floats)
        }
        data_type if has_floats(data_type) => {
            let data = column.to_data();
            let children = data
                .child_data()
                .iter()
                .map(|child| {
                    Ok(with_floats(&make_array(child.clone()), single, double)?.into_data())
                })
                .collect::<Result<Vec<_>, ArrowError>>()?;
            make_array(data.into_builder().child_data(children).build()?)
        }
        _ => column.clone(),
    })
}
