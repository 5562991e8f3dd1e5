//! Parquet files as other programs write them.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date64Array, Decimal256Array, DurationMicrosecondArray, Int64Array,
    IntervalDayTimeArray, RecordBatch,
};
use arrow::datatypes::i256;
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression};
use parquet::file::properties::WriterProperties;

use crate::workspace::Workspace;

/// Writes columns to a file of a workspace.
fn write(workspace: &Workspace, name: &str, columns: Vec<(&str, ArrayRef)>, with: Compression) {
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_compression(with).build();
    let file = File::create(workspace.path(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_column_of_a_type_that_tables_do_not_have_hinders_no_other() {
    let mut workspace = Workspace::new();
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let long: ArrayRef = Arc::new(DurationMicrosecondArray::from(vec![3_600_000_000, 1]));
    let wide = Decimal256Array::from(vec![i256::from(5), i256::from(12)]);
    let wide: ArrayRef = Arc::new(wide.with_precision_and_scale(60, 1).unwrap());
    let interval = arrow::datatypes::IntervalDayTime::new(1, 0);
    let interval: ArrayRef = Arc::new(IntervalDayTimeArray::from(vec![interval, interval]));
    let columns = vec![("id", id), ("long", long), ("wide", wide), ("iv", interval)];
    write(&workspace, "t.parquet", columns, Compression::SNAPPY);
    assert_eq!(workspace.query("SELECT id FROM 't.parquet'"), ["1", "2"]);
    assert_eq!(workspace.query("SELECT COUNT(*) FROM 't.parquet'"), ["2"]);
    assert_eq!(workspace.query("SELECT wide, id FROM 't.parquet'"), ["0.5|1", "1.2|2"]);
    assert_eq!(workspace.query("SELECT long FROM 't.parquet' WHERE id = 1"), ["PT3600S"]);
    workspace.run("CREATE TABLE t AS SELECT wide, id FROM 't.parquet'");
    let problem = workspace.problem("SELECT * FROM 't.parquet'");
    let expected = "\"t.parquet\": column \"iv\" is INTERVAL in the file, which cannot become a VARCHAR; \
                    name the columns to read, as in SELECT a, b FROM the file, or CREATE TABLE t (a …, b …) and COPY t FROM it";
    assert_eq!(problem, expected);
}

#[test]
fn dates_of_milliseconds_are_dates_and_pages_may_be_of_brotli() {
    let mut workspace = Workspace::new();
    let date: ArrayRef = Arc::new(Date64Array::from(vec![1_709_164_800_000]));
    let brotli = Compression::BROTLI(BrotliLevel::default());
    write(&workspace, "t.parquet", vec![("d", date)], brotli);
    workspace.run("CREATE TABLE t FROM 't.parquet'");
    assert_eq!(workspace.columns("t"), ["d Date32"]);
    assert_eq!(workspace.query("SELECT * FROM t"), ["2024-02-29"]);
}
