//! State that survives its engine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use alluvium::unstable::{BuilderParts, SessionParts};
use alluvium::{Durability, Engine, Error, Outcome, Prepared, Result, Session};
use alluvium_storage::{
    FileJournal, FileJournalOptions, Journal, MemoryJournal, Position, Replay, SimulatedDisk,
};
use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;

use crate::bank;
use crate::support::{PATIENCE, assert_poisoned, lines, query, without_hanging};

/// Relations of every kind. The last view shows the time.
const DEFINITIONS: &str = "
    CREATE TABLE accounts (id BIGINT PRIMARY KEY, name VARCHAR, balance BIGINT DEFAULT 7);
    CREATE TABLE notes (account BIGINT, note VARCHAR, at TIMESTAMP DEFAULT NOW());
    CREATE TABLE ticks (n BIGINT) WITH ('materialized' = 'false');
    CREATE LOCAL VIEW rich AS SELECT id, name FROM accounts WHERE balance > 10;
    CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS accounts, SUM(balance) AS balance FROM accounts;
    CREATE MATERIALIZED VIEW noted AS
        SELECT name, COUNT(*) AS notes, MAX(note) AS last FROM notes JOIN rich ON account = id GROUP BY name;
    CREATE MATERIALIZED VIEW ticked AS SELECT COUNT(*) AS ticks, SUM(n) AS sum FROM ticks;
    CREATE MATERIALIZED VIEW recent AS SELECT note FROM notes WHERE at > NOW() - INTERVAL '1' HOUR;
";

/// All of it as text.
fn shown(engine: &Engine) -> Vec<String> {
    let relations = ["accounts", "notes", "totals", "noted", "ticked", "recent"];
    let all = relations.iter().map(|name| query(engine, &format!("SELECT * FROM {name}")));
    all.enumerate()
        .flat_map(|(number, rows)| [vec![format!("- {number}")], rows].concat())
        .collect()
}

fn open(directory: &tempfile::TempDir, workers: usize) -> Result<Engine> {
    let state = format!("file:{}", directory.path().display());
    Engine::builder().workers(workers).state(state).open()
}

#[test]
fn rows_of_statements_that_read_other_rows_are_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory, 2).unwrap();
    engine.execute(DEFINITIONS).unwrap();
    engine.execute("INSERT INTO accounts VALUES (1, 'ann', 20), (2, 'bob', 5)").unwrap();
    engine
        .execute(
            "INSERT INTO accounts VALUES (2, 'x', 1), (3, 'cem', DEFAULT)
             ON CONFLICT (id) DO UPDATE SET balance = accounts.balance + excluded.balance",
        )
        .unwrap();
    engine.execute("CREATE TABLE names AS SELECT id, name FROM accounts WHERE id < 3").unwrap();
    let mut session = engine.session();
    session
        .execute("BEGIN; UPDATE accounts SET name = upper(n.name) FROM names AS n WHERE n.id = accounts.id")
        .unwrap();
    let returned = session
        .execute("DELETE FROM accounts USING names AS n WHERE n.id = accounts.id AND balance = 6 RETURNING accounts.name")
        .unwrap()
        .remove(0);
    let Outcome::Rows(rows) = returned else { panic!("rows: {returned:?}") };
    assert_eq!(lines(&rows.into_batches().unwrap()), ["BOB"]);
    session.execute("COMMIT").unwrap();
    drop(session);
    let all = ["accounts", "names", "totals"].map(|name| format!("SELECT * FROM {name}"));
    let shown = |engine: &Engine| all.clone().map(|sql| query(engine, &sql).join("; "));
    let expected = ["1 ANN 20; 3 cem 7", "1 ann; 2 bob", "2 27"];
    assert_eq!(shown(&engine), expected);
    drop(engine);
    let engine = open(&directory, 1).unwrap();
    assert_eq!(shown(&engine), expected);
}

#[test]
fn everything_is_there_again_with_any_number_of_workers() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory, 2).unwrap();
    engine.execute(DEFINITIONS).unwrap();
    engine.execute("INSERT INTO accounts VALUES (1, 'ann', 20), (2, 'bob', 5)").unwrap();
    engine.execute("INSERT INTO accounts (id, name) VALUES (3, 'cem')").unwrap();
    engine
        .execute("INSERT INTO notes (account, note) VALUES (1, 'a'), (1, 'b'), (2, 'c')")
        .unwrap();
    engine.execute("INSERT INTO ticks VALUES (1), (2), (3)").unwrap();
    let mut before = shown(&engine);
    let mut epoch = engine.progress().committed;
    drop(engine);
    for workers in [1, 3, 2] {
        let engine = open(&directory, workers).unwrap();
        assert_eq!(shown(&engine), before);
        assert_eq!(engine.progress().committed, epoch);
        let mut session = engine.session();
        session.execute("BEGIN; DELETE FROM notes WHERE note = 'b'").unwrap();
        session.execute("UPDATE accounts SET balance = balance + 1 WHERE id <= 2").unwrap();
        session.execute("INSERT INTO ticks VALUES (10); COMMIT").unwrap();
        engine.execute(&format!("CREATE TABLE t{workers} (n INT); DROP TABLE t{workers}")).unwrap();
        engine
            .execute(&format!(
                "CREATE OR REPLACE VIEW busy AS SELECT * FROM noted WHERE notes > {workers}"
            ))
            .unwrap();
        before = shown(&engine);
        epoch = engine.progress().committed;
    }
    let engine = open(&directory, 1).unwrap();
    assert_eq!(shown(&engine), before);
    let names: Vec<_> = engine.relations().unwrap().into_iter().map(|info| info.name).collect();
    assert!(names.contains(&"busy".to_owned()) && !names.contains(&"t1".to_owned()), "{names:?}");
}

#[test]
fn a_time_stays_what_it_was_and_does_not_go_back() {
    [false, true].into_iter().for_each(times_stay);
}

/// The clock is set back between engines, of which each may end with a checkpoint.
fn times_stay(with_checkpoints: bool) {
    let end = |engine: Engine| {
        if with_checkpoints {
            engine.checkpoint().unwrap();
        }
    };
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().display());
    let start = |seconds: u64| {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        Engine::builder().workers(1).clock(move || now).state(state.clone()).open().unwrap()
    };
    let engine = start(1_000);
    engine
        .execute(
            "CREATE TABLE events (at TIMESTAMP DEFAULT NOW(), n INT);
             CREATE MATERIALIZED VIEW late AS SELECT n FROM events WHERE at < NOW() - INTERVAL '10' SECOND;
             INSERT INTO events (n) VALUES (1)",
        )
        .unwrap();
    end(engine);
    // The clock has been set back meanwhile.
    let engine = start(500);
    assert_eq!(query(&engine, "SELECT * FROM events"), ["1970-01-01T00:16:40 1"]);
    engine.execute("INSERT INTO events (n) VALUES (2)").unwrap();
    assert_eq!(
        query(&engine, "SELECT * FROM events"),
        ["1970-01-01T00:16:40 1", "1970-01-01T00:16:40 2"]
    );
    end(engine);
    let engine = start(1_020);
    assert_eq!(query(&engine, "SELECT * FROM late"), [""; 0]);
    engine.execute("INSERT INTO events (n) VALUES (3)").unwrap();
    assert_eq!(query(&engine, "SELECT * FROM late"), ["1", "2"]);
}

#[test]
fn rows_of_files_and_large_transactions_are_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.csv");
    let rows: Vec<String> = (0..1000).map(|n| format!("{n},'row {n}',{}.5", n % 7)).collect();
    std::fs::write(&file, format!("n,name,price\n{}\n", rows.join("\n"))).unwrap();
    let state = format!("file:{}", directory.path().join("state").display());
    let start =
        || Engine::builder().workers(2).memory(1 << 20).state(state.clone()).open().unwrap();
    let engine = start();
    engine
        .execute(
            "CREATE TABLE large (n BIGINT, text VARCHAR);
             CREATE MATERIALIZED VIEW sums AS SELECT COUNT(*) AS c, SUM(n) AS s, MAX(text) AS t FROM large",
        )
        .unwrap();
    // Several megabytes, of which most wait for their commit in a file.
    engine
        .execute(
            "INSERT INTO large SELECT n, 'the text of row ' || n FROM (SELECT UNNEST(range(0, 200000)) AS n)",
        )
        .unwrap();
    let long = "x".repeat(3 << 20);
    engine.execute(&format!("INSERT INTO large VALUES (-1, '{long}')")).unwrap();
    let expected = query(&engine, "SELECT * FROM sums");
    drop(engine);
    let engine = start();
    assert_eq!(query(&engine, "SELECT * FROM sums"), expected);
    assert_eq!(query(&engine, "SELECT LENGTH(text) FROM large WHERE n < 0"), ["3145728"]);
}

#[test]
fn one_engine_at_a_time_uses_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory, 1).unwrap();
    let refused = open(&directory, 1).err().unwrap().to_string();
    assert!(refused.contains("is used by this process"), "{refused}");
    drop(engine);
    drop(open(&directory, 1).unwrap());
    let error = Engine::builder().state("s3://bucket").open().err().unwrap().to_string();
    assert!(error.contains("write file:DIR"), "{error}");
}

#[test]
fn a_transaction_with_a_key_is_committed_once() {
    let directory = tempfile::tempdir().unwrap();
    let commit = |engine: &Engine, key: &str, n: i64| {
        let mut session = engine.session();
        session.set_key(key);
        session.execute(&format!("BEGIN; INSERT INTO t VALUES ({n}); COMMIT")).unwrap();
        engine.committed(key).unwrap().unwrap()
    };
    let mut engine = open(&directory, 1).unwrap();
    engine.execute("CREATE TABLE t (n BIGINT)").unwrap();
    let first = commit(&engine, "first", 1);
    let second = commit(&engine, "second", 2);
    assert!(first < second);
    for round in 0..4 {
        assert_eq!(commit(&engine, "first", 100), first);
        assert_eq!(engine.committed("other").unwrap(), None);
        // The key is that of the next transaction only.
        let mut session = engine.session();
        session.set_key("second");
        session.execute("INSERT INTO t VALUES (200); INSERT INTO t VALUES (1000)").unwrap();
        drop(session);
        assert_eq!(query(&engine, "SELECT SUM(n) FROM t"), [(1003 + 1000 * round).to_string()]);
        if round % 2 == 0 {
            engine.checkpoint().unwrap();
        }
        drop(engine);
        engine = open(&directory, round as usize % 3 + 1).unwrap();
    }
    // One without changes counts, too.
    let mut transaction = engine.begin().unwrap();
    transaction.set_key("nothing");
    let epoch = transaction.commit().unwrap();
    drop(engine);
    let engine = open(&directory, 1).unwrap();
    assert_eq!(engine.committed("nothing").unwrap(), Some(epoch));
    let mut transaction = engine.begin().unwrap();
    transaction.set_key("nothing");
    assert_eq!(transaction.commit().unwrap(), epoch);
    assert_eq!(engine.progress().committed, epoch);
}

#[test]
fn commits_need_not_wait_for_the_disk() {
    for durability in [Durability::Never, Durability::Interval(Duration::from_millis(1))] {
        let journal = Gated::default();
        journal.open(true);
        let open = || {
            let journal = Arc::new(journal.clone());
            Engine::builder().workers(1).durability(durability).journal(journal).open().unwrap()
        };
        let engine = open();
        engine.execute("CREATE TABLE t (n BIGINT)").unwrap();
        journal.open(false);
        for n in 1..=3 {
            engine.execute(&format!("INSERT INTO t VALUES ({n})")).unwrap();
            assert_eq!(query(&engine, "SELECT MAX(n) FROM t"), [n.to_string()]);
        }
        journal.open(true);
        drop(engine);
        assert_eq!(query(&open(), "SELECT SUM(n) FROM t"), ["6"]);
    }
}

#[test]
fn a_definition_that_fails_on_the_way_is_not_there_later() {
    let journal = Arc::new(MemoryJournal::default());
    let open =
        || Engine::builder().workers(2).strict(true).journal(journal.clone()).open().unwrap();
    let engine = open();
    engine
        .execute(
            "CREATE TABLE t (n BIGINT);
             INSERT INTO t SELECT UNNEST(range(0, 2000))",
        )
        .unwrap();
    // A view that takes minutes to fill.
    let sql = "CREATE MATERIALIZED VIEW v AS
        SELECT COUNT(*) AS c FROM t a, t b, t c WHERE a.n + b.n + c.n = 7";
    let interrupt = engine.interrupt();
    let handle = interrupt.clone();
    let created = thread::scope(|scope| {
        let created = scope.spawn(|| handle.watch(|| engine.execute(sql)));
        thread::sleep(Duration::from_millis(500));
        interrupt.request();
        created.join().unwrap()
    });
    assert_eq!(created.err(), Some(Error::Interrupted));
    drop(engine);
    let engine = open();
    assert_eq!(engine.relations().unwrap().len(), 1);
    // Its name is free, and what fails for a row later is no error of the definition.
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT 10 / n AS r FROM t WHERE n > 0").unwrap();
    engine.execute("CREATE MATERIALIZED VIEW w AS SELECT 10 / n AS r FROM t").unwrap_err();
    drop(engine);
    let names: Vec<_> = open().relations().unwrap().into_iter().map(|info| info.name).collect();
    assert!(names.contains(&"v".to_owned()), "{names:?}");
}

/// A journal that is durable only while a gate is open.
#[derive(Clone, Debug, Default)]
struct Gated {
    journal: Arc<MemoryJournal>,
    is_open: Arc<(Mutex<bool>, Condvar)>,
}

impl Gated {
    fn open(&self, is_open: bool) {
        *self.is_open.0.lock().unwrap() = is_open;
        self.is_open.1.notify_all();
    }
}

impl Journal for Gated {
    fn append(&self, record: &[u8]) -> alluvium_storage::Result<Position> {
        self.journal.append(record)
    }

    fn write(&self, upto: Position) -> alluvium_storage::Result<()> {
        self.journal.write(upto)
    }

    fn sync(&self, upto: Position) -> alluvium_storage::Result<()> {
        let is_open = self.is_open.0.lock().unwrap();
        drop(self.is_open.1.wait_while(is_open, |is_open| !*is_open).unwrap());
        self.journal.sync(upto)
    }

    fn replay(&self, from: Position) -> alluvium_storage::Result<Replay> {
        self.journal.replay(from)
    }

    fn release(&self, before: Position) -> alluvium_storage::Result<()> {
        self.journal.release(before)
    }

    fn range(&self) -> Range<Position> {
        self.journal.range()
    }
}

#[test]
fn a_commit_is_visible_once_it_is_durable() {
    let (journal, engine) = gated(2);
    engine
        .execute("CREATE TABLE t (n INT); CREATE MATERIALIZED VIEW v AS SELECT SUM(n) AS s FROM t")
        .unwrap();
    let mut subscription = engine.subscribe("v").unwrap();
    assert!(subscription.next().unwrap().is_ok(), "the first delivery is what it holds");
    journal.open(false);
    let commits = [1, 2, 3].map(|n| begin(&engine, format!("INSERT INTO t VALUES ({n})")));
    // All have their turn, and none is there.
    until_committed(&engine, 3);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(engine.progress().complete, 0);
    let mut session = engine.session();
    session.set_reads_stale(true);
    let read = session.execute("SELECT * FROM t").unwrap().remove(0);
    assert!(returned(read).is_empty());
    assert!(subscription.try_next().unwrap().is_none(), "nothing is delivered either");
    journal.open(true);
    commits.into_iter().for_each(|commit| commit.join().unwrap().unwrap());
    assert_eq!(query(&engine, "SELECT * FROM v"), ["6"]);
    let delivered = without_hanging(move || subscription.next().unwrap().is_ok());
    assert!(delivered);
}

/// An engine, with its journal, whose gate is open.
fn gated(workers: usize) -> (Gated, Engine) {
    let journal = Gated::default();
    journal.open(true);
    let builder = Engine::builder().workers(workers).journal(Arc::new(journal.clone()));
    (journal, builder.open().unwrap())
}

/// Executes statements on a thread of its own.
fn begin(engine: &Engine, sql: impl Into<String>) -> JoinHandle<Result<()>> {
    let (engine, sql) = (engine.clone(), sql.into());
    thread::spawn(move || engine.execute(&sql).map(drop))
}

/// The rows of an outcome.
fn returned(outcome: Outcome) -> Vec<String> {
    let Outcome::Rows(rows) = outcome else { panic!("rows: {outcome:?}") };
    lines(&rows.into_batches().unwrap())
}

/// Waits until so many epochs are committed, whether or not they are durable.
fn until_committed(engine: &Engine, epochs: u64) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while engine.progress().committed < epochs && std::time::Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(engine.progress().committed, epochs);
}

/// Commits a row of `t (id INT PRIMARY KEY, n INT)` without a wait for the disk. Returns the epoch.
fn submit(engine: &Engine, id: i32) -> u64 {
    let columns: [ArrayRef; 2] =
        [Arc::new(Int32Array::from(vec![id])), Arc::new(Int32Array::from(vec![0]))];
    let mut transaction = engine.begin().unwrap();
    transaction
        .insert("t", RecordBatch::try_from_iter(["id", "n"].into_iter().zip(columns)).unwrap())
        .unwrap();
    transaction.submit().unwrap()
}

#[test]
fn a_read_waits_for_the_disk_only_if_somebody_knows_of_what_is_not_there_yet() {
    let (journal, engine) = gated(2);
    engine
        .execute(
            "CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
             CREATE MATERIALIZED VIEW v AS SELECT SUM(n) AS s FROM t",
        )
        .unwrap();
    engine.wait(engine.progress().committed).unwrap();
    let mut session = engine.session();
    let mut shown = |sql: &str| returned(session.execute(sql).unwrap().remove(0));
    journal.open(false);
    let commits = ["DELETE FROM t WHERE id = 2", "UPDATE t SET n = 31 WHERE id = 3"]
        .map(|sql| begin(&engine, sql));
    until_committed(&engine, 3);
    assert_eq!(shown("SELECT s FROM v"), ["60"]);
    assert_eq!(shown("SELECT SUM(n) FROM t"), ["60"]);
    // A transaction neither, and its writes change what is there.
    let mut writer = engine.session();
    writer.execute("BEGIN").unwrap();
    let read = writer.execute("SELECT n FROM t WHERE id = 1").unwrap().remove(0);
    assert_eq!(returned(read), ["10"]);
    writer
        .execute("UPDATE t SET n = n + 1 WHERE id = 1; UPDATE t SET n = n + 1 WHERE id = 3")
        .unwrap();
    // A statement finds no row, and is done at once. Who knows that must not find the row later.
    let outcome = engine.execute("UPDATE t SET n = 0 WHERE id = 2").unwrap().remove(0);
    assert!(matches!(outcome, Outcome::Changed { rows: 0, .. }), "{outcome:?}");
    let opening = thread::spawn({
        let journal = journal.clone();
        move || {
            thread::sleep(Duration::from_millis(50));
            journal.open(true);
        }
    });
    assert_eq!(shown("SELECT id FROM t WHERE id < 3"), ["1"]);
    opening.join().unwrap();
    writer.execute("COMMIT").unwrap();
    commits.into_iter().for_each(|commit| commit.join().unwrap().unwrap());
    assert_eq!(shown("SELECT * FROM t ORDER BY id"), ["1 11", "3 32"]);
    assert_eq!(shown("SELECT s FROM v"), ["43"]);
}

/// An altered table had lost rows whose epoch was on its way to the disk: they were read as a client reads.
#[test]
fn a_table_that_is_altered_has_the_rows_that_are_not_durable_yet() {
    let (journal, engine) = gated(1);
    engine.execute("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)").unwrap();
    journal.open(false);
    let commit = begin(&engine, "INSERT INTO t VALUES (2)");
    until_committed(&engine, 2);
    let alter = begin(&engine, "ALTER TABLE t ADD COLUMN n INT DEFAULT 7");
    thread::sleep(Duration::from_millis(50));
    journal.open(true);
    alter.join().unwrap().unwrap();
    commit.join().unwrap().unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t ORDER BY id"), ["1 7", "2 7"]);
}

#[test]
fn a_read_by_key_is_answered_at_once_unless_it_has_to_wait() {
    let (journal, engine) = gated(2);
    engine
        .execute("CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 10)")
        .unwrap();
    let mut session = engine.session();
    let [by_key, all] = ["SELECT n FROM t WHERE id = $1", "SELECT n FROM t WHERE n > $1"]
        .map(|sql| session.prepare(sql).unwrap());
    let at_once = |session: &mut Session, prepared: &Prepared, id: i32| {
        session.execute_at_once(prepared, &[id.into()]).map(|outcome| returned(outcome.unwrap()))
    };
    // Its plan is not there before it has run.
    assert_eq!(at_once(&mut session, &by_key, 1), None);
    for prepared in [&by_key, &all] {
        assert_eq!(returned(session.execute_prepared(prepared, &[1.into()]).unwrap()), ["10"]);
    }
    assert_eq!(at_once(&mut session, &by_key, 1), Some(vec!["10".to_owned()]));
    assert_eq!(at_once(&mut session, &by_key, 2), Some(Vec::new()));
    assert_eq!(at_once(&mut session, &all, 1), None, "it may take long");
    journal.open(false);
    let commit = begin(&engine, "UPDATE t SET n = 11 WHERE id = 1");
    until_committed(&engine, 2);
    // Nobody knows of the commit, which is not durable.
    assert_eq!(at_once(&mut session, &by_key, 1), Some(vec!["10".to_owned()]));
    assert_eq!(submit(&engine, 3), 3);
    // Who has submitted it knows of this one: it has to be in the answer.
    assert_eq!(at_once(&mut session, &by_key, 1), None);
    session.set_reads_stale(true);
    assert_eq!(at_once(&mut session, &by_key, 1), Some(vec!["10".to_owned()]));
    session.set_reads_stale(false);
    journal.open(true);
    commit.join().unwrap().unwrap();
    // Who commits waits until it is durable, and not until all relations have it.
    engine.wait(engine.progress().committed).unwrap();
    assert_eq!(at_once(&mut session, &by_key, 1), Some(vec!["11".to_owned()]));
    // A definition ends plans.
    engine.execute("CREATE TABLE other (n INT)").unwrap();
    assert_eq!(at_once(&mut session, &by_key, 1), None);
}

#[test]
fn a_text_that_reads_by_key_is_answered_at_once_unless_it_has_to_wait() {
    let (journal, engine) = gated(2);
    engine
        .execute(
            "CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 10);
             CREATE ROLE root SUPERUSER LOGIN; CREATE ROLE ada",
        )
        .unwrap();
    let (mut session, mut ada) = (engine.session(), engine.session());
    ada.set_role("ada").unwrap();
    let at_once = |session: &mut Session, sql: &str| {
        let (command, outcome) = session.execute_text_at_once(sql)?.unwrap();
        let ("SELECT", Outcome::Rows(rows)) = (command, outcome) else { panic!("{sql}") };
        Some(lines(&rows.into_batches().unwrap()))
    };
    const ONE: &str = "SELECT n FROM t WHERE id = 1";
    let found = |row: &str| Some(vec![row.to_owned()]);
    // Its plan is kept once it has run twice.
    let keep = |session: &mut Session| {
        for id in [5, 6] {
            assert_eq!(at_once(session, ONE), None);
            session.execute(&format!("SELECT n FROM t WHERE id = {id}")).unwrap();
            session.execute("SELECT n FROM t WHERE n > 1").unwrap();
        }
    };
    keep(&mut session);
    assert_eq!(at_once(&mut session, ONE), found("10"));
    assert_eq!(at_once(&mut session, " select n FROM t WHERE id = 1"), None, "another text");
    assert_eq!(at_once(&mut session, "SELECT n FROM t WHERE id = 2 ; "), Some(Vec::new()));
    assert_eq!(at_once(&mut session, "SELECT n FROM t WHERE n > 1"), None, "it may take long");
    assert_eq!(at_once(&mut session, &format!("{ONE}; {ONE}")), None, "they are two");
    for (before, after) in [
        ("SET search_path = s", "RESET search_path"),
        ("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, n INT)", "DROP TABLE t"),
    ] {
        session.execute(before).unwrap();
        assert_eq!(at_once(&mut session, ONE), None, "{before}");
        session.execute(after).unwrap();
        assert_eq!(at_once(&mut session, ONE), found("10"), "{after}");
    }
    // Rights are asked for each time.
    assert_eq!(at_once(&mut ada, ONE), None);
    assert!(ada.execute(ONE).is_err());
    for (change, allowed) in
        [("GRANT SELECT ON t TO ada", true), ("REVOKE SELECT ON t FROM ada", false)]
    {
        session.execute(change).unwrap();
        if at_once(&mut session, ONE).is_none() {
            keep(&mut session);
        }
        assert_eq!(at_once(&mut ada, ONE), found("10").filter(|_| allowed), "{change}");
        assert_eq!(ada.execute(ONE).is_ok(), allowed, "{change}");
    }
    journal.open(false);
    let committed = engine.progress().committed;
    let commit = begin(&engine, "UPDATE t SET n = 11 WHERE id = 1");
    until_committed(&engine, committed + 1);
    assert_eq!(at_once(&mut session, ONE), found("10"), "nobody knows of the commit");
    submit(&engine, 3);
    assert_eq!(
        at_once(&mut session, ONE),
        None,
        "its committer knows of it, and it is not durable"
    );
    session.set_reads_stale(true);
    assert_eq!(at_once(&mut session, ONE), found("10"));
    session.set_reads_stale(false);
    journal.open(true);
    commit.join().unwrap().unwrap();
    engine.wait(engine.progress().committed).unwrap();
    assert_eq!(at_once(&mut session, ONE), found("11"));
    engine.execute("DROP TABLE t; CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR)").unwrap();
    assert_eq!(at_once(&mut session, ONE), None, "a definition ends plans");
}

#[test]
fn small_transactions_are_ordered_between_the_parts_of_a_large_one() {
    let journal = Gated::default();
    journal.open(true);
    let open = || Engine::builder().workers(2).journal(Arc::new(journal.clone())).open().unwrap();
    let engine = open();
    engine
        .execute(
            "CREATE TABLE t (n BIGINT, text VARCHAR);
             CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c, SUM(n) AS s FROM t",
        )
        .unwrap();
    let before = journal.range().end;
    journal.open(false);
    let large = thread::spawn({
        let engine = engine.clone();
        let rows = "SELECT n, repeat('x', 1000) FROM (SELECT UNNEST(range(0, 10000)) AS n)";
        move || engine.execute(&format!("INSERT INTO t {rows}")).map(drop)
    });
    // Its first parts wait for the disk.
    let deadline = std::time::Instant::now() + PATIENCE;
    while journal.range().end.0 < before.0 + 4 && std::time::Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((journal.range().end.0 - before.0, engine.progress().committed), (4, 0));
    for n in 1..=3 {
        let mut transaction = engine.begin().unwrap();
        let columns: [ArrayRef; 2] =
            [Arc::new(Int64Array::from(vec![-n])), Arc::new(StringArray::from(vec!["small"]))];
        let rows = RecordBatch::try_from_iter(["n", "text"].into_iter().zip(columns)).unwrap();
        transaction.insert("t", rows).unwrap();
        assert_eq!(transaction.submit().unwrap(), n as u64);
    }
    journal.open(true);
    large.join().unwrap().unwrap();
    let expected = ["10003 49994994"];
    assert_eq!(query(&engine, "SELECT * FROM v"), expected);
    drop(engine);
    assert_eq!(query(&open(), "SELECT * FROM v"), expected);
}

#[test]
fn epochs_that_become_durable_together_are_changes_of_their_own() {
    const COMMITS: i32 = 40;
    for workers in [1, 3] {
        let journal = Gated::default();
        journal.open(true);
        let builder = Engine::builder().workers(workers).journal(Arc::new(journal.clone()));
        let engine = builder.open().unwrap();
        engine
            .execute("CREATE TABLE t (n INT); CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS c, SUM(n) AS s FROM t")
            .unwrap();
        let mut subscription = engine.subscribe("v").unwrap();
        subscription.next().unwrap().unwrap();
        journal.open(false);
        let commit = |n: i32| {
            let engine = engine.clone();
            thread::spawn(move || engine.execute(&format!("INSERT INTO t VALUES ({n})")).map(drop))
        };
        let commits: Vec<_> = (1..=COMMITS).map(commit).collect();
        while engine.progress().committed < COMMITS as u64 {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(engine.progress().complete, 0);
        journal.open(true);
        commits.into_iter().for_each(|commit| commit.join().unwrap().unwrap());
        let mut counts = Vec::new();
        without_hanging(move || {
            for epoch in 1..=COMMITS as u64 {
                let change = subscription.next().unwrap().unwrap();
                assert_eq!(
                    (change.epoch, change.rows.num_rows()),
                    (epoch, 2),
                    "one row for another"
                );
                let counted = change.rows.column(0).as_primitive::<Int64Type>();
                let now = change.weights.iter().position(|weight| *weight > 0).unwrap();
                counts.push(counted.value(now));
            }
            assert_eq!(counts, (1..=i64::from(COMMITS)).collect::<Vec<_>>());
        });
        let sum = COMMITS * (COMMITS + 1) / 2;
        assert_eq!(query(&engine, "SELECT * FROM v"), [format!("{COMMITS} {sum}")]);
    }
}

/// A bank: money moves between accounts, and the sum stays.
/// Moves money until a call fails. How many moves were acknowledged.
fn bank(engine: &Engine, moves: i64) -> i64 {
    bank::run(engine, moves, |_| Ok(()))
}

#[test]
fn after_a_crash_or_failure_at_any_call_acknowledged_transactions_are_there_and_none_is_halved() {
    const MOVES: i64 = 8;
    let options = FileJournalOptions { segment_size: 4096, write_ahead: 1024, queue_size: 512 };
    let start = |disk: &SimulatedDisk| {
        let journal = FileJournal::open_with(Arc::new(disk.clone()), options).unwrap();
        Engine::builder().workers(1).journal(Arc::new(journal)).open().unwrap()
    };
    let disk = SimulatedDisk::new(0);
    let engine = start(&disk);
    engine.execute(bank::DEFINITIONS).unwrap();
    let first = disk.calls();
    assert_eq!(bank(&engine, MOVES), MOVES);
    let calls = disk.calls() - first;
    drop(engine);
    assert!(calls > MOVES as u64, "{calls}");
    for call in 1..=calls {
        let disk = SimulatedDisk::new(call);
        let engine = start(&disk);
        engine.execute(bank::DEFINITIONS).unwrap();
        disk.fail_from(disk.calls() + call);
        let acknowledged = bank(&engine, MOVES);
        if acknowledged < MOVES {
            assert_poisoned(engine.query("SELECT * FROM total"), "the journal cannot be written");
        }
        drop(engine);
        // The machine loses power as well.
        disk.crash();
        disk.mend();
        let engine = start(&disk);
        assert_eq!(query(&engine, "SELECT * FROM total"), ["100"]);
        let moved: i64 = query(&engine, "SELECT money FROM b")[0].parse().unwrap();
        // One more may have reached the disk.
        assert!((acknowledged..=acknowledged + 1).contains(&moved), "{acknowledged}: {moved}");
        assert_eq!(bank(&engine, 3), 3);
        drop(engine);
        disk.crash();
        let engine = start(&disk);
        assert_eq!(query(&engine, "SELECT money FROM b"), [(moved + 3).to_string()]);
    }
}
