//! `typeof`: the name of a type.

use std::sync::Arc;

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

/// A type as DuckDB writes it.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "\"NULL\"".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "UTINYINT".to_owned(),
        DataType::UInt16 => "USMALLINT".to_owned(),
        DataType::UInt32 => "UINTEGER".to_owned(),
        DataType::UInt64 => "UBIGINT".to_owned(),
        DataType::Float16 | DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "BLOB".to_owned(),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".to_owned(),
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".to_owned(),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element) => format!("{}[]", type_name(element.data_type())),
        DataType::FixedSizeList(element, length) => {
            format!("{}[{length}]", type_name(element.data_type()))
        }
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{} {}", field.name(), type_name(field.data_type())))
                .collect();
            format!("STRUCT({})", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let types: Vec<String> =
                    fields.iter().map(|field| type_name(field.data_type())).collect();
                format!("MAP({})", types.join(", "))
            }
            other => type_name(other),
        },
        DataType::Dictionary(_, values) => type_name(values),
        other => other.to_string(),
    }
}
