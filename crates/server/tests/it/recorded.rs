//! The statements that clients were seen to send to Postgres, as far as a session answers them without a connection.
//!
//! The files of `recorded` have those of one client each, in order, once: after `---` how often it was sent, and its parameters.

use alluvium::arrow::array::{ListBuilder, StringBuilder};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::DataType;
use alluvium::{Engine, Outcome, Session, Value};

/// Clients, and what they sent.
const CLIENTS: [(&str, &str); 17] = [
    ("adbc-pg", include_str!("recorded/adbc-pg.sql")),
    ("asyncpg", include_str!("recorded/asyncpg.sql")),
    ("dbt", include_str!("recorded/dbt.sql")),
    ("duckdb", include_str!("recorded/duckdb.sql")),
    ("node", include_str!("recorded/node.sql")),
    ("pandas", include_str!("recorded/pandas.sql")),
    ("pgbench-S", include_str!("recorded/pgbench-S.sql")),
    ("pgbench-i", include_str!("recorded/pgbench-i.sql")),
    ("pgcli", include_str!("recorded/pgcli.sql")),
    ("pgjdbc", include_str!("recorded/pgjdbc.sql")),
    ("pgx", include_str!("recorded/pgx.sql")),
    ("polars", include_str!("recorded/polars.sql")),
    ("psql-d", include_str!("recorded/psql-d.sql")),
    ("psql-dt", include_str!("recorded/psql-dt.sql")),
    ("psql-l", include_str!("recorded/psql-l.sql")),
    ("psycopg", include_str!("recorded/psycopg.sql")),
    ("sqlalchemy", include_str!("recorded/sqlalchemy.sql")),
];

/// The relations that the clients ask about.
pub(crate) const TABLES: &str = "
    CREATE TABLE t (id INT PRIMARY KEY, v TEXT DEFAULT 'x');
    CREATE TABLE orders (id SERIAL PRIMARY KEY, t_id INT NOT NULL, amount DECIMAL(10, 2) CHECK (amount > 0),
        at TIMESTAMPTZ, tags TEXT[], doc TEXT, UNIQUE (t_id, at));
    CREATE TABLE big (id BIGINT PRIMARY KEY, v TEXT);
    CREATE TABLE pd2 (a BIGINT GENERATED ALWAYS AS IDENTITY);
    CREATE SEQUENCE numbers;
    CREATE INDEX orders_at ON orders (at);
    CREATE VIEW few AS SELECT id, v FROM t WHERE id < 10;
    CREATE MATERIALIZED VIEW sums AS SELECT t_id, SUM(amount) AS amount FROM orders GROUP BY t_id;
    COMMENT ON TABLE t IS 'a table';
    COMMENT ON COLUMN t.v IS 'a column';
    INSERT INTO t VALUES (1, 'a'), (2, 'b');";

/// An engine with the catalog and these relations.
pub(crate) fn engine() -> Engine {
    let builder = alluvium_server::with_catalog(Engine::builder().workers(1));
    let engine = builder.open_in_memory().expect("the catalog is right");
    engine.execute(TABLES).expect("the tables are right");
    engine
}

/// A statement as it was sent.
struct Sent<'a> {
    times: usize,
    parameters: Vec<&'a str>,
    sql: String,
}

fn read(file: &str) -> Vec<Sent<'_>> {
    let mut all: Vec<Sent<'_>> = Vec::new();
    for line in file.lines() {
        if let Some(head) = line.strip_prefix("--- ") {
            let (times, parameters) = head.split_once(" | ").unwrap_or((head, ""));
            let parameters = parameters.split("', $").filter_map(|it| it.split_once(" = '"));
            let parameters = parameters.map(|(_, value)| value.trim_end_matches('\''));
            let times = times.parse().expect("a number");
            all.push(Sent { times, parameters: parameters.collect(), sql: String::new() });
        } else if let Some(last) = all.last_mut() {
            last.sql += line;
            last.sql.push('\n');
        }
    }
    all
}

/// The value of a parameter that was sent as text.
fn value(text: &str, data_type: Option<&DataType>) -> Value {
    let Some(list @ DataType::List(_)) = data_type else { return Value::from(text) };
    let mut lists = ListBuilder::new(StringBuilder::new());
    for element in text.trim_matches(['{', '}']).split(',').filter(|it| !it.is_empty()) {
        lists.values().append_value(element);
    }
    lists.append(true);
    let lists = cast(&lists.finish(), list).expect("a list of this type");
    Value::from_array(&lists, 0).expect("there is a row")
}

/// Runs a statement to its end.
fn run(session: &mut Session, sent: &Sent<'_>) -> Result<(), alluvium::Error> {
    if sent.parameters.is_empty() {
        return session.execute(&sent.sql).map(drop);
    }
    let described = session.describe(&sent.sql)?;
    let values = sent.parameters.iter().enumerate();
    let values = values
        .map(|(place, text)| value(text, described.parameters.get(place).and_then(Option::as_ref)));
    match session.execute_with(&sent.sql, &values.collect::<Vec<_>>())? {
        Outcome::Rows(rows) => rows.into_batches().map(drop),
        _ => Ok(()),
    }
}

/// Whether a connection answers it, and no session: rows that are copied over it.
fn is_of_connection(sql: &str) -> bool {
    let sql = sql.to_ascii_lowercase();
    sql.starts_with("copy") && (sql.contains("to stdout") || sql.contains("from stdin"))
}

/// Whether a statement is one of an open transaction.
fn is_of_transaction(sql: &str) -> bool {
    let first = sql.split([' ', ';', '\n']).next().unwrap_or_default();
    ["COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"].contains(&&*first.to_ascii_uppercase())
}

#[test]
fn the_statements_of_clients_run_without_an_error() {
    let (mut sent_in_all, mut ran, mut left) = (0, 0, Vec::new());
    for (client, file) in CLIENTS {
        let engine = engine();
        let mut session = engine.session();
        if client == "pgbench-S" {
            for sent in read(CLIENTS[7].1).iter().filter(|sent| !is_of_connection(&sent.sql)) {
                let _ = run(&mut session, sent);
            }
        }
        for sent in read(file) {
            if is_of_connection(&sent.sql) {
                continue;
            }
            // Each statement stands here once, and so each BEGIN.
            if is_of_transaction(&sent.sql) && !session.in_transaction() {
                session.execute("BEGIN").expect("no transaction is open");
            }
            sent_in_all += sent.times;
            match run(&mut session, &sent) {
                Ok(()) => ran += sent.times,
                Err(error) => {
                    left.push(format!("{client}, {}x: {error}\n{}", sent.times, sent.sql))
                }
            }
        }
    }
    let share =
        f64::from(u32::try_from(ran).unwrap()) / f64::from(u32::try_from(sent_in_all).unwrap());
    println!("{ran} of {sent_in_all} statements ran, {:.2} %; the others:\n", share * 100.0);
    left.iter().for_each(|left| println!("{left}"));
    // asyncpg follows the bases of domains by a recursion in a subquery that refers to rows outside of it.
    assert!(share >= 0.99, "{share}");
}
