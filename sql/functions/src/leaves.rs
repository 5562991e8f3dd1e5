//! Lists, structs and maps, changed in the plain values that they hold.
//!
//! A change is for a target type, whose lists, structs and maps are followed beside those of the source. Fields of structs
//! are paired by name. Values without a counterpart stay as they are.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use arrow::error::ArrowError;

/// Whether a pair of plain types is `wanted`.
pub fn any(
    source: &DataType,
    target: &DataType,
    wanted: &dyn Fn(&DataType, &DataType) -> bool,
) -> bool {
    match (source, target) {
        (DataType::List(here), DataType::List(there))
        | (DataType::Map(here, _), DataType::Map(there, _)) => {
            any(here.data_type(), there.data_type(), wanted)
        }
        (DataType::Struct(here), DataType::Struct(there)) => {
            let mut pairs = here.iter().filter_map(|field| Some((field, named(there, field)?)));
            pairs.any(|(here, there)| any(here.data_type(), there.data_type(), wanted))
        }
        (source, target) => wanted(source, target),
    }
}

/// The type of values of type `source` whose plain values have been changed by [`map`], with a function that makes
/// values of type `leaf`.
pub fn map_type(
    source: &DataType,
    target: &DataType,
    leaf: &dyn Fn(&DataType, &DataType) -> DataType,
) -> DataType {
    let field = |here: &FieldRef, there: &FieldRef| {
        let changed = map_type(here.data_type(), there.data_type(), leaf);
        Arc::new(Field::clone(here).with_data_type(changed))
    };
    match (source, target) {
        (DataType::List(here), DataType::List(there)) => DataType::List(field(here, there)),
        (DataType::Map(here, is_sorted), DataType::Map(there, _)) => {
            DataType::Map(field(here, there), *is_sorted)
        }
        (DataType::Struct(here), DataType::Struct(there)) => {
            let fields = here.iter().map(|of| match named(there, of) {
                Some(there) => field(of, there),
                None => Arc::clone(of),
            });
            DataType::Struct(fields.collect())
        }
        (source, target) => leaf(source, target),
    }
}

/// The values with their plain values changed by `leaf`, which is given those of one type and their target.
pub fn map<E: From<ArrowError>>(
    values: &ArrayRef,
    target: &DataType,
    leaf: &dyn Fn(&ArrayRef, &DataType) -> Result<ArrayRef, E>,
) -> Result<ArrayRef, E> {
    Ok(match (values.data_type(), target) {
        (DataType::List(here), DataType::List(there)) => {
            let lists = values.as_list::<i32>();
            let (offsets, elements) = used(lists.offsets(), lists.values());
            let elements = map(&elements, there.data_type(), leaf)?;
            let element = Field::clone(here).with_data_type(elements.data_type().clone());
            let nulls = lists.nulls().cloned();
            Arc::new(ListArray::try_new(Arc::new(element), offsets, elements, nulls)?)
        }
        (DataType::Map(here, is_sorted), DataType::Map(there, _)) => {
            let maps = values.as_map();
            let entries: ArrayRef = Arc::new(maps.entries().clone());
            let (offsets, entries) = used(maps.offsets(), &entries);
            let entries = map(&entries, there.data_type(), leaf)?;
            let field = Field::clone(here).with_data_type(entries.data_type().clone());
            let (entries, nulls) = (entries.as_struct().clone(), maps.nulls().cloned());
            Arc::new(MapArray::try_new(Arc::new(field), offsets, entries, nulls, *is_sorted)?)
        }
        (DataType::Struct(here), DataType::Struct(there)) => {
            let structs = values.as_struct();
            let (mut fields, mut columns) = (Vec::with_capacity(here.len()), Vec::new());
            for (field, column) in here.iter().zip(structs.columns()) {
                let column = match named(there, field) {
                    Some(there) => map(column, there.data_type(), leaf)?,
                    None => Arc::clone(column),
                };
                fields.push(Field::clone(field).with_data_type(column.data_type().clone()));
                columns.push(column);
            }
            let (length, nulls) = (structs.len(), structs.nulls().cloned());
            Arc::new(StructArray::try_new_with_length(fields.into(), columns, nulls, length)?)
        }
        (_, target) => leaf(values, target)?,
    })
}

/// The elements that lists refer to, without those before and after them.
pub(crate) fn used(
    offsets: &OffsetBuffer<i32>,
    elements: &ArrayRef,
) -> (OffsetBuffer<i32>, ArrayRef) {
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    if first == 0 && last as usize == elements.len() {
        return (offsets.clone(), Arc::clone(elements));
    }
    let elements = elements.slice(first as usize, (last - first) as usize);
    let offsets = offsets.iter().map(|offset| offset - first).collect::<Vec<_>>();
    (OffsetBuffer::new(offsets.into()), elements)
}

/// The field of the target that is paired with a field.
fn named<'a>(fields: &'a Fields, field: &Field) -> Option<&'a FieldRef> {
    fields.iter().find(|other| other.name() == field.name())
}
