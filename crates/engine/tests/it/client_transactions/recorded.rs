//! Statements that clients of Postgres were recorded to send, in their order, without those that read its catalog.

use alluvium::{Engine, Outcome, Session};

use super::{rows, run};
use crate::support::engine;

/// The tables that there were.
const TABLES: &str = "
    CREATE TABLE t (id INT PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'one'), (2, 'two');
    CREATE TABLE orders (id INT PRIMARY KEY, t_id INT, amount DECIMAL(10, 2), at TIMESTAMP);";

/// A client: a session in which errors abort transactions.
fn client() -> (Engine, Session) {
    let engine = engine(2);
    let mut session = engine.session();
    run(&mut session, TABLES);
    session.set_aborts_on_error(true);
    (engine, session)
}

/// Runs all statements, and returns those that are refused with their codes, and those COMMITs that roll back.
fn refused(session: &mut Session, statements: &[&str]) -> Vec<String> {
    let outcome = |statement: &&str| match session.execute(statement) {
        Ok(outcomes) => outcomes
            .iter()
            .any(|outcome| matches!(outcome, Outcome::RolledBack))
            .then(|| format!("{statement}: rolled back")),
        Err(error) => Some(format!("{statement}: {}", error.sqlstate())),
    };
    statements.iter().filter_map(outcome).collect()
}

#[test]
fn sqlalchemy_and_pandas() {
    let (_engine, mut session) = client();
    let refused = refused(
        &mut session,
        &[
            "BEGIN",
            "show transaction isolation level",
            "show standard_conforming_strings",
            "SAVEPOINT \"_pg3_1\"",
            "RELEASE \"_pg3_1\"",
            "ROLLBACK",
            "BEGIN",
            "select * from t",
            "ROLLBACK",
            "BEGIN",
            "SELECT orders.id, orders.t_id, orders.amount, orders.at \nFROM orders",
            "COMMIT",
            "BEGIN",
            "\nCREATE TABLE pd (\n\ta BIGINT\n)\n\n",
            "INSERT INTO pd (a) VALUES (1::BIGINT)",
            "INSERT INTO pd (a) VALUES (2::BIGINT)",
            "COMMIT",
        ],
    );
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(rows(&mut session, "SELECT * FROM pd"), ["1", "2"]);
}

/// Its database is that of its profile.
#[test]
fn dbt() {
    let (_engine, mut session) = client();
    let refused = refused(
        &mut session,
        &[
            "BEGIN",
            "ROLLBACK",
            "BEGIN",
            "COMMIT",
            "BEGIN",
            "/* {\"app\": \"dbt\"} */\n\n  create view \"alluvium\".\"public\".\"m1__dbt_tmp\"\n  as (\n    select id, v from public.t\n  );",
            "/* {\"app\": \"dbt\"} */\nalter table \"alluvium\".\"public\".\"m1__dbt_tmp\" rename to \"m1\"",
            "COMMIT",
            "/* {\"app\": \"dbt\"} */\ndrop view if exists \"alluvium\".\"public\".\"m1__dbt_backup\" cascade",
            "/* {\"app\": \"dbt\"} */\ndrop table if exists \"alluvium\".\"public\".\"m2__dbt_backup\" cascade",
        ],
    );
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(rows(&mut session, "SELECT * FROM m1"), ["1 one", "2 two"]);
    // The next runs, of a view and of a table.
    for (kind, rest) in [("view", "id, v from public.t"), ("table", "id from public.t")] {
        let model = if kind == "view" { "m1" } else { "m2" };
        if kind == "table" {
            run(&mut session, "CREATE TABLE m2 AS SELECT v FROM t");
        }
        let refused = self::refused(
            &mut session,
            &[
                "BEGIN",
                &format!(
                    "create {kind} \"alluvium\".\"public\".\"{model}__dbt_tmp\" as (select {rest})"
                ),
                &format!(
                    "alter {kind} \"alluvium\".\"public\".\"{model}\" rename to \"{model}__dbt_backup\""
                ),
                &format!(
                    "alter {kind} \"alluvium\".\"public\".\"{model}__dbt_tmp\" rename to \"{model}\""
                ),
                "COMMIT",
                &format!(
                    "drop {kind} if exists \"alluvium\".\"public\".\"{model}__dbt_backup\" cascade"
                ),
            ],
        );
        assert!(refused.is_empty(), "{refused:?}");
    }
    assert_eq!(rows(&mut session, "SELECT * FROM m1"), ["1 one", "2 two"]);
    assert_eq!(rows(&mut session, "SELECT * FROM m2"), ["1", "2"]);
}

#[test]
fn pgbench() {
    let (_engine, mut session) = client();
    let begun = refused(
        &mut session,
        &[
            "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
            "create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22))",
            "create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100)",
            "create table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) with (fillfactor=100)",
            "create table pgbench_branches(bid int not null,bbalance int,filler char(88)) with (fillfactor=100)",
            "begin",
            "truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
            "insert into pgbench_branches(bid,bbalance) values(1,0)",
            "insert into pgbench_tellers(tid,bid,tbalance) values (1,1,0)",
            "insert into pgbench_tellers(tid,bid,tbalance) values (2,1,0)",
            "insert into pgbench_tellers(tid,bid,tbalance) values (7,1,0)",
            "commit",
            "vacuum analyze pgbench_branches",
            "alter table pgbench_branches add primary key (bid)",
            "alter table pgbench_tellers add primary key (tid)",
            "alter table pgbench_accounts add primary key (aid)",
        ],
    );
    // Rows of COPY FROM STDIN come by the protocol.
    run(&mut session, "INSERT INTO pgbench_accounts VALUES (14551, 1, 0, ''), (77353, 1, 0, '')");
    assert_eq!(begun, [""; 0]);
    let ran = refused(
        &mut session,
        &[
            "select count(*) from pgbench_branches",
            "truncate pgbench_history",
            "SELECT abalance FROM pgbench_accounts WHERE aid = 35543;",
            "BEGIN;",
            "UPDATE pgbench_accounts SET abalance = abalance + -3897 WHERE aid = 14551;",
            "SELECT abalance FROM pgbench_accounts WHERE aid = 14551;",
            "UPDATE pgbench_tellers SET tbalance = tbalance + -3897 WHERE tid = 7;",
            "UPDATE pgbench_branches SET bbalance = bbalance + -3897 WHERE bid = 1;",
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (7, 1, 14551, -3897, CURRENT_TIMESTAMP);",
            "END;",
            "BEGIN;",
            "UPDATE pgbench_accounts SET abalance = abalance + 2380 WHERE aid = 77353;",
            "SELECT abalance FROM pgbench_accounts WHERE aid = 77353;",
            "UPDATE pgbench_tellers SET tbalance = tbalance + 2380 WHERE tid = 2;",
            "UPDATE pgbench_branches SET bbalance = bbalance + 2380 WHERE bid = 1;",
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (2, 1, 77353, 2380, CURRENT_TIMESTAMP);",
            "END;",
        ],
    );
    assert!(ran.is_empty(), "{ran:?}");
    let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),
                (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM pgbench_history)";
    assert_eq!(rows(&mut session, sums), ["-1517 -1517 -1517 -1517"]);
}

#[test]
fn psycopg_duckdb_asyncpg_and_adbc() {
    let (_engine, mut session) = client();
    let refused = refused(
        &mut session,
        &[
            "BEGIN",
            "select id,v from t where id>=0",
            "select * from orders",
            "DECLARE \"srv\" CURSOR FOR select * from t",
            "FETCH FORWARD 1 FROM \"srv\"",
            "CLOSE \"srv\"",
            "ROLLBACK",
            "SELECT 1",
            "DISCARD ALL",
            "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "COMMIT",
            "BEGIN;",
            "select * from t",
            "COMMIT;",
            "BEGIN TRANSACTION",
            "SET application_name = 'PostgreSQL JDBC Driver'",
            "show time zone",
            "ROLLBACK",
        ],
    );
    assert!(refused.is_empty(), "{refused:?}");
}
