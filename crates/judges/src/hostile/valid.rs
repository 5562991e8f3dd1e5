//! Valid files of every format, with rows of every type.

use alluvium::Engine;

/// A file, and the columns of a table that can hold its rows.
#[derive(Clone, Debug)]
pub(super) struct Valid {
    /// The extension of its name, after the dot.
    pub(super) extension: &'static str,
    pub(super) bytes: Vec<u8>,
    pub(super) columns: &'static str,
}

/// Tables: columns, and a row, in which `#` is its number, and `@` a number from 10 to 28.
const TABLES: [(&str, &str); 3] = [
    (
        "id BIGINT, flag BOOLEAN, name TEXT, price DOUBLE, amount DECIMAL(20, 2), day DATE, at TIMESTAMP",
        "#, TRUE, 'näme \" #, x', #.25, -#.75, '2026-01-@', '2026-01-02 03:04:@.67890#'",
    ),
    (
        "id BIGINT, tags TEXT[], point STRUCT<x INT, y TEXT>, grid BIGINT[][], bits SMALLINT, r REAL",
        "#, ['a', NULL, 'b#'], {'x': #, 'y': 'why'}, [[1, #], [], NULL], @, #.5",
    ),
    ("a INT, b TEXT", "@, 'line\n# long long long long long long long'"),
];

/// File names' ends, and options to write them with.
const FORMATS: [(&str, &str); 11] = [
    ("csv", ""),
    ("csv", "(HEADERS false)"),
    ("csv.gz", ""),
    ("jsonl", ""),
    ("jsonl.gz", ""),
    ("json", ""),
    ("parquet", "(COMPRESSION none)"),
    ("parquet", "(COMPRESSION snappy)"),
    ("parquet", "(COMPRESSION gzip)"),
    ("parquet", "(COMPRESSION zstd)"),
    ("parquet", "(COMPRESSION lz4)"),
];

/// The number of rows of a file.
const ROWS: usize = 300;

/// Files that the engine itself has written.
pub(super) fn files() -> Vec<Valid> {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no folder for files: {error}"));
    let engine = alluvium_connect::formats(Engine::builder().workers(1))
        .open_in_memory()
        .unwrap_or_else(|error| panic!("no engine: {error}"));
    let run = |sql: String| {
        engine.execute(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    };
    let mut files = Vec::new();
    for (table, (columns, row)) in TABLES.into_iter().enumerate() {
        run(format!("CREATE TABLE t{table} ({columns})"));
        let row_of = |number: usize| {
            let row = row.replace('#', &number.to_string());
            format!("({})", row.replace('@', &(10 + number % 19).to_string()))
        };
        let rows: Vec<String> = (0..ROWS).map(row_of).collect();
        run(format!("INSERT INTO t{table} VALUES {}", rows.join(", ")));
        for (format, (extension, options)) in FORMATS.into_iter().enumerate() {
            let path = folder.path().join(format!("{table}-{format}.{extension}"));
            run(format!(
                "COPY (SELECT * FROM t{table} ORDER BY 1, 2) TO '{}' {options}",
                path.display()
            ));
            let bytes =
                std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            files.push(Valid { extension, bytes, columns });
        }
    }
    files
}
