//! One representation for floats that are equal as keys.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, make_array};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::error::ArrowError;

/// Whether a float occurs in `data_type`.
pub(crate) fn has_floats(data_type: &DataType) -> bool {
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

/// `column` with -0.0 as 0.0 and every NaN as the same NaN, at any depth.
///
/// As a key -0.0 equals 0.0 and all NaN are equal; the encoding of keys compares bits.
pub(super) fn canonical_floats(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    // Adding zero makes -0.0 zero and leaves every other number as it is.
    Ok(match column.data_type() {
        DataType::Float32 => {
            let column = column.as_primitive::<Float32Type>();
            let canonical: Float32Array =
                column.unary(|x| if x.is_nan() { f32::NAN } else { x + 0.0 });
            Arc::new(canonical)
        }
        DataType::Float64 => {
            let column = column.as_primitive::<Float64Type>();
            let canonical: Float64Array =
                column.unary(|x| if x.is_nan() { f64::NAN } else { x + 0.0 });
            Arc::new(canonical)
        }
        data_type if has_floats(data_type) => {
            let data = column.to_data();
            let children = data
                .child_data()
                .iter()
                .map(|child| Ok(canonical_floats(&make_array(child.clone()))?.into_data()))
                .collect::<Result<Vec<_>, ArrowError>>()?;
            make_array(data.into_builder().child_data(children).build()?)
        }
        _ => column.clone(),
    })
}
