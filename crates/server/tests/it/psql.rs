//! psql, Postgres's own client. Where it is not installed these tests do nothing, unless `ALLUVIUM_PSQL` is set.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::served::{Served, served};

/// psql, where it is installed.
pub(crate) fn psql() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = installed.map(|version| version.path().join("bin/psql"));
    let found = versions.chain([PathBuf::from("/usr/bin/psql")]).find(|path| path.exists());
    assert!(
        found.is_some() || std::env::var_os("ALLUVIUM_PSQL").is_none(),
        "psql is not installed"
    );
    found
}

/// What psql prints for this input.
pub(crate) fn printed(psql: &PathBuf, served: &Served, options: &[&str], input: &str) -> String {
    let mut child = Command::new(psql)
        .args(["-X", "-h", "127.0.0.1", "-U", "someone", "-d", "alluvium", "-p"])
        .arg(served.address().port().to_string())
        .args(options)
        .env("PSQLRC", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("its input");
    let output = child.wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn statements_show_their_rows_and_tags() {
    let Some(psql) = psql() else { return };
    let input = "\
CREATE TABLE bid (auction BIGINT, price DECIMAL(10, 2), at TIMESTAMP, ok BOOLEAN);
INSERT INTO bid VALUES (1, 9.5, TIMESTAMP '2026-11-28 12:00:00', true), (2, 19, NULL, false);
CREATE MATERIALIZED VIEW best AS SELECT auction, MAX(price) AS price FROM bid GROUP BY auction;
SELECT * FROM bid ORDER BY auction;
SELECT * FROM best ORDER BY auction;
UPDATE bid SET price = price + 1 WHERE auction = 1;
DELETE FROM bid WHERE auction = 2;
SELECT price FROM best;
";
    assert_eq!(
        printed(&psql, &served(), &[], input),
        "\
CREATE TABLE
INSERT 0 2
CREATE MATERIALIZED VIEW
 auction | price |         at          | ok 
---------+-------+---------------------+----
       1 |  9.50 | 2026-11-28 12:00:00 | t
       2 | 19.00 |                     | f
(2 rows)

 auction | price 
---------+-------
       1 |  9.50
       2 | 19.00
(2 rows)

UPDATE 1
DELETE 1
 price 
-------
 10.50
(1 row)

"
    );
}

#[test]
fn errors_have_a_caret() {
    let Some(psql) = psql() else { return };
    assert_eq!(
        printed(&psql, &served(), &[], "SELECT 1 AS one,\n  nothing;\n"),
        "\
ERROR:  no column \"nothing\"
LINE 2:   nothing;
          ^
"
    );
}

#[test]
fn rows_are_copied_in_and_out() {
    let Some(psql) = psql() else { return };
    let input = "\
CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR);
COPY t FROM STDIN;
1\tone
2\t\\N
3\ta\\tb
\\.
COPY t FROM STDIN WITH (FORMAT csv, HEADER);
k,v
4,\"four, quoted\"
5,
\\.
COPY t TO STDOUT;
COPY (SELECT v, k FROM t WHERE k > 3) TO STDOUT (FORMAT csv, HEADER);
COPY t FROM STDIN;
6\tsix
1\tanother
\\.
SELECT COUNT(*) FROM t;
";
    let text = printed(&psql, &served(), &["-At"], input);
    let (copied, rest) = text.split_once("ERROR").unwrap_or((&text, ""));
    assert_eq!(
        copied.lines().collect::<Vec<_>>(),
        [
            "CREATE TABLE",
            "COPY 3",
            "COPY 2",
            "1\tone",
            "2\t\\N",
            "3\ta\\tb",
            "4\tfour, quoted",
            "5\t\\N",
            "v,k",
            "\"four, quoted\",4",
            ",5",
            "5",
        ],
        "{text}"
    );
    assert!(rest.contains("1"), "{rest}");
}
