//! COPY to and from files, tables made of files, and queries of files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use alluvium::Outcome;

use crate::workspace::Workspace;

/// A table with a column of every type, and rows with the ends of their ranges.
const EVERY_TYPE: &str = "
    CREATE TABLE every (
        n BIGINT, yes BOOLEAN, tiny TINYINT, small SMALLINT, whole INTEGER, big BIGINT,
        utiny TINYINT UNSIGNED, ubig BIGINT UNSIGNED, single REAL, double DOUBLE,
        exact DECIMAL(20, 4), text VARCHAR, bytes BYTEA, day DATE, time TIME, at TIMESTAMP, moment TIMESTAMPTZ);
    INSERT INTO every VALUES
        (1, true, -128, -32768, -2147483648, CAST('-9223372036854775808' AS BIGINT), 0, 0, -1.5, 0.1,
         CAST('-1234567890123456.7891' AS DECIMAL(20, 4)), 'a \"b\", ü\n c', '\\xzz', '1969-12-31', '00:00:00', '1960-02-29T23:59:59.123456',
         '2013-01-01T10:00:00+02:00'),
        (2, false, 127, 32767, 2147483647, 9223372036854775807, 255, CAST('18446744073709551615' AS BIGINT UNSIGNED), 3.4e38, 1.7976931348623157e308,
         CAST('9999999999999999.9999' AS DECIMAL(20, 4)), '', '', '2100-02-28', '23:59:59.999999', '2261-12-31T00:00:00', '1970-01-01T00:00:00Z'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CREATE TABLE twin (
        n BIGINT, yes BOOLEAN, tiny TINYINT, small SMALLINT, whole INTEGER, big BIGINT,
        utiny TINYINT UNSIGNED, ubig BIGINT UNSIGNED, single REAL, double DOUBLE,
        exact DECIMAL(20, 4), text VARCHAR, bytes BYTEA, day DATE, time TIME, at TIMESTAMP, moment TIMESTAMPTZ);";

#[test]
fn what_is_copied_to_a_file_is_copied_back_from_it() {
    let files = ["t.csv", "t.csv.gz", "t.json", "t.json.gz", "t.jsonl", "t.jsonl.gz", "t.parquet"];
    for file in files {
        let mut workspace = Workspace::new();
        workspace.run(EVERY_TYPE);
        assert_eq!(workspace.copied(&format!("COPY every TO '{file}'")), (3, 0), "{file}");
        assert_eq!(workspace.copied(&format!("COPY twin FROM '{file}'")), (3, 0), "{file}");
        let rows = workspace.query("SELECT * FROM every");
        assert_eq!(workspace.query("SELECT * FROM twin"), rows, "{file}");
        // Nothing but the file is left.
        assert_eq!(fs::read_dir(workspace.folder.path()).unwrap().count(), 1, "{file}");
    }
}

#[test]
fn options_say_how_a_file_is_written() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (a INT, b VARCHAR); INSERT INTO t VALUES (1, 'x;y'), (2, NULL)");
    workspace.copied("COPY (SELECT * FROM t ORDER BY a) TO 'a.txt' (FORMAT csv, HEADERS false, DELIMITER ';', QUOTE '''', NULL_VALUE 'NA')");
    assert_eq!(workspace.content("a.txt"), "1;'x;y'\r\n2;NA\r\n");
    workspace.copied("COPY t (b) TO 'b.csv' WITH (COMPRESSION gzip)");
    assert_eq!(fs::read(workspace.path("b.csv")).unwrap()[..2], [0x1F, 0x8B]);
    assert_eq!(workspace.query("SELECT b FROM 'b.csv'"), ["NULL", "x;y"]);
    assert_eq!(
        workspace.problem("COPY t TO 'c.csv' (QUOTE '', DELIMITER ';')"),
        "cannot write \"c.csv\": \"x;y\" needs quotes, and QUOTE is ''"
    );
    for compression in ["none", "snappy", "gzip", "zstd", "lz4"] {
        let file = format!("{compression}.parquet");
        workspace.copied(&format!("COPY t TO '{file}' (COMPRESSION {compression})"));
        assert_eq!(workspace.query(&format!("SELECT a FROM '{file}'")), ["1", "2"]);
    }
    assert_eq!(
        workspace.problem("COPY t TO 'x.parquet' (COMPRESSION brotli)"),
        "COMPRESSION of Parquet is auto, none, snappy, gzip, zstd or lz4, not \"brotli\""
    );
    assert_eq!(
        workspace.problem("COPY t TO 'x.json' (DELIMITER ',')"),
        "no option \"DELIMITER\" for JSON; there are COMPRESSION, SAMPLE, NEW_MEMBERS and UPDATE_FORMAT"
    );
}

#[test]
fn a_file_is_replaced_when_it_is_complete_and_not_before() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)");
    workspace.file("t.csv", "what was there");
    workspace.problem("COPY (SELECT 1 / (a - 1) FROM t) TO 't.csv'");
    assert_eq!(workspace.content("t.csv"), "what was there");
    assert_eq!(
        workspace.problem("COPY t TO 'no/t.csv'"),
        "cannot write \"no/t.csv\": No such file or directory (os error 2); check the path"
    );
    fs::create_dir(workspace.path("d.csv")).unwrap();
    assert_eq!(workspace.problem("COPY t TO 'd.csv'"), "cannot write \"d.csv\": is a directory");
    workspace.copied("COPY t TO 't.csv'");
    assert_eq!(workspace.content("t.csv"), "a\r\n1\r\n");
    assert_eq!(fs::read_dir(workspace.folder.path()).unwrap().count(), 2);
}

/// The new content must not be readable by more users than the old.
#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)");
    for (file, mode) in [("t.csv", 0o600), ("t.json", 0o640), ("t.parquet", 0o666)] {
        workspace.file(file, "what was there");
        let path = workspace.path(file);
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        workspace.copied(&format!("COPY t TO '{file}'"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{file}");
    }
}

/// A process that is killed while it writes leaves a file under a temporary name.
#[test]
fn what_a_killed_process_has_left_is_removed_when_the_file_is_written_again() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (a BIGINT)");
    let others = [
        ".t.csv.12.partial",
        ".t.csv.x.0.partial",
        ".t.csv.12.3.partial.txt",
        ".u.csv.12.3.partial",
        "t.csv.12.3.partial",
    ];
    others.iter().for_each(|file| workspace.file(file, "of somebody else"));
    workspace.file(".t.csv.12.3.partial", "a\r\n");
    workspace.file(".t.csv.12.4.partial", "a\r\n");
    let held = fs::File::open(workspace.path(".t.csv.12.4.partial")).unwrap();
    held.lock().unwrap();
    workspace.copied("COPY t TO 't.csv'");
    let files = fs::read_dir(workspace.folder.path()).unwrap();
    let mut files: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    let mut expected = [&others[..], &[".t.csv.12.4.partial", "t.csv"]].concat();
    expected.sort();
    assert_eq!(files, expected);
}

#[test]
fn csv_shows_nulls_and_timestamps_as_sql_does() {
    let mut workspace = Workspace::new();
    workspace.copied(
        "COPY (SELECT NULL AS a, '' AS b, [1, NULL] AS c, X'00ff' AS d, TIMESTAMP '2013-01-01 10:00:00.5' AS e, \
         CAST('2013-01-01T10:00:00+02:00' AS TIMESTAMPTZ) AS f) TO 't.csv'",
    );
    let expected = "a,b,c,d,e,f\r\n,\"\",\"[1,null]\",\\x00ff,2013-01-01 10:00:00.500,2013-01-01 08:00:00Z\r\n";
    assert_eq!(workspace.content("t.csv"), expected);
}

#[test]
fn copy_fills_the_columns_that_are_named() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (a INT NOT NULL DEFAULT 7, b VARCHAR, c INT NOT NULL)");
    workspace.file("cb.csv", "1,x\n2,y\n");
    assert_eq!(workspace.copied("COPY t (c, b) FROM 'cb.csv'"), (2, 0));
    assert_eq!(workspace.query("SELECT * FROM t"), ["7|x|1", "7|y|2"]);
    assert_eq!(
        workspace.problem("COPY t (b, a) FROM 'cb.csv'"),
        "column \"c\" is NOT NULL and is not among the columns that are copied"
    );
    assert_eq!(workspace.problem("COPY t (c, d) FROM 'cb.csv'"), "no column \"d\" in \"t\"");
    assert_eq!(workspace.problem("COPY t (c, c) FROM 'cb.csv'"), "column \"c\" appears twice");
}

#[test]
fn a_first_line_of_nothing_but_names_is_a_header_unless_it_is_said_not_to_be() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (a VARCHAR, b VARCHAR)");
    workspace.file("t.csv", "B,a\n1,2\n");
    assert_eq!(workspace.copied("COPY t FROM 't.csv'"), (1, 0));
    assert_eq!(workspace.copied("COPY t FROM 't.csv' (HEADERS false)"), (2, 0));
    assert_eq!(workspace.query("SELECT * FROM t"), ["1|2", "2|1", "B|a"]);
}

#[test]
fn a_member_that_is_absent_gets_the_default_and_null_is_null() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (id INT, userName VARCHAR DEFAULT 'nobody')");
    workspace.file("t.jsonl", "{\"id\": 1, \"userName\": \"a\", \"more\": [1]}\n{\"id\": 2}\n{\"id\": 3, \"userName\": null}\n");
    assert_eq!(workspace.copied("COPY t FROM 't.jsonl'"), (3, 0));
    assert_eq!(workspace.query("SELECT * FROM t"), ["1|a", "2|nobody", "3|NULL"]);
}

#[test]
fn objects_that_do_not_fit_are_refused_with_their_lines() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (id INT NOT NULL, at TIMESTAMP)");
    let text = "{\"id\": 1}\n{\"id\": \"x\"}\n{\"id\": 3, \"at\": \"soon\"}\nid: 4\n{\"at\": null}\n{\"id\": 6\n{\"id\": 7, \"at\": \"2013-01-01\"}\n{\"id\": 3000000000}\n";
    workspace.file("t.jsonl", text);
    let Outcome::Copied { rows: 2, refused: 6, messages, .. } =
        workspace.run("COPY t FROM 't.jsonl'")
    else {
        panic!("two rows are right")
    };
    let lines: Vec<_> = messages.iter().map(|refusal| refusal.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 8]);
    assert_eq!(messages[3].message, "there is no value (column id is NOT NULL)");
    assert_eq!(workspace.query("SELECT * FROM t"), ["1|NULL", "7|2013-01-01T00:00:00"]);
    let errors = workspace.query("SELECT view, expression, message, epoch FROM alluvium.errors WHERE message LIKE 'there is%'");
    assert_eq!(errors, ["t|jsonl|there is no value (column id is NOT NULL)|1"]);
    workspace.run("DROP TABLE t");
    assert!(workspace.query("SELECT * FROM alluvium.errors").is_empty());
}

#[test]
fn what_a_rolled_back_copy_refused_is_forgotten() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE t (a INT)");
    workspace.file("t.csv", "1\nx\n");
    workspace.run("BEGIN; COPY t FROM 't.csv'; ROLLBACK");
    assert!(workspace.query("SELECT * FROM alluvium.errors").is_empty());
    workspace.run("BEGIN; COPY t FROM 't.csv'; COMMIT");
    assert_eq!(workspace.query("SELECT COUNT(*) FROM alluvium.errors"), ["1"]);
}

#[test]
fn parquet_is_cast_to_the_tables_types_by_name() {
    let mut workspace = Workspace::new();
    workspace.copied("COPY (VALUES (1, 300, 'a', 1.5), (2, 3, NULL, 2.5)) TO 'v.parquet'");
    workspace
        .run("CREATE TABLE t (COLUMN2 TINYINT, other INT DEFAULT 5, column3 VARCHAR NOT NULL)");
    let Outcome::Copied { rows: 0, refused: 2, messages, .. } =
        workspace.run("COPY t FROM 'v.parquet'")
    else {
        panic!("no row fits")
    };
    let messages: Vec<_> =
        messages.iter().map(|refusal| (refusal.line, refusal.message.as_str())).collect();
    let expected = [
        (1, "300 is not a TINYINT (column column2)"),
        (2, "there is no value (column column3 is NOT NULL)"),
    ];
    assert_eq!(messages, expected);
    workspace.run("CREATE TABLE u (column1 DATE)");
    assert_eq!(
        workspace.problem("COPY u FROM 'v.parquet'"),
        "\"v.parquet\": column \"column1\" is Int64 in the file, which cannot become a DATE"
    );
}

#[test]
fn a_table_can_be_made_of_a_file() {
    let mut workspace = Workspace::new();
    let rows = "id,price,day,at,ok,name,Zip\n1,0.5,2013-01-01,2013-01-01 10:00:00,true,x,01\n2,1,,,FALSE,,\n";
    workspace.file("t.csv", rows);
    assert_eq!(workspace.copied("CREATE TABLE t FROM 't.csv'"), (2, 0));
    let columns = workspace.columns("t");
    let expected = [
        "id Int64",
        "price Float64",
        "day Date32",
        "at Timestamp(µs)",
        "ok Boolean",
        "name Utf8",
        "Zip Int64",
    ];
    assert_eq!(columns, expected);
    workspace.copied("COPY t TO 't.parquet'; COPY t TO 't.jsonl'; CREATE TABLE p FROM 't.parquet'");
    assert_eq!(workspace.columns("p"), columns);
    assert_eq!(workspace.query("SELECT * FROM p"), workspace.query("SELECT * FROM t"));
    workspace.copied("CREATE TABLE j FROM 't.jsonl'");
    let expected = [
        "id Int64",
        "price Float64",
        "day Utf8",
        "at Utf8",
        "ok Boolean",
        "name Utf8",
        "Zip Int64",
    ];
    assert_eq!(workspace.columns("j"), expected);
    workspace.run("CREATE MATERIALIZED VIEW v AS SELECT SUM(price) AS total FROM p");
    assert_eq!(workspace.query("SELECT * FROM v"), ["1.5"]);
}

#[test]
fn a_file_that_makes_no_table_leaves_none() {
    let mut workspace = Workspace::new();
    workspace.file("empty.csv", "");
    assert_eq!(
        workspace.problem("CREATE TABLE t FROM 'empty.csv'"),
        "\"empty.csv\" is empty: it has no columns"
    );
    workspace.file("wrong.parquet", "PAR1 and then nothing of the kind PAR1");
    let problem = workspace.problem("CREATE TABLE t FROM 'wrong.parquet'");
    assert!(problem.starts_with("cannot read \"wrong.parquet\": "), "{problem}");
    assert!(workspace.engine.relations().unwrap().is_empty());
    workspace.run("CREATE TABLE t (a INT)");
    assert_eq!(
        workspace.problem("CREATE TABLE t FROM 'empty.csv'"),
        "there is already a table \"t\""
    );
}

#[test]
fn a_query_may_read_files() {
    let mut workspace = Workspace::new();
    workspace.file("a.csv", "k,v\n1,x\n2,y\n");
    workspace.file("b-1.jsonl", "{\"k\": 1, \"w\": 10}\n");
    workspace.file("b-2.jsonl", "{\"k\": 3, \"w\": 30}\n");
    assert_eq!(workspace.query("SELECT v FROM 'a.csv' WHERE k > 1"), ["y"]);
    assert_eq!(
        workspace
            .query("SELECT a.v, b.w FROM 'a.csv' AS a FULL JOIN 'b-*.jsonl' AS b ON a.k = b.k"),
        ["NULL|30", "x|10", "y|NULL"]
    );
    assert_eq!(
        workspace.query("SELECT (SELECT MAX(w) FROM 'b-*.jsonl') AS most, COUNT(*) FROM 'a.csv'"),
        ["30|2"]
    );
    workspace.run("CREATE TABLE t (k BIGINT, v VARCHAR); INSERT INTO t SELECT * FROM 'a.csv'");
    assert_eq!(workspace.query("SELECT COUNT(*) FROM t JOIN 'a.csv' AS a ON a.k = t.k"), ["2"]);
    workspace.copied("COPY (SELECT * FROM 'a.csv' WHERE k = 1) TO 'one.csv'");
    assert_eq!(workspace.content("one.csv"), "k,v\r\n1,x\r\n");
}

#[test]
fn a_query_of_a_file_fails_at_a_row_that_cannot_be_read() {
    let mut workspace = Workspace::new();
    workspace.file("a.csv", "k,v\n1,x\n2\n");
    assert_eq!(
        workspace.problem("SELECT * FROM 'a.csv'"),
        "a.csv:3: there are 1 fields instead of 2"
    );
}

#[test]
fn a_view_of_a_file_is_refused_where_the_file_is_named() {
    let mut workspace = Workspace::new();
    let error = workspace
        .session
        .execute("CREATE VIEW v AS\nSELECT 'a.csv' AS x FROM 'b.csv'")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a view cannot read the file 'b.csv': load it into a table with CREATE TABLE t FROM 'b.csv'"
    );
    assert_eq!(error.position(), Some((2, 26)));
    workspace.run("CREATE TABLE t (a INT)");
}

#[test]
fn parquet_inside_of_gzip_is_refused_by_name() {
    let mut workspace = Workspace::new();
    workspace.file("t.parquet.gz", b"\x1F\x8B");
    workspace.run("CREATE TABLE t (a INT)");
    let connected = "WITH (connector = 'file', path = 't.parquet.gz')";
    for statement in [
        "COPY t FROM 't.parquet.gz'".to_owned(),
        "COPY t FROM '*.gz' (FORMAT parquet)".to_owned(),
        "COPY t TO 'new.parquet.gz'".to_owned(),
        "CREATE TABLE u FROM 't.parquet.gz'".to_owned(),
        "SELECT * FROM 't.parquet.gz'".to_owned(),
        format!("CREATE TABLE v (a INT) {connected}; START"),
    ] {
        let problem = workspace.problem(&statement);
        assert!(problem.contains("a Parquet file inside of gzip is not supported"), "{problem}");
    }
    assert!(!workspace.path("new.parquet.gz").exists());
}
