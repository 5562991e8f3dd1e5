//! Standbys: engines that do what another one records, and take its place.
//!
//! `ALLUVIUM_PROMOTIONS` sets the number of promotions of writers that run on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use alluvium::arrow::array::AsArray;
use alluvium::arrow::datatypes::Int64Type;
use alluvium::unstable::{BuilderParts, EngineParts};
use alluvium::{Engine, Error, Value};
use alluvium_remote::{JournalPlace, JournalServer, Running};
use tempfile::TempDir;

use crate::journal::twins::{SMALL, place, server};
use crate::proxy::Proxy;

/// How long a test waits for what has to come.
const LONG: Duration = Duration::from_secs(60);

/// How many accounts there are, and what each has at first.
const ACCOUNTS: i64 = 20;
const EACH: i64 = 100;

/// Inserts so many bytes that they are recorded in parts.
const LARGE: &str =
    "INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, 60000) AS g(n)";

struct Setting {
    directory: TempDir,
    server: Running,
}

impl Setting {
    fn new() -> Setting {
        Setting::of(server().options(SMALL))
    }

    fn of(server: JournalServer) -> Setting {
        let directory = tempfile::tempdir().unwrap();
        let server = server.start(directory.path().join("journals")).unwrap();
        Setting { directory, server }
    }

    fn place(&self) -> JournalPlace {
        place(&self.server, "orders")
    }

    fn state(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn writer(&self, state: &str, workers: usize) -> Engine {
        let state = format!("file:{}", self.state(state).display());
        let builder = alluvium_connect::formats(Engine::builder().workers(workers).state(state));
        builder.elsewhere(Arc::new(self.place())).open().unwrap()
    }

    fn standby(&self, state: &str, workers: usize) -> Engine {
        follow(&self.state(state), self.place(), workers).unwrap()
    }
}

fn follow(state: &Path, place: JournalPlace, workers: usize) -> Result<Engine, Error> {
    let name = state.file_name().unwrap().to_string_lossy().into_owned();
    let builder = Engine::builder().workers(workers).state(format!("file:{}", state.display()));
    alluvium_connect::formats(builder).elsewhere(Arc::new(place)).follow(name).open()
}

/// Waits until a standby has an epoch.
fn wait(standby: &Engine, epoch: u64) {
    let begun = Instant::now();
    while standby.lag().unwrap().epoch < epoch {
        assert!(begun.elapsed() < LONG, "{:?} before {epoch}", standby.lag());
        standby.query("SELECT 1").unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Copies a directory that nobody uses.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

fn last(engine: &Engine) -> u64 {
    engine.progress().committed
}

fn number(engine: &Engine, query: &str) -> i64 {
    engine.query(query).unwrap()[0].column(0).as_primitive::<Int64Type>().value(0)
}

fn rows(engine: &Engine, query: &str) -> String {
    let rows = engine.query(query).unwrap();
    format!("{}", alluvium::arrow::util::pretty::pretty_format_batches(&rows).unwrap())
}

fn define(engine: &Engine) {
    let accounts = (0..ACCOUNTS).map(|id| format!("({id}, {EACH})")).collect::<Vec<_>>().join(", ");
    engine
        .execute(&format!(
            "CREATE TABLE account (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL);
             CREATE TABLE moved (number BIGINT PRIMARY KEY, cents BIGINT);
             CREATE MATERIALIZED VIEW total AS SELECT SUM(cents) AS cents, COUNT(*) AS accounts FROM account;
             CREATE MATERIALIZED VIEW buckets AS SELECT id % 3 AS bucket, SUM(cents) AS cents FROM account GROUP BY id % 3;
             INSERT INTO account VALUES {accounts}"
        ))
        .unwrap();
}

/// Moves money between two accounts, as the transfer of this number.
fn transfer(engine: &Engine, transfer: i64) -> Result<(), Error> {
    let (from, to) = (transfer % ACCOUNTS, (transfer * 7 + 3) % ACCOUNTS);
    let cents = transfer % 13;
    let mut session = engine.session();
    session.execute(&format!(
        "BEGIN; UPDATE account SET cents = cents - {cents} WHERE id = {from};
         UPDATE account SET cents = cents + {cents} WHERE id = {to};
         INSERT INTO moved VALUES ({transfer}, {cents}); COMMIT"
    ))?;
    Ok(())
}

/// Fails unless all money is there, and every view is what its query says.
fn check(engine: &Engine) {
    let mut session = engine.session();
    session.execute("BEGIN").unwrap();
    for (view, query) in [
        ("total", "SELECT SUM(cents) AS cents, COUNT(*) AS accounts FROM account"),
        ("buckets", "SELECT id % 3 AS bucket, SUM(cents) AS cents FROM account GROUP BY id % 3"),
    ] {
        let differences = format!(
            "SELECT COUNT(*) FROM ((SELECT * FROM {view} EXCEPT {query}) UNION ALL ({query} EXCEPT SELECT * FROM {view})) AS d"
        );
        let rows = session.execute(&differences).unwrap().pop().unwrap();
        let alluvium::Outcome::Rows(rows) = rows else { panic!("no rows") };
        let rows = rows.into_batches().unwrap();
        assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().value(0), 0, "{view}");
    }
    drop(session);
    assert_eq!(number(engine, "SELECT cents FROM total"), ACCOUNTS * EACH);
    assert_eq!(number(engine, "SELECT SUM(cents) FROM account"), ACCOUNTS * EACH);
}

#[test]
fn a_standby_has_what_the_writer_commits_and_refuses_to_write() {
    let setting = Setting::new();
    let writer = setting.writer("a", 2);
    let standby = setting.standby("b", 1);
    assert!(writer.lag().is_none());
    define(&writer);
    (0..20).for_each(|number| transfer(&writer, number).unwrap());
    wait(&standby, last(&writer));
    let all = "SELECT * FROM account ORDER BY id";
    assert_eq!(rows(&standby, all), rows(&writer, all));
    check(&standby);
    for (sql, what) in [
        ("INSERT INTO account VALUES (99, 1)", "INSERT on a standby"),
        ("UPDATE account SET cents = 0", "UPDATE on a standby"),
        ("DELETE FROM account", "DELETE on a standby"),
        ("CREATE TABLE more (n BIGINT)", "CREATE TABLE on a standby"),
        ("CREATE MATERIALIZED VIEW more AS SELECT * FROM moved", "CREATE VIEW on a standby"),
        ("DROP VIEW total", "DROP VIEW on a standby"),
        ("BEGIN; INSERT INTO account VALUES (99, 1)", "INSERT on a standby"),
    ] {
        let error = standby.execute(sql).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("promote the standby"), "{sql}: {error}");
    }
    let path = setting.directory.path().join("total.csv");
    for mode in [alluvium::OutputMode::Contents, alluvium::OutputMode::Changes] {
        let error = standby.output("total", &path, None, &[], mode).unwrap_err().to_string();
        assert!(error.contains("an output on a standby"), "{error}");
    }
    let mut transaction = standby.begin().unwrap();
    let row = alluvium::arrow::array::RecordBatch::try_from_iter([
        ("number", Arc::new(alluvium::arrow::array::Int64Array::from(vec![-1])) as _),
        ("cents", Arc::new(alluvium::arrow::array::Int64Array::from(vec![0])) as _),
    ]);
    transaction.insert("moved", row.unwrap()).unwrap();
    let error = transaction.commit().unwrap_err().to_string();
    assert!(error.contains("a commit on a standby"), "{error}");
    // Definitions come as well, and reads by key, subscriptions and read-only transactions are as they are anywhere.
    writer
        .execute("CREATE TABLE late (n BIGINT); INSERT INTO late VALUES (7); DROP VIEW buckets")
        .unwrap();
    wait(&standby, last(&writer));
    assert_eq!(number(&standby, "SELECT n FROM late"), 7);
    let begun = Instant::now();
    while standby.query("SELECT * FROM buckets").is_ok() {
        assert!(begun.elapsed() < LONG);
    }
    let found = standby.view("account").unwrap().get(&[Value::from(3_i64)]).unwrap();
    assert_eq!(found.num_rows(), 1);
    let mut changes = standby.subscribe("total").unwrap();
    assert!(changes.next().unwrap().is_ok());
    transfer(&writer, 20).unwrap();
    wait(&standby, last(&writer));
    assert_eq!(standby.lag().unwrap().records, 0);
    assert_eq!(standby.lag().unwrap().behind, Duration::ZERO);
}

#[test]
fn a_promoted_standby_has_all_that_was_acknowledged_and_the_former_writer_is_refused() {
    let setting = Setting::new();
    let writer = setting.writer("a", 1);
    define(&writer);
    let standby = setting.standby("b", 2);
    (0..10).for_each(|number| transfer(&writer, number).unwrap());
    let committed = last(&writer);
    let promoted = standby.promote().unwrap();
    assert_eq!((promoted.epoch, promoted.not_started), (committed, None));
    assert!(standby.lag().is_none());
    assert_eq!(number(&standby, "SELECT COUNT(*) FROM moved"), 10);
    let error = transfer(&writer, 10).unwrap_err().to_string();
    assert!(error.contains("another process has opened the journal \"orders\""), "{error}");
    (10..20).for_each(|number| transfer(&standby, number).unwrap());
    standby.execute("CREATE TABLE more (n BIGINT); INSERT INTO more VALUES (1)").unwrap();
    check(&standby);
    assert!(standby.promote().unwrap_err().to_string().contains("it writes already"));
    drop(standby);
    // It is an ordinary engine, and so is its directory.
    let again = setting.writer("b", 1);
    assert_eq!(number(&again, "SELECT COUNT(*) FROM moved"), 20);
    check(&again);
    // The former writer follows: its directory has nothing that the journal does not have.
    drop(writer);
    let former = setting.standby("a", 1);
    (20..25).for_each(|number| transfer(&again, number).unwrap());
    wait(&former, last(&again));
    check(&former);
    former.promote().unwrap();
    assert_eq!(number(&former, "SELECT COUNT(*) FROM moved"), 25);
}

#[test]
fn a_standby_goes_on_from_its_own_checkpoints_when_the_journal_has_let_go_of_what_was_before() {
    let setting = Setting::new();
    let writer = setting.writer("a", 1);
    let mut standby = setting.standby("b", 1);
    define(&writer);
    let mut next = 0;
    for round in 0..5 {
        for _ in 0..40 {
            transfer(&writer, next).unwrap();
            next += 1;
        }
        if round != 1 {
            wait(&standby, last(&writer));
            standby.execute("CHECKPOINT").unwrap();
        }
        writer.checkpoint().unwrap();
        drop(standby);
        // While it is away.
        (next..next + 5).for_each(|number| transfer(&writer, number).unwrap());
        next += 5;
        writer.checkpoint().unwrap();
        standby = setting.standby("b", 1 + round % 2);
        wait(&standby, last(&writer));
        assert_eq!(number(&standby, "SELECT COUNT(*) FROM moved"), next);
        check(&standby);
    }
    let first = setting.directory.path().join("journals/orders/00000000000000000000.journal");
    assert!(!first.exists(), "the journal has let go of nothing");
    // A new one cannot begin any more, and says so.
    let error = follow(&setting.state("c"), setting.place(), 1).err().unwrap().to_string();
    assert!(error.contains("\"c\" needs record 0: that is not kept any more"), "{error}");
    assert!(error.contains("a copy of the state directory of the writer"), "{error}");
    drop(writer);
    copy(&setting.state("a"), &setting.state("c"));
    let writer = setting.writer("a", 1);
    let copied = setting.standby("c", 1);
    transfer(&writer, next).unwrap();
    wait(&copied, last(&writer));
    assert_eq!(number(&copied, "SELECT COUNT(*) FROM moved"), next + 1);
    check(&copied);
}

#[test]
fn large_transactions_come_whole_also_with_definitions_and_those_that_fail_do_not() {
    let setting = Setting::of(server());
    let writer = setting.writer("a", 1);
    writer.execute("CREATE TABLE t (n BIGINT PRIMARY KEY, s VARCHAR)").unwrap();
    let standby = setting.standby("b", 2);
    let insert = |from: i64, to: i64| {
        format!(
            "INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series({from}, {to}) AS g(n)"
        )
    };
    for round in 0..3 {
        let from = round * 100_000;
        writer.execute(&insert(from, from + 59_999)).unwrap();
        // It has recorded parts when it finds the key that is there.
        writer.execute(&insert(from, from + 30_000)).unwrap_err();
        let make = format!("CREATE TABLE u{round} AS SELECT n, s FROM t WHERE n >= {from}");
        writer.execute(&make).unwrap();
        let block = format!(
            "BEGIN; CREATE TABLE w{round} (n BIGINT, s VARCHAR); {}; COMMIT",
            insert(from + 60_000, from + 79_999)
        );
        writer.execute(&block).unwrap();
        wait(&standby, last(&writer));
        assert_eq!(number(&standby, "SELECT COUNT(*) FROM t"), (round + 1) * 80_000);
        assert_eq!(number(&standby, &format!("SELECT COUNT(*) FROM u{round}")), 60_000);
        standby.checkpoint().unwrap();
    }
    drop(writer);
    standby.promote().unwrap();
    assert_eq!(number(&standby, "SELECT COUNT(*) FROM t"), 240_000);
}

#[test]
fn promoted_at_any_moment_it_has_each_transfer_that_was_acknowledged_and_each_once() {
    let rounds = std::env::var("ALLUVIUM_PROMOTIONS").map_or(12, |text| text.parse().unwrap());
    for round in 0..rounds {
        let setting = Setting::new();
        let writer = setting.writer("a", 1 + round % 3);
        define(&writer);
        let standby = setting.standby("b", 1 + (round + 1) % 3);
        let acknowledged = AtomicI64::new(-1);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let transfers = scope.spawn(|| {
                for number in 0.. {
                    if transfer(&writer, number).is_err() {
                        return number;
                    }
                    acknowledged.store(number, Ordering::SeqCst);
                }
                unreachable!()
            });
            let reads = scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    assert_eq!(
                        number(&standby, "SELECT COALESCE(MAX(cents), 2000) FROM total"),
                        ACCOUNTS * EACH
                    );
                }
            });
            std::thread::sleep(Duration::from_millis(fastrand::u64(0..150)));
            if round % 4 == 0 {
                standby.checkpoint().unwrap();
            }
            let before = acknowledged.load(Ordering::SeqCst);
            standby.promote().unwrap();
            let unsure = transfers.join().unwrap();
            let has = number(&standby, "SELECT COUNT(*) FROM moved");
            assert_eq!(number(&standby, "SELECT COALESCE(MAX(number), -1) + 1 FROM moved"), has);
            assert!(has > before, "{has} of {before}");
            // The last one may have been recorded without an answer.
            assert!(has == unsure || has == unsure + 1, "{has} of {unsure}");
            (has..has + 10).for_each(|number| transfer(&standby, number).unwrap());
            is_over.store(true, Ordering::SeqCst);
            reads.join().unwrap();
            assert_eq!(number(&standby, "SELECT COUNT(*) FROM moved"), has + 10);
            check(&standby);
        });
    }
}

#[test]
fn a_standby_that_is_cut_off_shows_how_far_it_is_behind_and_catches_up() {
    let setting = Setting::new();
    let writer = setting.writer("a", 1);
    define(&writer);
    let proxy = Proxy::new(setting.server.address());
    let through = JournalPlace::new(&format!("http://{}/orders", proxy.address), None).unwrap();
    let standby =
        follow(&setting.state("b"), through.patience(Duration::from_millis(100)), 1).unwrap();
    wait(&standby, last(&writer));
    let before = last(&writer);
    proxy.refuse(true);
    proxy.cut();
    (0..30).for_each(|number| transfer(&writer, number).unwrap());
    let begun = Instant::now();
    while standby.lag().unwrap().silence < Duration::from_secs(2) {
        assert!(begun.elapsed() < LONG);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(standby.lag().unwrap().epoch, before);
    check(&standby);
    // It cannot take the term either, and stays what it is.
    let error = standby.promote().unwrap_err().to_string();
    assert!(error.contains("the standby cannot be promoted"), "{error}");
    proxy.refuse(false);
    wait(&standby, last(&writer));
    assert_eq!(number(&standby, "SELECT COUNT(*) FROM moved"), 30);
    transfer(&writer, 30).unwrap();
    standby.promote().unwrap();
    assert_eq!(number(&standby, "SELECT COUNT(*) FROM moved"), 31);
}

#[test]
fn what_the_writer_releases_while_a_standby_is_cut_off_is_replayed_there_all_the_same() {
    let setting = Setting::of(server());
    let writer = setting.writer("a", 1);
    writer.execute("CREATE TABLE t (n BIGINT, s VARCHAR)").unwrap();
    let proxy = Proxy::new(setting.server.address());
    let through = JournalPlace::new(&format!("http://{}/orders", proxy.address), None).unwrap();
    let standby = follow(&setting.state("b"), through, 1).unwrap();
    wait(&standby, last(&writer));
    proxy.refuse(true);
    proxy.cut();
    // It has parts, which the checkpoints need no more.
    writer.execute(LARGE).unwrap();
    writer.execute("CHECKPOINT; INSERT INTO t VALUES (0, ''); CHECKPOINT").unwrap();
    proxy.refuse(false);
    wait(&standby, last(&writer));
    assert_eq!(number(&standby, "SELECT COUNT(*) FROM t"), 60_001);
}

#[test]
fn a_standby_waits_for_a_large_transaction_that_it_reads_again_and_ends_meanwhile() {
    let setting = Setting::of(server());
    let writer = setting.writer("a", 1);
    writer.execute("CREATE TABLE t (n BIGINT, s VARCHAR)").unwrap();
    let proxy = Proxy::new(setting.server.address());
    let through = JournalPlace::new(&format!("http://{}/orders", proxy.address), None).unwrap();
    let through = through.patience(Duration::from_millis(100));
    let standby = follow(&setting.state("b"), through, 1).unwrap();
    wait(&standby, last(&writer));
    let before = standby.lag().unwrap().epoch;
    // What comes goes on to come, and nothing else can be read.
    let is_kept_waiting = || {
        proxy.refuse(true);
        writer.execute(LARGE).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            standby.query("SELECT 1").unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
        standby.lag().unwrap().epoch
    };
    assert_eq!(is_kept_waiting(), before);
    proxy.refuse(false);
    wait(&standby, last(&writer));
    assert_eq!(number(&standby, "SELECT COUNT(*) FROM t"), 60_000);
    let before = last(&writer);
    assert_eq!(is_kept_waiting(), before);
    drop(standby);
    // It has let go of its directory, and has nothing of that transaction.
    let standby = setting.standby("b", 1);
    wait(&standby, last(&writer));
    assert_eq!(number(&standby, "SELECT COUNT(*) FROM t"), 120_000);
}

#[test]
fn rows_of_files_come_by_the_journal_and_the_promoted_standby_reads_on() {
    let setting = Setting::new();
    let writer = setting.writer("a", 1);
    let file = setting.directory.path().join("rows.csv");
    std::fs::write(&file, "n\n1\n2\n3\n").unwrap();
    let connector = format!(
        r#"CREATE TABLE t (n BIGINT) WITH ('materialized' = 'true', 'connectors' = '[{{"transport": {{"name": "file_input", "config": {{"path": "{}", "follow": true}}}}, "format": {{"name": "csv", "config": {{"headers": true}}}}}}]')"#,
        file.display()
    );
    writer.execute(&connector).unwrap();
    writer.start().unwrap();
    let count = |engine: &Engine| number(engine, "SELECT COUNT(*) FROM t");
    let until = |engine: &Engine, rows: i64| {
        let begun = Instant::now();
        while count(engine) != rows {
            assert!(begun.elapsed() < LONG);
        }
    };
    until(&writer, 3);
    // The file is not there when the standby replays that it was read.
    let aside = setting.directory.path().join("aside.csv");
    std::fs::rename(&file, &aside).unwrap();
    let standby = setting.standby("b", 1);
    assert_eq!(standby.lacking(), [format!("table \"t\": there is no file {}", file.display())]);
    until(&standby, 3);
    drop(writer);
    // It is promoted without it, too, and says so.
    let without = setting.standby("c", 1);
    until(&without, 3);
    let not_started = without.promote().unwrap().not_started.unwrap().to_string();
    assert!(not_started.contains(&*file.to_string_lossy()), "{not_started}");
    without.execute("CREATE TABLE more (n BIGINT)").unwrap();
    drop(without);
    std::fs::rename(&aside, &file).unwrap();
    assert!(standby.lacking().is_empty());
    let mut text = std::fs::read_to_string(&file).unwrap();
    text += "4\n5\n";
    std::fs::write(&file, text).unwrap();
    standby.promote().unwrap();
    until(&standby, 5);
}

#[test]
fn an_output_of_changes_is_not_gone_on_with_and_nothing_is_written_to_it() {
    let setting = Setting::new();
    let writer = setting.writer("a", 1);
    let standby = setting.standby("b", 1);
    writer.execute("CREATE TABLE t (n BIGINT); CREATE VIEW v AS SELECT n FROM t").unwrap();
    let path = setting.directory.path().join("v.csv");
    writer.output("v", &path, None, &[], alluvium::OutputMode::Changes).unwrap();
    writer.execute("INSERT INTO t VALUES (1)").unwrap();
    let begun = Instant::now();
    let error = loop {
        match standby.query("SELECT 1") {
            Ok(_) => assert!(begun.elapsed() < LONG),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("it is a standby, and cannot follow any further"), "{error}");
    assert!(error.contains("which a standby cannot go on with"), "{error}");
    drop(standby);
    let error = follow(&setting.state("b"), setting.place(), 1).err().unwrap().to_string();
    assert!(error.contains("which a standby cannot go on with"), "{error}");
    // Once it is dropped the standby follows.
    writer.execute("DROP VIEW v; INSERT INTO t VALUES (2)").unwrap();
    let standby = setting.standby("b", 1);
    wait(&standby, last(&writer));
    assert_eq!(number(&standby, "SELECT SUM(n) FROM t"), 3);
}
