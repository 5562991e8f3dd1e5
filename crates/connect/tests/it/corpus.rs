//! Files that pyarrow, polars, pandas, DuckDB and fastparquet have written (`tests/corpus/make.py`): all have the same rows.

use std::fs;
use std::path::Path;

use crate::workspace::Workspace;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");

/// What has to be said of a file: what it has by itself is unclear, or is read otherwise by default.
const OPTIONS: [(&str, &str); 4] = [
    // NULL has a text of its own.
    ("duckdb/escaped.csv", "(NULL_VALUE 'NA', QUOTE '\"', ESCAPE '\\')"),
    ("polars/semicolons.csv", "(NULL_VALUE 'NA')"),
    ("pandas/semicolons.csv", "(NULL_VALUE 'NULL')"),
    // Its quotes are escaped outside of quotes, too.
    ("pandas/escaped.csv", "(QUOTE '\"', ESCAPE '\\')"),
];

/// The rows of all files.
const ROWS: [&str; 4] = [
    "1|true|0.1|a,b;c|d|2024-02-29|2024-02-29T12:34:56.789|1.25",
    "2|false|-25000000000.0|say \"hi\"|1969-12-31|1969-12-31T23:59:59|-99999.99",
    "3|NULL|3.0|two\nlines\té|NULL|NULL|NULL",
    "4|true|NULL|NULL|2024-12-01|2024-01-01T00:00:00|0.00",
];

/// The files of a writer: those that stand alone, and the folders of one that has keys.
fn files(writer: &str) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(Path::new(CORPUS).join(writer)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        files.push(match name.as_str() {
            "folders" if writer == "duckdb" => format!("{writer}/folders/*/*/*.csv"),
            "folders" => format!("{writer}/folders/*/*.parquet"),
            _ => format!("{writer}/{name}"),
        });
    }
    files.sort();
    files
}

#[test]
fn files_of_other_programs_have_their_rows() {
    let mut workspace = Workspace::new();
    workspace.session.set_base(CORPUS);
    let mut wrong = Vec::new();
    for (writer, count) in
        [("duckdb", 14), ("fastparquet", 7), ("pandas", 9), ("polars", 13), ("pyarrow", 27)]
    {
        let files = files(writer);
        assert_eq!(files.len(), count, "{writer}");
        for file in files {
            let options = OPTIONS.iter().find(|(other, _)| *other == file);
            let options = options.map_or("", |(_, options)| options);
            let columns =
                "id, b, f, s, CAST(d AS DATE), CAST(t AS TIMESTAMP), CAST(x AS DECIMAL(10, 2))";
            let found = workspace.try_query(&format!("SELECT {columns} FROM '{file}' {options}"));
            if found != Ok(ROWS.map(str::to_owned).to_vec()) {
                wrong.push(format!("{file} by a query: {found:?}"));
            }
            workspace.run(
                "DROP TABLE IF EXISTS t; CREATE TABLE t (id BIGINT, b BOOLEAN, f DOUBLE, s TEXT, d DATE, t TIMESTAMP, \
                 x DECIMAL(10, 2))",
            );
            let copied =
                workspace.try_query(&format!("COPY t FROM '{file}' {options}; SELECT * FROM t"));
            if copied != Ok(ROWS.map(str::to_owned).to_vec()) {
                wrong.push(format!("{file} by COPY: {copied:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
