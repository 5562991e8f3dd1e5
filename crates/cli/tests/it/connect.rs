//! The shell over a connection to a server.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::serve::Served;
use crate::shell::{Run, alluvium, done, run, run_with, write};
use crate::signals::send;

const PROGRAM: &str = "CREATE TABLE bid (auction BIGINT, price BIGINT);
    CREATE MATERIALIZED VIEW best AS SELECT auction, MAX(price) AS price FROM bid GROUP BY auction;
    COMMENT ON TABLE bid IS 'what was ''bid''';
    CREATE INDEX by_price ON bid (price);
    CREATE SCHEMA s; CREATE TABLE s.tt (a INTEGER DEFAULT 7, b VARCHAR);
    INSERT INTO bid VALUES (1, 10), (1, 30), (2, 20);";

/// Runs a test with a server and its address.
fn with_server(test: impl FnOnce(&str, &Served)) {
    let folder = TempDir::new().unwrap();
    let program = write(&folder, "program.sql", PROGRAM);
    let temporary = TempDir::new().unwrap();
    let served = Served::start(program.as_ref(), &folder.path().join("state"), temporary.path());
    test(&format!("postgresql://me@127.0.0.1:{}/alluvium", served.port), &served);
    served.end("TERM");
}

#[test]
fn statements_run_on_the_server() {
    with_server(|url, served| {
        let select = "SELECT * FROM best ORDER BY auction";
        let expected = "auction,price\r\n1,30\r\n2,20\r\n";
        let connected = ["--connect", url, "--format", "csv"];
        assert_eq!(run(&[&connected[..], &["-c", select]].concat()), done(expected));
        let socket = ["shell", "--connect", &served.folder, "--format", "csv"];
        assert_eq!(run(&[&socket[..], &["-c", select]].concat()), done(expected));
        let program =
            "INSERT INTO bid VALUES (3, 1); BEGIN; DELETE FROM bid; SELECT COUNT(*) AS n FROM bid; ROLLBACK;
             SELECT COUNT(*) AS n FROM bid; EXPLAIN SELECT 1; SET statement_timeout = '5s'; SHOW statement_timeout;";
        let found = run_with(program, &connected);
        assert_eq!((found.status, found.errors.as_str()), (Some(0), ""));
        assert!(found.output.starts_with("n\r\n0\r\nn\r\n4\r\n"), "{}", found.output);
        let many = "SELECT x, [x, NULL] AS l, x * 1.5 AS d, TIMESTAMP '2024-01-01 00:00:00' AS at FROM generate_series(1, 30000) s(x)";
        let found = run(&["--connect", url, "--format", "jsonl", "-c", many]);
        assert_eq!(found, run(&["--format", "jsonl", "-c", many]));
    });
}

#[test]
fn errors_have_their_place_in_the_program() {
    with_server(|url, _| {
        let program = "SELECT 1 AS a;\n SELECT\n  pric FROM bid;\nSELECT 2;";
        let found = run_with(program, &["--connect", url, "--format", "jsonl"]);
        let errors = "error: <stdin>:3:3: no column \"pric\" in \"bid\"; did you mean \"price\"?\n  pric FROM bid;\n  ^\n";
        let output = "{\"a\":1}\n".to_owned();
        assert_eq!(found, Run { status: Some(1), output, errors: errors.into() });
        let program = "SELECT 1; SUBSCRIBE nowhere;";
        let found = run_with(program, &["--connect", url, "--format", "csv"]);
        assert!(found.errors.contains("<stdin>:1:21: "), "{}", found.errors);
        for (statement, part) in [
            ("COPY bid FROM STDIN", ".import"),
            ("COPY bid TO STDOUT", ".output"),
            ("SELECT * FROM '/etc/passwd'", "/etc/passwd"),
            ("SELEC 1", "SELEC"),
        ] {
            let found = run(&["--connect", url, "-c", statement]);
            assert_eq!(found.status, Some(1), "{found:?}");
            assert!(found.errors.contains(part), "{}", found.errors);
        }
    });
}

#[test]
fn commands_list_relations() {
    with_server(|url, _| {
        let found = run_with(".tables\n.schema bid\n.schema nothing\n", &["--connect", url]);
        let expected = "materialized view best (auction, price)\ntable bid (auction, price)\ntable s.tt (a, b)\n\
            CREATE TABLE bid (auction BIGINT, price BIGINT);\nCREATE INDEX by_price ON bid (price);\n\
            COMMENT ON TABLE bid IS 'what was ''bid''';\n";
        assert_eq!(found.output, expected, "{}", found.errors);
        let message = "there is no table or view \"nothing\"";
        assert!(found.errors.contains(message), "{}", found.errors);
        let all = run_with(".schema\n", &["--connect", url]);
        let (bid, best) = (all.output.find("TABLE bid"), all.output.find("VIEW best"));
        assert!(bid < best && bid.is_some(), "{all:?}");
    });
}

#[test]
fn files_of_this_machine_are_imported() {
    with_server(|url, _| {
        let folder = TempDir::new().unwrap();
        let rows = write(&folder, "rows.csv", "price,auction\n5,7\n6,7\nx,8\n");
        let more = write(&folder, "more.csv", "b\none\n");
        let new = write(&folder, "new.csv", "day,n\n2024-01-01,1.5\n");
        let input = format!(
            ".mode csv\n.import {rows} bid\nSELECT * FROM best WHERE auction > 6;\n\
             .import {more} S.tt\nSELECT * FROM s.tt;\n.import {new} fresh\nSELECT * FROM fresh;\n"
        );
        let found = run_with(&input, &["--connect", url]);
        let expected = "auction,price\r\n7,6\r\na,b\r\n7,one\r\nday,n\r\n2024-01-01,1.5\r\n";
        assert_eq!((found.output.as_str(), found.status), (expected, Some(0)), "{}", found.errors);
        assert!(found.errors.contains("rows.csv:4"), "{}", found.errors);
        let found = run_with(".import nowhere.csv bid\n", &["--connect", url]);
        assert!(found.status == Some(1) && found.errors.contains("nowhere.csv"), "{found:?}");
    });
}

#[test]
fn changes_come_between_the_results_of_statements() {
    with_server(|url, _| {
        let mut shell = alluvium(&["--connect", url, "--format", "jsonl"]);
        let mut child = shell.stdin(Stdio::piped()).spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || lines.next().unwrap().unwrap();
        let epochless = |line: String| line.split_once(',').unwrap().1.to_owned();
        to.write_all(b"SUBSCRIBE best;\n").unwrap();
        let mut snapshot = [next(), next()].map(epochless);
        snapshot.sort();
        let row = |weight, auction, price| {
            format!("\"weight\":{weight},\"auction\":{auction},\"price\":{price}}}")
        };
        assert_eq!(snapshot, [row(1, 1, 30), row(1, 2, 20)]);
        for price in 40..45 {
            let insert = format!("INSERT INTO bid VALUES (1, {price});\nSELECT");
            to.write_all(insert.as_bytes()).unwrap();
            let mut changes = [next(), next()].map(epochless);
            changes.sort();
            let before = if price == 40 { 30 } else { price - 1 };
            assert_eq!(changes, [row(-1, 1, before), row(1, 1, price)]);
            to.write_all(b" 'answer' AS a;\n").unwrap();
            assert_eq!(next(), "{\"a\":\"answer\"}");
        }
        // They are followed until the view is dropped.
        drop(to);
        assert_eq!(run(&["--connect", url, "-c", "DROP MATERIALIZED VIEW best"]), done(""));
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn ctrl_c_cancels_the_statement_on_the_server() {
    with_server(|url, _| {
        let long = "SELECT COUNT(*) FROM generate_series(1, 100000) a(x), generate_series(1, 100000) b(y) WHERE x % 7 = y % 11";
        let mut child = alluvium(&["--connect", url, "-c", long]).spawn().unwrap();
        thread::sleep(Duration::from_millis(700));
        let begun = Instant::now();
        send("INT", &child);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(begun.elapsed() < Duration::from_secs(5));
        let mut follower = alluvium(&["--connect", url, "-c", "SUBSCRIBE best"]).spawn().unwrap();
        thread::sleep(Duration::from_millis(500));
        send("INT", &follower);
        assert_eq!(follower.wait().unwrap().code(), Some(130));
    });
}

#[test]
fn servers_that_are_not_there_and_wrong_addresses_are_errors() {
    for (url, status, part) in [
        ("postgresql://127.0.0.1:1/alluvium", 1, "connect"),
        ("/nowhere/at/all", 1, "connect"),
        ("http://127.0.0.1", 1, "postgresql://"),
        ("postgresql://me:secret@127.0.0.1?sslmode=verify-full", 1, "sslrootcert"),
        ("", 2, "--connect"),
    ] {
        let found = run(&["--connect", url, "-c", "SELECT 1"]);
        assert_eq!(found.status, Some(status), "{found:?}");
        assert!(found.errors.contains(part) && !found.errors.contains("secret"), "{found:?}");
    }
    let found = run(&["--connect", "postgresql://a", "--state", "x", "-c", "SELECT 1"]);
    assert_eq!(found.status, Some(2), "{found:?}");
}

#[test]
fn a_server_that_ends_is_an_error_of_the_next_statement() {
    let folder = TempDir::new().unwrap();
    let program = write(&folder, "program.sql", PROGRAM);
    let temporary = TempDir::new().unwrap();
    let served = Served::start(program.as_ref(), &folder.path().join("state"), temporary.path());
    let url = format!("postgresql://127.0.0.1:{}", served.port);
    let mut child = alluvium(&["--connect", &url]).stdin(Stdio::piped()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    to.write_all(b"SELECT 'begun' AS begun;\n").unwrap();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 40]).unwrap();
    served.end("TERM");
    to.write_all(b"SELECT 1;\n").unwrap();
    drop(to);
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{errors}");
    assert!(errors.contains("error: "), "{errors}");
}

#[test]
fn who_opens_the_state_of_a_server_is_told_to_connect() {
    let folder = TempDir::new().unwrap();
    let program = write(&folder, "program.sql", PROGRAM);
    let state = folder.path().join("state");
    let served = Served::start(program.as_ref(), &state, folder.path());
    let state = state.to_str().unwrap();
    let found = run(&["--state", state, "-c", "SELECT 1"]);
    let told = format!("connect to it with alluvium shell --connect {}", served.folder);
    assert!(found.status == Some(1) && found.errors.contains(&told), "{found:?}");
    served.end("TERM");
    assert_eq!(
        run(&["--state", state, "--format", "csv", "-c", "SELECT 1 AS a"]),
        done("a\r\n1\r\n")
    );
}
