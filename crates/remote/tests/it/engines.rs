//! Engines over a journal of a server.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium::unstable::BuilderParts;
use alluvium::{Engine, Error, StateDirectory};
use alluvium_remote::{JournalPlace, Running};
use alluvium_storage::Expected;
use tempfile::TempDir;

use crate::journal::twins::{SMALL, place, server};
use crate::proxy::Proxy;

const VIEW: &str = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k";

struct Setting {
    directory: TempDir,
    server: Running,
}

impl Setting {
    fn new() -> Setting {
        let directory = tempfile::tempdir().unwrap();
        let server = server().start(directory.path().join("journals")).unwrap();
        Setting { directory, server }
    }

    fn path(&self, state: &str) -> std::path::PathBuf {
        self.directory.path().join(state)
    }

    fn open(&self, state: &str) -> Engine {
        open(&self.path(state), Some(place(&self.server, "orders"))).unwrap()
    }

    fn refused(&self, state: &str, journal: Option<JournalPlace>) -> String {
        open(&self.path(state), journal).err().unwrap().to_string()
    }
}

fn open(state: &Path, journal: Option<JournalPlace>) -> Result<Engine, Error> {
    let builder = Engine::builder().workers(2).state(format!("file:{}", state.display()));
    match journal {
        Some(journal) => builder.elsewhere(Arc::new(journal)).open(),
        None => builder.open(),
    }
}

fn define(engine: &Engine) {
    let view = format!("CREATE MATERIALIZED VIEW sums AS {VIEW}");
    engine.execute(&format!("CREATE TABLE t (k BIGINT, v BIGINT); {view}")).unwrap();
}

fn insert(engine: &Engine, numbers: std::ops::Range<i64>) -> Result<(), Error> {
    for number in numbers {
        engine.execute(&format!("INSERT INTO t VALUES ({}, {number})", number % 3))?;
    }
    Ok(())
}

fn rows(engine: &Engine, query: &str) -> String {
    format!("{:?}", engine.query(&format!("{query} ORDER BY k")).unwrap())
}

/// The number of rows, of a view that is as it should be.
fn checked(engine: &Engine) -> String {
    assert_eq!(rows(engine, "SELECT * FROM sums"), rows(engine, VIEW));
    format!("{:?}", engine.query("SELECT COUNT(*) AS n FROM t").unwrap()[0].column(0))
}

fn count(number: i64) -> String {
    format!("PrimitiveArray<Int64>\n[\n  {number},\n]")
}

#[test]
fn an_engine_goes_on_where_it_was_with_checkpoints_and_without() {
    let setting = Setting::new();
    let mut rows = 0;
    for round in 0..4 {
        let engine = setting.open("state");
        if round == 0 {
            define(&engine);
        }
        assert_eq!(checked(&engine), count(rows));
        insert(&engine, rows..rows + 10).unwrap();
        if round % 2 == 1 {
            engine.checkpoint().unwrap();
            insert(&engine, rows + 10..rows + 15).unwrap();
            rows += 5;
        }
        rows += 10;
        assert_eq!(checked(&engine), count(rows));
    }
    let own = setting.path("state").join("journal");
    assert!(!own.exists(), "there is a journal in the directory as well");
}

#[test]
fn an_engine_that_opens_the_journal_takes_it_and_the_former_one_commits_nothing_more() {
    let setting = Setting::new();
    let former = setting.open("a");
    define(&former);
    insert(&former, 0..10).unwrap();
    let engine = setting.open("b");
    assert_eq!(checked(&engine), count(10));
    let error = insert(&former, 10..11).unwrap_err();
    assert!(matches!(error, Error::Poisoned { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("the journal cannot be written: cannot append to http://"), "{said}");
    assert!(said.contains("another process has opened the journal \"orders\""), "{said}");
    insert(&engine, 10..20).unwrap();
    assert_eq!(insert(&former, 11..12).unwrap_err().to_string(), said);
    drop(former);
    // The state of the former one, and what was committed since.
    let back = setting.open("a");
    assert_eq!(checked(&back), count(20));
    insert(&engine, 20..21).unwrap_err();
    insert(&back, 20..30).unwrap();
    assert_eq!(checked(&back), count(30));
}

#[test]
fn a_former_engine_that_commits_nothing_learns_that_it_is_one_also_if_it_was_cut_off_meanwhile() {
    for is_cut_off in [false, true] {
        let setting = Setting::new();
        let proxy = Proxy::new(setting.server.address());
        let url = format!("http://{}/orders", proxy.address);
        let journal = JournalPlace::new(&url, None).unwrap();
        let former = open(&setting.path("a"), Some(journal)).unwrap();
        define(&former);
        insert(&former, 0..10).unwrap();
        proxy.refuse(is_cut_off);
        if is_cut_off {
            proxy.cut();
        }
        let _engine = setting.open("b");
        proxy.refuse(false);
        let begun = Instant::now();
        let error = loop {
            match former.query("SELECT COUNT(*) FROM t") {
                Ok(_) => assert!(begun.elapsed() < Duration::from_secs(60)),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("another process has opened the journal \"orders\""), "{error}");
        assert!(error.contains("the journal cannot be written: cannot append to"), "{error}");
    }
}

#[test]
fn from_a_journal_that_keeps_all_a_lost_state_directory_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    for keeps_all in [true, false] {
        let journals = directory.path().join(format!("journals-{keeps_all}"));
        let server = server().options(SMALL);
        let server = if keeps_all { server.keep_all() } else { server };
        let server = server.start(&journals).unwrap();
        let state = |name: &str| directory.path().join(format!("{name}-{keeps_all}"));
        let engine = open(&state("a"), Some(place(&server, "orders"))).unwrap();
        define(&engine);
        for round in 0..4 {
            insert(&engine, 20 * round..20 * round + 20).unwrap();
            engine.checkpoint().unwrap();
        }
        let again = open(&state("b"), Some(place(&server, "orders")));
        if keeps_all {
            assert_eq!(checked(&again.unwrap()), count(80));
            insert(&engine, 80..81).unwrap_err();
        } else {
            let said = again.err().unwrap().to_string();
            assert!(said.contains("and record 0 is needed"), "{said}");
            insert(&engine, 80..81).unwrap();
        }
    }
}

#[test]
fn a_checkpoint_of_a_former_engine_is_refused_at_the_latest_with_its_records() {
    let setting = Setting::new();
    let former = setting.open("a");
    define(&former);
    insert(&former, 0..10).unwrap();
    let _engine = setting.open("b");
    let error = former.checkpoint().unwrap_err().to_string();
    assert!(error.contains("another process has opened the journal"), "{error}");
    assert!(matches!(insert(&former, 10..11), Err(Error::Poisoned { .. })));
}

#[test]
fn a_state_directory_belongs_to_one_journal() {
    let setting = Setting::new();
    let engine = setting.open("state");
    define(&engine);
    insert(&engine, 0..3).unwrap();
    engine.checkpoint().unwrap();
    drop(engine);
    let said = setting.refused("state", None);
    let url = format!("http://{}/orders", setting.server.address());
    assert!(said.contains(&format!("is {url}: open the directory with it (--journal)")), "{said}");
    let said = setting.refused("state", Some(place(&setting.server, "other")));
    assert!(said.contains("the server has no journal \"other\""), "{said}");
    drop(place(&setting.server, "other").open(&Expected::default()).unwrap());
    let said = setting.refused("state", Some(place(&setting.server, "other")));
    assert!(said.contains("the server's journal \"other\" is another one"), "{said}");
    drop(open(&setting.path("own"), None).unwrap());
    let own = open(&setting.path("own"), None).unwrap();
    define(&own);
    drop(own);
    let said = setting.refused("own", Some(place(&setting.server, "orders")));
    assert!(said.contains("has a journal of its own"), "{said}");
    let memory = Engine::builder().elsewhere(Arc::new(place(&setting.server, "orders"))).open();
    let said = memory.err().unwrap().to_string();
    assert!(said.contains("needs a state directory"), "{said}");
    // None of them has taken the term.
    assert_eq!(place(&setting.server, "orders").open(&Expected::default()).unwrap().term(), 2);
    assert_eq!(checked(&setting.open("state")), count(3));
}

#[test]
fn tools_for_state_directories_say_where_the_journal_is() {
    let setting = Setting::new();
    let engine = setting.open("state");
    define(&engine);
    insert(&engine, 0..3).unwrap();
    engine.checkpoint().unwrap();
    drop(engine);
    let state = StateDirectory::open(setting.path("state")).unwrap();
    let check = state.check().unwrap();
    assert!(check.is_sound(), "{check}");
    assert!(
        check.to_string().contains("/orders: the journal is there, and was not read"),
        "{check}"
    );
    assert_eq!(state.checkpoints().unwrap().len(), 1);
    assert!(state.formats().unwrap().are_newest());
    let said = state.backup(setting.path("copy")).unwrap_err().to_string();
    assert!(said.contains("cannot be copied: its journal is not in it"), "{said}");
    let until = Engine::builder()
        .state(format!("file:{}", setting.path("state").display()))
        .elsewhere(Arc::new(place(&setting.server, "orders")))
        .until(1)
        .open();
    let said = until.err().unwrap().to_string();
    assert!(said.contains("cannot be taken back: its journal is not in it"), "{said}");
}

#[test]
fn a_server_may_move_and_a_journal_that_has_lost_its_end_is_refused() {
    let setting = Setting::new();
    let proxy = Proxy::new(setting.server.address());
    let through = |patience| {
        let url = format!("http://{}/orders", proxy.address);
        JournalPlace::new(&url, None).unwrap().patience(patience)
    };
    let state = setting.path("state");
    let engine = open(&state, Some(through(Duration::from_secs(60)))).unwrap();
    define(&engine);
    insert(&engine, 0..3).unwrap();
    drop(engine);
    let engine = setting.open("state");
    assert_eq!(checked(&engine), count(3));
    drop(engine);
    let Setting { directory, server: running } = setting;
    drop(running);
    let journals = directory.path().join("journals").join("orders");
    let term = std::fs::read_to_string(journals.join("term")).unwrap();
    // As if the files of an earlier time were put back.
    std::fs::remove_file(journals.join("00000000000000000000.journal")).unwrap();
    let line = term.lines().find(|line| line.starts_with("end ")).unwrap();
    let earlier =
        term.lines().take(3).fold(String::new(), |text, line| text + line + "\n") + "end 0\n";
    assert!(line != "end 0");
    let checksum = xxhash_rust::xxh3::xxh3_64(earlier.as_bytes());
    std::fs::write(journals.join("term"), format!("{earlier}xxh3 {checksum:016x}\n")).unwrap();
    let running = server().start(directory.path().join("journals")).unwrap();
    let said = open(&state, Some(place(&running, "orders"))).err().unwrap().to_string();
    assert!(
        said.contains("does not fit: it ends before record 0, and had records up to"),
        "{said}"
    );
}

#[test]
fn without_its_server_an_engine_stops_and_has_lost_nothing() {
    let setting = Setting::new();
    let proxy = Proxy::new(setting.server.address());
    let url = format!("http://{}/orders", proxy.address);
    let journal = JournalPlace::new(&url, None).unwrap().patience(Duration::from_millis(200));
    let engine = open(&setting.path("state"), Some(journal)).unwrap();
    define(&engine);
    insert(&engine, 0..5).unwrap();
    // For a moment, which nobody notices.
    proxy.cut();
    insert(&engine, 5..10).unwrap();
    proxy.refuse(true);
    proxy.cut();
    let error = insert(&engine, 10..11).unwrap_err();
    assert!(matches!(error, Error::Poisoned { .. }), "{error}");
    assert!(error.to_string().contains("the server could not be reached for 200ms"), "{error}");
    drop(engine);
    assert_eq!(checked(&setting.open("state")), count(10));
}
