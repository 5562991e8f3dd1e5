//! `list_has_all` and `list_has_any`: NULLs in the second list do not count, and NULL in place of a list makes NULL.
//!
//! DataFusion finds a NULL in another one, and takes a NULL that is constant for an empty list.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{filter, is_not_null};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use datafusion_functions_nested::array_has::{array_has_all_udf, array_has_any_udf};

use crate::around::as_others;

pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    [array_has_all_udf(), array_has_any_udf()]
        .map(|others| Arc::new(ScalarUDF::from(HasLists { others })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct HasLists {
    others: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for HasLists {
    as_others!();

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_array = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Array(_));
        let is_constant = !arguments.args.iter().any(is_array);
        let rows = if is_constant { 1 } else { arguments.number_rows };
        if arguments.args.iter().any(|argument| argument.data_type().is_null()) {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        }
        let mut nulls = None;
        for (place, argument) in arguments.args.iter_mut().enumerate() {
            let lists = argument.to_array(rows)?;
            nulls = NullBuffer::union(nulls.as_ref(), lists.logical_nulls().as_ref());
            *argument = ColumnarValue::Array(match place {
                0 => lists,
                _ => without_nulls(lists)?,
            });
        }
        arguments.number_rows = rows;
        let has = self.others.invoke_with_args(arguments)?.into_array(rows)?;
        let has: ArrayRef = match has.as_boolean_opt() {
            Some(has) => Arc::new(BooleanArray::new(has.values().clone(), nulls)),
            None => has,
        };
        match is_constant {
            true => ScalarValue::try_from_array(&has, 0).map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(has)),
        }
    }
}

/// The lists without the elements that are NULL.
fn without_nulls(lists: ArrayRef) -> Result<ArrayRef> {
    let (DataType::List(element), Some(of)) = (lists.data_type(), lists.as_list_opt::<i32>())
    else {
        return Ok(lists);
    };
    if of.values().null_count() == 0 {
        return Ok(lists);
    }
    let valid = is_not_null(of.values())?;
    let lengths = of.offsets().windows(2).map(|bounds| {
        let (start, length) = (bounds[0] as usize, (bounds[1] - bounds[0]) as usize);
        valid.slice(start, length).true_count()
    });
    let offsets = OffsetBuffer::from_lengths(lengths);
    let first = of.offsets()[0] as usize;
    let used = of.offsets()[of.len()] as usize - first;
    let values = filter(&of.values().slice(first, used), &valid.slice(first, used))?;
    let nulls = of.nulls().cloned();
    Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, values, nulls)?))
}
