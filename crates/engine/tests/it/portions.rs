//! Portions of a source that are not a transaction each: some belong to one, begin it anew, empty the table, or keep values of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use alluvium::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use alluvium::{
    Absent, Engine, Error, Live, Portion, Result, SourcePosition, SourceReader, SourceState,
    System, Transport, TransportConnector, TransportRequest,
};
use parking_lot::Mutex;

use crate::support::{PATIENCE, settled};

/// A source that gives the portions of a test, and then waits until it is not needed.
#[derive(Clone, Default)]
struct Script {
    portions: Arc<Mutex<Vec<Portion>>>,
    is_over: Arc<AtomicBool>,
}

struct Reader {
    script: Script,
    live: Option<Live>,
    next: u8,
}

impl System for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn check(&self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
}

impl Transport for Script {
    fn place(&self, _: &TransportConnector) -> Result<String> {
        Ok("script://".to_owned())
    }

    fn open(&self, request: &TransportRequest) -> Result<Box<dyn SourceReader>> {
        assert!(!request.lasts, "an engine in memory hands no position back");
        Ok(Box::new(Reader { script: self.clone(), live: request.live.clone(), next: 0 }))
    }
}

impl SourceReader for Reader {
    fn next(&mut self) -> Result<Option<Portion>> {
        loop {
            if let Some(portion) = self.script.portions.lock().get(usize::from(self.next)) {
                self.next += 1;
                return Ok(Some(portion.clone()));
            }
            if self.live.as_ref().is_some_and(Live::is_over) {
                self.script.is_over.store(true, Ordering::Relaxed);
                return Err(Error::source("it is over"));
            }
            sleep(Duration::from_millis(1));
        }
    }

    fn position(&self) -> Option<SourcePosition> {
        Some(SourcePosition::new([self.next], self.next.to_string()))
    }

    fn replays(&self) -> bool {
        false
    }
}

/// Rows of a key, a value and a note. A value that starts with `-` is of a row that is deleted, and `…` is kept.
fn portion(rows: &[(i64, &str, &str)]) -> Portion {
    let keys = Int64Array::from_iter_values(rows.iter().map(|row| row.0));
    let values: StringArray = rows.iter().map(|row| Some(row.1)).collect();
    let notes: StringArray = rows.iter().map(|row| Some(row.2)).collect();
    let columns: [(_, ArrayRef); 3] =
        [("k", Arc::new(keys)), ("v", Arc::new(values)), ("note", Arc::new(notes))];
    let mut portion = Portion::new(RecordBatch::try_from_iter(columns).unwrap());
    let deleted: BooleanArray = rows.iter().map(|row| Some(row.1.starts_with('-'))).collect();
    portion.deleted = (deleted.true_count() > 0).then_some(deleted);
    let kept: BooleanArray = rows.iter().map(|row| Some(row.1 == "…")).collect();
    if kept.true_count() > 0 {
        portion.kept.push(Absent::new(1, kept));
    }
    portion
}

fn continued(mut portion: Portion) -> Portion {
    portion.continues = true;
    portion
}

/// An engine whose table has read these portions; then what it holds, what it refused, and how many epochs it has.
fn run(portions: Vec<Portion>, key: &str) -> (Vec<String>, Vec<String>, usize) {
    let script = Script::default();
    *script.portions.lock() = portions;
    let engine = Engine::builder().workers(1).transport(script.clone()).open_in_memory().unwrap();
    let table = format!(
        "CREATE TABLE t (k BIGINT{key}, v TEXT, note TEXT) WITH (connector = 'script', 'materialized' = 'true')"
    );
    engine.execute(&table).unwrap();
    let before = engine.progress().committed;
    engine.start().unwrap();
    let last = script.portions.lock().iter().rposition(|portion| !portion.continues);
    let end = last.map_or(0, |last| last + 1);
    let start = Instant::now();
    loop {
        let progress = engine.progress();
        if let SourceState::Failed { message } = &progress.sources[0].state {
            panic!("{message}");
        }
        let position = progress.sources[0].position.as_ref();
        if position.map_or(0, |position| usize::from(position.bytes()[0])) == end {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "it is at {position:?} of {end}");
        sleep(Duration::from_millis(1));
    }
    let found = settled(&engine, "SELECT k, v, note FROM t");
    let errors = settled(&engine, "SELECT message FROM alluvium.errors");
    let epochs = engine.progress().committed - before;
    drop(engine);
    while !script.is_over.load(Ordering::Relaxed) {
        assert!(start.elapsed() < PATIENCE, "the engine does not end");
        sleep(Duration::from_millis(1));
    }
    (found, errors, epochs as usize)
}

#[test]
fn portions_that_belong_together_are_one_epoch() {
    let parts = vec![
        continued(portion(&[(1, "a", "x"), (2, "b", "x")])),
        continued(portion(&[(2, "c", "y"), (3, "-", "")])),
        portion(&[(1, "-", "")]),
        continued(portion(&[(9, "never committed", "")])),
    ];
    let (rows, _, epochs) = run(parts, " PRIMARY KEY");
    assert_eq!((rows, epochs), (vec!["2 c y".to_owned()], 1));
}

#[test]
fn a_transaction_that_begins_anew_forgets_its_portions() {
    let mut again = continued(portion(&[(2, "b", "")]));
    again.restarts = true;
    let parts = vec![
        portion(&[(1, "a", "")]),
        continued(portion(&[(1, "-", ""), (5, "x", "")])),
        again,
        portion(&[(3, "c", "")]),
    ];
    let (rows, _, epochs) = run(parts, " PRIMARY KEY");
    assert_eq!((rows, epochs), (vec!["1 a ".to_owned(), "2 b ".into(), "3 c ".into()], 2));
}

#[test]
fn a_table_is_emptied_with_what_its_transaction_has_inserted() {
    let mut emptied = portion(&[(3, "c", "")]);
    emptied.truncates = true;
    for key in [" PRIMARY KEY", ""] {
        let parts = vec![
            portion(&[(1, "a", ""), (2, "b", "")]),
            continued(portion(&[(3, "x", ""), (4, "d", "")])),
            emptied.clone(),
        ];
        let (rows, _, epochs) = run(parts, key);
        assert_eq!((rows, epochs), (vec!["3 c ".to_owned()], 2), "{key}");
    }
}

#[test]
fn values_are_kept_of_the_row_with_the_key_and_a_row_without_one_is_refused() {
    let parts = vec![
        portion(&[(1, "a", "old"), (2, "b", "old")]),
        continued(portion(&[(2, "c", "newer")])),
        portion(&[(1, "…", "new"), (2, "…", "newest"), (7, "…", "nowhere"), (3, "d", "new")]),
    ];
    let (rows, errors, _) = run(parts, " PRIMARY KEY");
    assert_eq!(rows, ["1 a new", "2 c newest", "3 d new"]);
    assert_eq!(errors, ["it keeps values of the row with its key, and there is none"]);
}
