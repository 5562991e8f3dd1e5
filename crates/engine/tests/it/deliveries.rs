//! Views whose changes go to a system other than files: here a log in memory, which takes changes together with a mark.
//!
//! The changes in the log add up to the view, whenever engines end, and however the log fails meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use alluvium::arrow::array::RecordBatch;
use alluvium::{
    Delivery, DeliveryRequest, DeliveryWriter, Engine, Error, Outcome, Result, System,
    TransportConnector,
};
use parking_lot::Mutex;

use crate::support::{PATIENCE, batch_lines, lines, settled};

/// What the system has: rows with the number of their copies, and marks by the names of outputs.
#[derive(Default)]
struct Contents {
    rows: BTreeMap<String, i64>,
    marks: BTreeMap<String, u64>,
    /// The epochs that were written, in their order.
    epochs: Vec<u64>,
    commits: u64,
}

#[derive(Clone, Default)]
struct Log {
    contents: Arc<Mutex<Contents>>,
    /// Whether it cannot be reached.
    is_away: Arc<AtomicBool>,
    forgets_marks: bool,
}

struct Writer {
    log: Log,
    request: DeliveryRequest,
    delivered: Option<u64>,
    pending: Vec<(u64, BTreeMap<String, i64>)>,
}

impl Log {
    /// Waits until it can be reached; the first time not for ever.
    fn reach(&self, request: &DeliveryRequest, patience: Option<Duration>) -> Result<()> {
        let start = Instant::now();
        while self.is_away.load(Ordering::Relaxed) {
            if request.is_over() || patience.is_some_and(|most| start.elapsed() > most / 100) {
                return Err(Error::source("the log cannot be reached"));
            }
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn rows(&self) -> Vec<String> {
        let contents = self.contents.lock();
        assert!(contents.rows.values().all(|copies| *copies > 0));
        let copies = |(row, copies): (&String, &i64)| vec![row.clone(); *copies as usize];
        contents.rows.iter().flat_map(copies).collect()
    }
}

impl System for Log {
    fn name(&self) -> &str {
        "log"
    }

    fn check(&self, option: &str, _: &str) -> Result<()> {
        match option {
            "topic" => Ok(()),
            other => Err(Error::source(format!("a log has no option \"{other}\""))),
        }
    }
}

impl Delivery for Log {
    fn place(&self, connector: &TransportConnector) -> Result<String> {
        let topic = connector.options.iter().find(|(name, _)| name == "topic");
        let (_, topic) = topic.ok_or_else(|| Error::source("a log needs a \"topic\""))?;
        Ok(format!("log://memory/{topic}"))
    }

    fn open(&self, request: &DeliveryRequest) -> Result<Box<dyn DeliveryWriter>> {
        self.reach(request, request.patience)?;
        let delivered = self.contents.lock().marks.get(&request.id).copied();
        let (log, request) = (self.clone(), request.clone());
        Ok(Box::new(Writer { log, request, delivered, pending: Vec::new() }))
    }
}

impl DeliveryWriter for Writer {
    fn delivered(&self) -> Option<u64> {
        self.delivered.filter(|_| self.keeps_marks())
    }

    fn write(&mut self, epoch: u64, rows: &RecordBatch, weights: &[i64]) -> Result<()> {
        let changes = batch_lines(rows).into_iter().zip(weights.iter().copied()).collect();
        self.pending.push((epoch, changes));
        Ok(())
    }

    fn commit(&mut self, epoch: u64) -> Result<()> {
        self.log.reach(&self.request, None)?;
        let contents = &mut *self.log.contents.lock();
        for (epoch, changes) in self.pending.drain(..) {
            contents.epochs.push(epoch);
            for (row, weight) in changes {
                *contents.rows.entry(row).or_default() += weight;
            }
        }
        contents.rows.retain(|_, copies| *copies != 0);
        contents.marks.insert(self.request.id.clone(), epoch);
        contents.commits += 1;
        Ok(())
    }

    fn keeps_marks(&self) -> bool {
        !self.log.forgets_marks
    }
}

fn view(name: &str, topic: &str, query: &str) -> String {
    format!(
        r#"CREATE VIEW {name} WITH ('connectors' =
            '[{{"transport": {{"name": "log_output", "config": {{"topic": "{topic}"}}}}}}]') AS {query}"#
    )
}

/// Waits until the log has what the query answers.
fn wait(engine: &Engine, log: &Log, query: &str) {
    let (expected, start) = (settled(engine, query), Instant::now());
    while log.rows() != expected {
        assert!(start.elapsed() < PATIENCE, "{:?} instead of {expected:?}", log.rows());
        sleep(Duration::from_millis(1));
    }
}

const SUMS: &str = "SELECT k % 5 AS k, COUNT(*) AS rows, SUM(v) AS v FROM t GROUP BY k % 5";

#[test]
fn changes_are_there_once_however_often_an_engine_starts_again() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (log, folder) = (Log::default(), tempfile::tempdir().unwrap());
        let open = || {
            let builder = Engine::builder().workers(1 + seed as usize % 3).delivery(log.clone());
            builder.state(&*format!("file:{}", folder.path().display())).open().unwrap()
        };
        let mut engine = open();
        engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
        engine.execute(&view("m", "a", SUMS)).unwrap();
        for _ in 0..25 {
            for _ in 0..random.u8(..6) {
                let (key, value) = (random.i64(..20), random.i64(-9..9));
                let sql = match random.u8(..3) {
                    0 => format!("DELETE FROM t WHERE k = {key}"),
                    _ => format!("INSERT OR REPLACE INTO t VALUES ({key}, {value})"),
                };
                engine.execute(&sql).unwrap();
            }
            match random.u8(..6) {
                0 => engine.checkpoint().unwrap(),
                1 | 2 => {
                    // It ends with changes that are on their way.
                    drop(engine);
                    engine = open();
                }
                3 => {
                    log.is_away.store(true, Ordering::Relaxed);
                    engine.execute("INSERT OR REPLACE INTO t VALUES (1, 1)").unwrap();
                    drop(engine);
                    // An engine starts without the log.
                    engine = open();
                    engine.execute("INSERT OR REPLACE INTO t VALUES (2, 2)").unwrap();
                    log.is_away.store(false, Ordering::Relaxed);
                }
                _ => wait(&engine, &log, SUMS),
            }
        }
        wait(&engine, &log, SUMS);
        let epochs = log.contents.lock().epochs.clone();
        assert!(epochs.is_sorted_by(|a, b| a < b), "seed {seed}: {epochs:?}");
        let shown = "SELECT relation, path, mode, state, exactly_once FROM alluvium.outputs";
        assert_eq!(settled(&engine, shown), ["m log://memory/a changes running true"]);
        assert_eq!(log.contents.lock().marks.len(), 1);
    }
}

/// Many small epochs are not as many commits.
#[test]
fn epochs_are_committed_together_if_they_come_faster_than_the_system_takes_them() {
    let log = Log::default();
    let engine = Engine::builder().delivery(log.clone()).open_in_memory().unwrap();
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    engine.execute(&view("m", "a", SUMS)).unwrap();
    log.is_away.store(true, Ordering::Relaxed);
    for key in 0..500 {
        engine.execute(&format!("INSERT INTO t VALUES ({key}, 1)")).unwrap();
    }
    log.is_away.store(false, Ordering::Relaxed);
    wait(&engine, &log, SUMS);
    let contents = log.contents.lock();
    let (epochs, commits) = (contents.epochs.len(), contents.commits);
    assert!(epochs >= 500 && commits < 250, "{epochs} epochs in {commits} commits");
    drop(contents);
    let shown = "SELECT exactly_once FROM alluvium.outputs";
    assert_eq!(settled(&engine, shown), ["false"], "another process would write all again");
}

#[test]
fn a_system_that_keeps_no_mark_has_changes_at_least_once() {
    let log = Log { forgets_marks: true, ..Log::default() };
    let folder = tempfile::tempdir().unwrap();
    let state = format!("file:{}", folder.path().display());
    let open = || Engine::builder().delivery(log.clone()).state(&*state).open().unwrap();
    let engine = open();
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    engine.execute(&view("m", "a", "SELECT k FROM t")).unwrap();
    engine.execute("INSERT INTO t VALUES (1, 1)").unwrap();
    wait(&engine, &log, "SELECT k FROM t");
    engine.checkpoint().unwrap();
    engine.execute("INSERT INTO t VALUES (2, 2)").unwrap();
    wait(&engine, &log, "SELECT k FROM t");
    drop(engine);
    let engine = open();
    engine.execute("INSERT INTO t VALUES (3, 3)").unwrap();
    let start = Instant::now();
    while log.rows() != ["1", "2", "2", "3"] {
        assert!(start.elapsed() < PATIENCE, "{:?}", log.rows());
        sleep(Duration::from_millis(1));
    }
    assert_eq!(settled(&engine, "SELECT exactly_once FROM alluvium.outputs"), ["false"]);
}

/// Its topic was deleted, or a broker restored from an older copy.
#[test]
fn a_system_that_lost_what_it_had_is_told_and_nothing_is_left_out_silently() {
    let (log, folder) = (Log::default(), tempfile::tempdir().unwrap());
    let state = format!("file:{}", folder.path().display());
    let open = || Engine::builder().delivery(log.clone()).state(&*state).open();
    let engine = open().unwrap();
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    engine.execute(&view("m", "a", "SELECT k FROM t")).unwrap();
    engine.execute("INSERT INTO t VALUES (1, 1)").unwrap();
    engine.checkpoint().unwrap();
    drop(engine);
    *log.contents.lock() = Contents::default();
    let start = Instant::now();
    // The output may have stopped the engine before it is open.
    let error = match open() {
        Err(error) => error.to_string(),
        Ok(engine) => loop {
            assert!(start.elapsed() < PATIENCE);
            if let Err(error) = engine.execute("INSERT OR REPLACE INTO t VALUES (2, 2)") {
                break error.to_string();
            }
        },
    };
    assert!(
        error.contains("log://memory/a") && error.contains("what was there is gone"),
        "{error}"
    );
}

#[test]
fn a_view_is_not_created_if_its_system_cannot_be_reached_or_its_connector_is_wrong() {
    let log = Log::default();
    let engine = Engine::builder().delivery(log.clone()).open_in_memory().unwrap();
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    log.is_away.store(true, Ordering::Relaxed);
    let error = engine.execute(&view("m", "a", "SELECT k FROM t")).unwrap_err().to_string();
    assert!(error.contains("the log cannot be reached"), "{error}");
    log.is_away.store(false, Ordering::Relaxed);
    engine.execute(&view("m", "a", "SELECT k FROM t")).unwrap();
    let error = engine.execute(&view("n", "a", "SELECT v FROM t")).unwrap_err().to_string();
    assert!(error.contains("\"m\" is written to \"log://memory/a\" already"), "{error}");
    let unknown = view("n", "b", "SELECT v FROM t").replace("log_output", "kafka_output");
    let error = engine.execute(&unknown).unwrap_err().to_string();
    assert!(error.contains(r#"there is "file_output", "log_output""#), "{error}");
    // What was delivered stays, and a view that is dropped waits no longer for a system that is away.
    engine.execute("INSERT INTO t VALUES (1, 1)").unwrap();
    wait(&engine, &log, "SELECT k FROM t");
    log.is_away.store(true, Ordering::Relaxed);
    engine.execute("INSERT INTO t VALUES (2, 2)").unwrap();
    engine.execute("DROP VIEW m").unwrap();
    assert_eq!(log.rows(), ["1"]);
}

/// A sink comes and goes while its view lives, and has all rows once, also after restarts. One that is made again begins anew.
#[test]
fn sinks_come_and_go_while_their_view_lives() {
    let (logs, folder) = ([Log::default(), Log::default()], tempfile::tempdir().unwrap());
    let state = format!("file:{}", folder.path().display());
    let open = || {
        let builder = Engine::builder().delivery(Topics(logs.clone()));
        builder.state(&*state).open().unwrap()
    };
    let create = |name: &str, topic: &str| {
        format!(
            "CREATE SINK {name} FROM v INTO LOG local (topic = '{topic}') FORMAT JSON ENVELOPE NONE"
        )
    };
    let shown = |engine: &Engine| {
        let Some(Outcome::Rows(rows)) = engine.session().execute("SHOW SINKS").unwrap().pop()
        else {
            panic!("it has rows")
        };
        lines(&rows.into_batches().unwrap())
    };
    let mut engine = open();
    engine.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    engine.execute(&format!("CREATE MATERIALIZED VIEW v AS {SUMS}")).unwrap();
    engine
        .execute("INSERT INTO t VALUES (1, 1), (2, 2); CREATE CONNECTION local TO LOG ()")
        .unwrap();
    engine.execute(&create("first", "a")).unwrap();
    for round in 3..9 {
        engine.execute(&format!("INSERT INTO t VALUES ({round}, {round})")).unwrap();
        if round == 5 {
            engine.execute(&create("second", "b")).unwrap();
        }
        wait(&engine, &logs[0], SUMS);
        if round >= 5 {
            wait(&engine, &logs[1], SUMS);
        }
        if round % 2 == 0 {
            engine.checkpoint().unwrap();
        }
        drop(engine);
        engine = open();
    }
    assert_eq!(
        shown(&engine),
        ["first v log log://memory/a running", "second v log log://memory/b running"]
    );
    let error = |sql: &str| engine.execute(sql).unwrap_err().to_string();
    assert!(error("DROP VIEW v").contains("is used by sink \"first\", sink \"second\""));
    assert!(error("DROP CONNECTION local").contains("is used by \"first\", \"second\""));
    assert!(error(&create("first", "c")).contains("there is already a sink \"first\""));
    assert!(
        error(&create("third", "a")).contains("\"v\" is written to \"log://memory/a\" already")
    );
    assert!(
        error("CREATE SINK third FROM none INTO LOG (topic = 'c')")
            .contains("there is no table or view \"none\"")
    );
    assert!(error("CREATE SINK third FROM v INTO LOG ()").contains("a log needs a \"topic\""));
    assert!(error("DROP SINK third").contains("there is no sink \"third\""));
    // The other one goes on.
    engine.execute("DROP SINK second; INSERT INTO t VALUES (20, 20)").unwrap();
    wait(&engine, &logs[0], SUMS);
    let left = logs[1].rows();
    drop(engine);
    engine = open();
    engine.execute("INSERT INTO t VALUES (21, 21)").unwrap();
    wait(&engine, &logs[0], SUMS);
    assert_eq!(logs[1].rows(), left);
    assert_eq!(shown(&engine), ["first v log log://memory/a running"]);
    // Its marks are not those of the one before.
    logs[1].contents.lock().rows.clear();
    engine.execute(&create("second", "b")).unwrap();
    wait(&engine, &logs[1], SUMS);
    engine.execute("DROP VIEW v CASCADE").unwrap();
    assert!(shown(&engine).is_empty());
    engine.checkpoint().unwrap();
    drop(engine);
    engine = open();
    assert!(shown(&engine).is_empty());
    engine.execute("DROP CONNECTION local").unwrap();
}

/// Logs by their topics.
#[derive(Clone)]
struct Topics([Log; 2]);

impl System for Topics {
    fn name(&self) -> &str {
        "log"
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        self.0[0].check(option, value)
    }

    fn is_of_connection(&self, _: &str) -> bool {
        false
    }
}

impl Delivery for Topics {
    fn place(&self, connector: &TransportConnector) -> Result<String> {
        self.0[0].place(connector)
    }

    fn open(&self, request: &DeliveryRequest) -> Result<Box<dyn DeliveryWriter>> {
        let number = usize::from(request.connector.option("topic") == Some("b"));
        self.0[number].open(request)
    }
}
