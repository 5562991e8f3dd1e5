//! SQL types as columns.

use alluvium_sql::statement::StatementKind;
use arrow::datatypes::{DataType, TimeUnit};

use crate::fixture::statement;

#[test]
fn types_are_those_of_datafusion_with_one_string_type() {
    let (nanoseconds, microseconds) = (TimeUnit::Nanosecond, TimeUnit::Microsecond);
    for (sql, expected) in [
        ("BOOLEAN", DataType::Boolean),
        ("TINYINT", DataType::Int8),
        ("SMALLINT", DataType::Int16),
        ("INT", DataType::Int32),
        ("INTEGER", DataType::Int32),
        ("BIGINT", DataType::Int64),
        ("BIGINT UNSIGNED", DataType::UInt64),
        ("INT UNSIGNED", DataType::UInt32),
        ("REAL", DataType::Float32),
        ("FLOAT", DataType::Float32),
        ("DOUBLE", DataType::Float64),
        ("DOUBLE PRECISION", DataType::Float64),
        ("DECIMAL(12, 3)", DataType::Decimal128(12, 3)),
        ("VARCHAR", DataType::Utf8),
        ("VARCHAR(10)", DataType::Utf8),
        ("TEXT", DataType::Utf8),
        ("CHAR(3)", DataType::Utf8),
        ("BYTEA", DataType::Binary),
        ("DATE", DataType::Date32),
        ("TIME", DataType::Time64(nanoseconds)),
        ("TIMESTAMP", DataType::Timestamp(microseconds, None)),
        ("TIMESTAMPTZ", DataType::Timestamp(microseconds, Some("+00:00".into()))),
        ("TIMESTAMP WITH TIME ZONE", DataType::Timestamp(microseconds, Some("+00:00".into()))),
    ] {
        let text = format!("CREATE TABLE t (a {sql})");
        let StatementKind::CreateTable(table) = statement(&text).unwrap().kind else {
            panic!("a table")
        };
        assert_eq!(*table.schema.field(0).data_type(), expected, "{sql}");
    }
}
