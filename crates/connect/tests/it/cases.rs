//! Files as people have them, which engines were reported to read wrong, and their right values.

use crate::workspace::Workspace;

/// Files, statements of which the last is a query, and its rows.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);

const CASES: [Case<'_>; 19] = [
    // Members in any case.
    (
        &[("a.jsonl", "{\"Name\": \"x\", \"ID\": 1}\n{\"name\": \"y\", \"id\": 2}\n")],
        "CREATE TABLE t (id INT, name TEXT); COPY t FROM 'a.jsonl'; SELECT * FROM t",
        &["1|x", "2|y"],
    ),
    // A member that is a number in one row, and a text or an object in another.
    (
        &[(
            "a.jsonl",
            "{\"id\": 1, \"v\": 5, \"p\": {\"k\": 1}}\n{\"id\": 2, \"v\": \"six\", \"p\": [1, 2]}\n{\"id\": 3, \"v\": true, \"p\": \"text\"}\n",
        )],
        "CREATE TABLE t (id INT, v TEXT, p TEXT); COPY t FROM 'a.jsonl'; SELECT * FROM t",
        &["1|5|{\"k\": 1}", "2|six|[1, 2]", "3|true|text"],
    ),
    (
        &[(
            "b.jsonl",
            "{\"f\": true, \"n\": 1}\n{\"f\": 1, \"n\": 2.0}\n{\"f\": \"no\", \"n\": \"3\"}\n",
        )],
        "CREATE TABLE u FROM 'b.jsonl'; SELECT f, n FROM u",
        &["1|2.0", "no|3", "true|1"],
    ),
    // Times without seconds, with slashes, and with digits left out.
    (
        &[(
            "a.csv",
            "1,2025-01-02 03:04\n2,2025-01-02T03:04Z\n3,2025/01/02 03:04:05\n4,2025-1-2 3:04:05\n",
        )],
        "CREATE TABLE t (id INT, x TIMESTAMP); COPY t FROM 'a.csv'; SELECT * FROM t",
        &[
            "1|2025-01-02T03:04:00",
            "2|2025-01-02T03:04:00",
            "3|2025-01-02T03:04:05",
            "4|2025-01-02T03:04:05",
        ],
    ),
    // Columns that tables cannot have beside one that is read.
    (&[], "SELECT id FROM 'pyarrow/a-duration-beside.parquet'", &["1", "2", "3", "4"]),
    (&[], "SELECT id FROM 'polars/brotli.parquet'", &["1", "2", "3", "4"]),
    (
        &[],
        "CREATE TABLE t FROM 'pyarrow/date64.parquet'; SELECT d - 1 FROM t WHERE id = 1",
        &["2024-02-28"],
    ),
    // A line that names the separator, and ends of lines of old spreadsheets.
    (&[("a.csv", "sep=;\r\nid;v\r\n1;2\r\n")], "SELECT v, id FROM 'a.csv'", &["2|1"]),
    (&[("a.csv", "a,b\rone,1\rtwo,2\r")], "SELECT a, b + 1 FROM 'a.csv'", &["one|2", "two|3"]),
    (&[("a.tsv", "id\tv\n1\tx\n")], "SELECT v, id FROM 'a.tsv'", &["x|1"]),
    // MySQL's and Hive's escapes.
    (
        &[("a.csv", "a,b\n1,\"say \\\"hi\\\"\"\n2,\"x\"\n")],
        "CREATE TABLE t FROM 'a.csv' (ESCAPE '\\'); SELECT * FROM t",
        &["1|say \"hi\"", "2|x"],
    ),
    // A name twice in a header, as exports of joins have it.
    (&[("a.csv", "id,id,v\n1,2,3\n")], "SELECT id_1, id, v FROM 'a.csv'", &["2|1|3"]),
    // Objects over several lines, and several on one.
    (&[("a.json", "{\n \"a\": 1\n}\n{\n \"a\": 2\n}\n")], "SELECT a FROM 'a.json'", &["1", "2"]),
    (&[("a.json", "{\"a\":1}{\"a\":2}\n")], "SELECT a FROM 'a.json'", &["1", "2"]),
    // Options in a query.
    (&[("a.csv", "a;b\n1;2\n")], "SELECT b FROM 'a.csv' (DELIMITER ';')", &["2"]),
    // Numbers of many digits inside of JSON.
    (
        &[("a.jsonl", "{\"id\": 1, \"j\": {\"wei\": 12345678901234567890123}}\n")],
        "CREATE TABLE t (id INT, j TEXT); COPY t FROM 'a.jsonl'; \
         SELECT CAST(j ->> 'wei' AS DECIMAL(38, 0)), json_extract(j, '$.wei') FROM t",
        &["12345678901234567890123|12345678901234567890123"],
    ),
    (
        &[("a.jsonl", "{\"wei\": 12345678901234567890123}\n{\"wei\": 1}\n")],
        "SELECT wei FROM 'a.jsonl'",
        &["1", "12345678901234567890123"],
    ),
    // Dates with blanks around them.
    (
        &[("a.csv", "id,d,n\n1, 2024-02-29, 1\n2,2024-02-29 ,2 \n")],
        "CREATE TABLE t (id INT, d DATE, n INT); COPY t FROM 'a.csv'; SELECT * FROM t",
        &["1|2024-02-29|1", "2|2024-02-29|2"],
    ),
    (
        &[("a.csv", "id,d\n1, 2024-02-29\n2,2024-02-29 \n")],
        "CREATE TABLE t (id INT, d TEXT); COPY t FROM 'a.csv'; SELECT id, TRY_CAST(d AS DATE) FROM t",
        &["1|2024-02-29", "2|2024-02-29"],
    ),
];

#[test]
fn files_have_their_right_values() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let mut wrong = Vec::new();
    for (files, sql, expected) in CASES {
        let mut workspace = Workspace::new();
        if files.is_empty() {
            workspace.session.set_base(corpus);
        }
        for (name, content) in files {
            workspace.file(name, content);
        }
        let found = workspace.try_query(sql);
        if found.as_ref().map(|rows| rows.iter().eq(expected)) != Ok(true) {
            wrong.push(format!("{sql}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
