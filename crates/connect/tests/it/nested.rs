//! Lists, structs and maps through every format.

use std::sync::Arc;

use alluvium::{Sink, SinkRequest, Source, SourceRequest, Visibility};
use alluvium_connect::{Csv, Json, Parquet};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use arrow::json::ReaderBuilder;
use tempfile::TempDir;

const ROWS: &str = r#"
    {"n": 1, "list": [1, null, 3], "pair": {"x": 1, "y": "a \"b\", c"}, "map": {"k": [1.5]}}
    {"n": 2, "list": [], "pair": {"x": null, "y": ""}, "map": {}}
    {"n": 3, "list": null, "pair": null, "map": null}"#;

fn rows() -> RecordBatch {
    let list = |kind| DataType::new_list(kind, true);
    let pair = Fields::from(vec![
        Field::new("x", DataType::Int32, true),
        Field::new("y", DataType::Utf8, true),
    ]);
    let entry = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", list(DataType::Float64), true),
    ]);
    let entries = Field::new("entries", DataType::Struct(entry), false);
    let schema = Arc::new(Schema::new(vec![
        Field::new("n", DataType::Int32, false),
        Field::new("list", list(DataType::Int64), true),
        Field::new("pair", DataType::Struct(pair), true),
        Field::new("map", DataType::Map(Arc::new(entries), false), true),
    ]));
    ReaderBuilder::new(schema).build(ROWS.as_bytes()).unwrap().next().unwrap().unwrap()
}

#[test]
fn what_is_written_is_read_back() {
    let rows = rows();
    let schema = rows.schema();
    const ARRAY: Json = Json::ARRAY;
    const LINES: Json = Json::LINES;
    let formats: [(&dyn Sink, &dyn Source); 4] =
        [(&Csv, &Csv), (&ARRAY, &ARRAY), (&LINES, &LINES), (&Parquet, &Parquet)];
    for (sink, source) in formats {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("file");
        let request = SinkRequest::new(&path, schema.clone(), Visibility::WhenFinished);
        let mut writer = sink.create(&request).unwrap();
        writer.write(&rows.slice(0, 1)).unwrap();
        writer.write(&rows.slice(1, 2)).unwrap();
        writer.finish().unwrap();
        let mut request = SourceRequest::new(path, schema.clone());
        request.batch_rows = 2;
        let mut reader = source.open(&request).unwrap();
        let mut read = Vec::new();
        while let Some(portion) = reader.next().unwrap() {
            assert_eq!(portion.refused, [], "{}", source.name());
            read.push(portion.rows);
        }
        assert_eq!(concat_batches(&schema, &read).unwrap(), rows, "{}", source.name());
    }
}
