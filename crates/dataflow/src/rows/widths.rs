//! How long the values of a column are.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;

/// The bytes of each value; of nested types other than lists each value has the average.
pub(crate) fn widths(column: &ArrayRef) -> Vec<usize> {
    match column.data_type() {
        DataType::Utf8 => of_offsets(column.as_string::<i32>().value_offsets(), 1),
        DataType::Binary => of_offsets(column.as_binary::<i32>().value_offsets(), 1),
        DataType::List(_) => {
            let list = column.as_list::<i32>();
            let offsets = list.value_offsets();
            let (first, last) = (offsets[0] as usize, offsets[list.len()] as usize);
            of_offsets(offsets, average(&list.values().slice(first, last - first)))
        }
        _ => vec![average(column); column.len()],
    }
}

/// The average bytes of a value, rounded up.
pub(crate) fn average(column: &ArrayRef) -> usize {
    let bytes = column.to_data().get_slice_memory_size().unwrap_or(0);
    bytes.div_ceil(column.len().max(1))
}

fn of_offsets(offsets: &[i32], unit: usize) -> Vec<usize> {
    // Offsets ascend.
    offsets.windows(2).map(|pair| size_of::<i32>() + (pair[1] - pair[0]) as usize * unit).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, ListArray, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn each_value_has_its_own_length() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("abc"), None, Some("")]));
        assert_eq!(widths(&texts), [7, 4, 4]);
        assert_eq!(widths(&texts.slice(1, 2)), [4, 4]);
        let lists = [Some(vec![Some(1)]), None, Some(vec![Some(2), Some(3)])];
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
        let bytes = widths(&lists.slice(1, 2));
        assert!(bytes[0] == 4 && bytes[1] >= 20, "{bytes:?}");
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        assert_eq!(widths(&numbers), [8, 8]);
    }
}
