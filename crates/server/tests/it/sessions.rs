//! `alluvium.sessions`, which lists clients of all protocols.

use crate::served::served;

#[test]
fn sessions_tell_what_clients_do() {
    let served = served();
    served.clients.block_on(async {
        let (watcher, _) = served.connect().await;
        let sessions = "SELECT state, command, statements::BIGINT, transaction IS NOT NULL, application_name, protocol, address,
                        opened <= last_call FROM alluvium.sessions WHERE client <> pg_backend_pid() ORDER BY session";
        let told = async || {
            let rows = watcher.query(sessions, &[]).await.expect("an answer");
            let line = |row: &tokio_postgres::Row| {
                let text = |column: usize| row.get::<_, Option<&str>>(column).unwrap_or("NULL");
                let (state, command, name) = (text(0), text(1), text(4));
                let (count, is_open, is_later) =
                    (row.get::<_, i64>(2), row.get::<_, bool>(3), row.get::<_, bool>(7));
                assert_eq!((text(5), text(6), is_later), ("postgres", "127.0.0.1", true));
                format!("{state}: {command}, {count}, {is_open}, {name}")
            };
            rows.iter().map(line).collect::<Vec<_>>()
        };
        assert!(told().await.is_empty());
        let (client, _) = served.connect().await;
        client.batch_execute("CREATE TABLE t (k BIGINT PRIMARY KEY)").await.expect("it is right");
        assert_eq!(told().await, ["idle: CREATE TABLE, 1, false, NULL"]);
        client.batch_execute("SET application_name = 'abacus'; BEGIN; INSERT INTO t VALUES (1)").await.expect("it is right");
        assert_eq!(told().await, ["idle in transaction: INSERT, 4, true, abacus"]);
        // A text is parsed, then runs from its kept plan, and by key without a thread of the pool: it is one statement each time.
        for _ in 0..3 {
            client.batch_execute("SELECT * FROM t WHERE k = 1").await.expect("it is right");
        }
        let by_key = client.prepare("SELECT * FROM t WHERE k = $1").await.expect("it is right");
        for _ in 0..3 {
            client.query(&by_key, &[&1_i64]).await.expect("it is right");
        }
        assert_eq!(told().await, ["idle in transaction: SELECT, 10, true, abacus"]);
        let holder = "SELECT COUNT(*) FROM alluvium.locks AS l JOIN alluvium.sessions AS s ON l.transaction = s.transaction
                      AND l.session = s.session WHERE s.application_name = 'abacus' AND l.key = '(k) = (1)'";
        let row = watcher.query_one(holder, &[]).await.expect("an answer");
        assert_eq!(row.get::<_, i64>(0), 1);
        client.batch_execute("SELECT nothing").await.expect_err("there is no such column");
        let aborted = told().await;
        assert!(aborted[0].starts_with("idle in transaction (aborted): SELECT, "), "{aborted:?}");
        client.batch_execute("ROLLBACK").await.expect("it is right");
        assert!(told().await[0].starts_with("idle: ROLLBACK, "));
        drop(client);
        while !told().await.is_empty() {
            tokio::task::yield_now().await;
        }
    });
}
