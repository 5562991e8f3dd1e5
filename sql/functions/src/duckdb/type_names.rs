//! `typeof`: the name of a type.

use std::sync::Arc;

use alluvium_dataflow::messages::wording::type_name;
use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::ScalarUDF;

use super::plain::{Plain, wrong_number};

pub(super) fn function() -> Arc<ScalarUDF> {
    let one = |arguments: &[DataType]| match arguments {
        [_] => Ok(arguments.to_vec()),
        _ => wrong_number(1, 1, arguments.len()),
    };
    Plain::function(&["typeof", "pg_typeof"], one, |_| DataType::Utf8, names)
}

fn names(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let name = type_name(arguments[0].data_type());
    Ok(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, arguments[0].len()))))
}
