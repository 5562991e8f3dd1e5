//! Transactions, as clients see them.

use std::io::Write;
use std::net::TcpStream;

use tokio_postgres::error::SqlState;

use super::served::{field, message, read_until_ready, served};

#[test]
fn an_error_aborts_a_transaction() {
    served().with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k INTEGER PRIMARY KEY)").await.expect("a table");
        client.batch_execute("BEGIN").await.expect("a transaction");
        client.batch_execute("INSERT INTO t VALUES (1)").await.expect("a row");
        client.batch_execute("SELECT 1 / 0").await.expect_err("a division by zero");
        let error = client.batch_execute("SELECT 1").await.expect_err("it is aborted");
        assert_eq!(error.code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION));
        client.batch_execute("COMMIT").await.expect("it is rolled back");
        let rows = client.query("SELECT * FROM t", &[]).await.expect("no rows");
        assert!(rows.is_empty());
    });
}

#[test]
fn the_status_of_a_transaction_is_sent() {
    let served = served();
    let mut stream = served.raw_logged_in();
    for (sql, status) in [
        ("BEGIN", b'T'),
        ("BEGIN", b'T'),
        ("SELECT nothing", b'E'),
        ("ROLLBACK", b'I'),
        ("ROLLBACK", b'I'),
        ("SELECT 1", b'I'),
    ] {
        let text = format!("{sql}\0");
        stream.write_all(&message(b'Q', text.as_bytes())).expect("a query");
        let answers = read_until_ready(&mut stream);
        let last = answers.last().map(|(_, body)| body.clone());
        assert_eq!(last, Some(vec![status]), "{sql}");
    }
}

#[test]
fn a_client_that_goes_leaves_nothing() {
    let served = served();
    served.with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k INTEGER PRIMARY KEY)").await.expect("a table");
    });
    let mut stream = served.raw_logged_in();
    stream.write_all(&message(b'Q', b"BEGIN; INSERT INTO t VALUES (1)\0")).expect("a query");
    read_until_ready(&mut stream);
    drop(stream);
    served.wait_for_clients(0);
    served.with_client(async |client| {
        // Nobody locks the row any more.
        client.batch_execute("INSERT INTO t VALUES (1)").await.expect("a row");
    });
}

/// A message that has a text.
fn query(sql: &str) -> Vec<u8> {
    message(b'Q', format!("{sql}\0").as_bytes())
}

/// Sends messages and reads the answers: their kinds, and the code of the first error.
fn exchange(stream: &mut TcpStream, messages: &[Vec<u8>]) -> (String, Option<String>, u8) {
    stream.write_all(&messages.concat()).expect("messages");
    let answers = read_until_ready(stream);
    let kinds = answers.iter().map(|(kind, _)| char::from(*kind)).collect();
    let error = answers.iter().find(|(kind, _)| *kind == b'E');
    let status = answers.last().and_then(|(_, body)| body.first().copied());
    (kinds, error.and_then(|(_, body)| field(body, b'C')), status.expect("a status"))
}

/// Some of these left the transaction as it was.
#[test]
fn an_error_of_any_message_aborts_a_transaction() {
    let served = served();
    let mut stream = served.raw_logged_in();
    let sync = || message(b'S', b"");
    let (parse, bind) = (|body: &[u8]| message(b'P', body), |body: &[u8]| message(b'B', body));
    exchange(&mut stream, &[query("CREATE TABLE t (k INTEGER PRIMARY KEY, v VARCHAR)")]);
    let prepared = [
        parse(b"one\0SELECT v FROM t WHERE k = $1\0\0\0"),
        parse(b"list\0SELECT [[1], [2, 3]]\0\0\0"),
        sync(),
    ];
    assert_eq!(exchange(&mut stream, &prepared).0, "11Z");
    let row = |text: &[u8]| message(b'd', text);
    let wrong: [(&str, &[Vec<u8>], &str); 20] = [
        ("a text that is no SQL", &[parse(b"\0SELEKT\0\0\0"), sync()], "42601"),
        ("a table that is not there", &[parse(b"\0SELECT * FROM none\0\0\0"), sync()], "42P01"),
        ("a name that is taken", &[parse(b"one\0SELECT 1\0\0\0"), sync()], "42P05"),
        ("a statement that is not there", &[bind(b"\0none\0\0\0\0\0\0\0"), sync()], "26000"),
        ("no values", &[bind(b"\0one\0\0\0\0\0\0\0"), sync()], "08P01"),
        (
            "too many formats",
            &[bind(b"\0one\0\0\x02\0\0\0\0\0\x01\0\0\0\x011\0\0"), sync()],
            "08P01",
        ),
        (
            "a format that is none",
            &[bind(b"\0one\0\0\x01\0\x07\0\x01\0\0\0\x011\0\0"), sync()],
            "08P01",
        ),
        (
            "too many formats of columns",
            &[bind(b"\0one\0\0\0\0\x01\0\0\0\x011\0\x02\0\0\0\0"), sync()],
            "08P01",
        ),
        ("no integer", &[bind(b"\0one\0\0\0\0\x01\0\0\0\x01x\0\0"), sync()], "22P02"),
        (
            "a portal that is there",
            &[bind(b"p\0list\0\0\0\0\0\0\0"), bind(b"p\0list\0\0\0\0\0\0\0"), sync()],
            "42P03",
        ),
        ("no statement to describe", &[message(b'D', b"Snone\0"), sync()], "26000"),
        ("no portal to describe", &[message(b'D', b"Pnone\0"), sync()], "34000"),
        ("no portal to run", &[message(b'E', b"none\0\0\0\0\0"), sync()], "34000"),
        (
            "rows that cannot be encoded",
            &[bind(b"\0list\0\0\0\0\0\0\x01\0\x01"), message(b'E', b"\0\0\0\0\0"), sync()],
            "2202E",
        ),
        ("no cursor", &[query("FETCH 1 FROM none")], "34000"),
        ("no relation", &[query("LISTEN none")], "42P01"),
        ("no SQL", &[query("SELEKT")], "42601"),
        (
            "a COPY that the client gives up",
            &[query("COPY t FROM STDIN"), message(b'f', b"enough\0")],
            "57014",
        ),
        (
            "a COPY of what is no row",
            &[query("COPY t FROM STDIN"), row(b"x\ty\n"), message(b'c', b"")],
            "22P02",
        ),
        ("an option that is none", &[query("COPY t TO STDOUT (FORMAT none)")], "22023"),
    ];
    for (about, messages, code) in wrong {
        assert_eq!(exchange(&mut stream, &[query("BEGIN")]).2, b'T', "{about}");
        exchange(&mut stream, &[query("INSERT INTO t VALUES (1, 'one')")]);
        let (kinds, error, status) = exchange(&mut stream, messages);
        assert_eq!((error.as_deref(), status), (Some(code), b'E'), "{about}: {kinds}");
        for again in [&[query("SELECT 1")][..], &[parse(b"\0SELECT 1\0\0\0"), sync()]] {
            let (_, error, status) = exchange(&mut stream, again);
            assert_eq!((error.as_deref(), status), (Some("25P02"), b'E'), "{about}");
        }
        assert_eq!(exchange(&mut stream, &[query("COMMIT")]).2, b'I', "{about}");
        let (kinds, ..) = exchange(&mut stream, &[query("SELECT * FROM t")]);
        assert_eq!(kinds, "TCZ", "{about}");
    }
    let savepoint = [query("BEGIN; INSERT INTO t VALUES (1, 'one'); SAVEPOINT s")];
    assert_eq!(exchange(&mut stream, &savepoint).2, b'T');
    let no_values = [bind(b"\0one\0\0\0\0\0\0\0"), sync()];
    assert_eq!(exchange(&mut stream, &no_values).2, b'E');
    assert_eq!(exchange(&mut stream, &[query("ROLLBACK TO s")]).2, b'T');
    assert_eq!(exchange(&mut stream, &[query("COMMIT; SELECT * FROM t")]).0, "CTDCZ");
}

#[test]
fn a_portal_gives_no_more_rows_in_a_transaction_that_is_aborted() {
    let served = served();
    let mut stream = served.raw_logged_in();
    exchange(&mut stream, &[query("BEGIN")]);
    let one_row = message(b'E', b"p\0\0\0\0\x01");
    let begun = [
        message(b'P', b"\0SELECT * FROM generate_series(1, 3)\0\0\0"),
        message(b'B', b"p\0\0\0\0\0\0\0\0"),
        one_row.clone(),
        message(b'S', b""),
    ];
    assert_eq!(exchange(&mut stream, &begun).0, "12DsZ");
    exchange(&mut stream, &[query("SELECT nothing")]);
    let (kinds, error, status) = exchange(&mut stream, &[one_row, message(b'S', b"")]);
    assert_eq!((&*kinds, error.as_deref(), status), ("EZ", Some("25P02"), b'E'));
}

#[test]
fn in_a_transaction_that_is_aborted_only_its_end_is_bound() {
    let served = served();
    let mut stream = served.raw_logged_in();
    let (select, sync) = (message(b'P', b"s\0SELECT 1\0\0\0"), message(b'S', b""));
    let bind = |name: &[u8]| message(b'B', &[b"\0", name, b"\0\0\0\0\0\0\0"].concat());
    let end = message(b'P', b"e\0ROLLBACK\0\0\0");
    exchange(&mut stream, &[select.clone(), end, query("BEGIN; SELECT nothing")]);
    for refused in [
        message(b'P', b"\0SELECT 1\0\0\0"),
        bind(b"s"),
        message(b'D', b"Ss\0"),
        message(b'P', b"\0SELECT 2\0\0\0"),
    ] {
        let (kinds, error, status) = exchange(&mut stream, &[refused, sync.clone()]);
        assert_eq!((&*kinds, error.as_deref(), status), ("EZ", Some("25P02"), b'E'));
    }
    let run = message(b'E', b"\0\0\0\0\0");
    let described = message(b'D', b"Se\0");
    let (kinds, _, status) = exchange(&mut stream, &[described, bind(b"e"), run, sync]);
    assert_eq!((&*kinds, status), ("tn2CZ", b'I'));
}

/// The statements of dbt for a model of the kind `table` that is there already, and that views read.
#[test]
fn dbt_replaces_a_table_that_views_read() {
    served().with_client(async |client| {
        let run = async |sql: &str| client.batch_execute(sql).await.expect(sql);
        run("CREATE TABLE source (n BIGINT)").await;
        run("INSERT INTO source VALUES (1), (2)").await;
        run("CREATE TABLE model AS SELECT n FROM source").await;
        run("CREATE VIEW reader AS SELECT sum(model.n) AS s FROM public.model").await;
        for _ in 0..2 {
            run("BEGIN").await;
            run("create table \"alluvium\".\"public\".\"model__dbt_tmp\" as (select n + 10 as n from source);").await;
            run("alter table \"alluvium\".\"public\".\"model\" rename to \"model__dbt_backup\"").await;
            run("alter table \"alluvium\".\"public\".\"model__dbt_tmp\" rename to \"model\"").await;
            let read = "SELECT s::bigint FROM reader";
            let before: i64 = client.query_one(read, &[]).await.expect("its rows").get(0);
            run("COMMIT").await;
            let after: i64 = client.query_one(read, &[]).await.expect("its rows").get(0);
            assert_eq!(before, after, "it reads the relation that it has read");
            let sql = "SELECT pg_get_viewdef('reader'::regclass)";
            let definition: String = client.query_one(sql, &[]).await.expect("a definition").get(0);
            assert!(definition.contains("model__dbt_backup AS model"), "{definition}");
            run("drop table if exists \"alluvium\".\"public\".\"model__dbt_backup\" cascade").await;
            client.query("SELECT * FROM reader", &[]).await.expect_err("it is dropped with the table");
            run("CREATE VIEW reader AS SELECT sum(model.n) AS s FROM public.model").await;
        }
        let sum: i64 = client.query_one("SELECT s::bigint FROM reader", &[]).await.expect("a sum").get(0);
        assert_eq!(sum, 23);
    });
}
