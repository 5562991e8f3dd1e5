//! Checkpoints, and resuming from them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

use alluvium::unstable::BuilderParts;
use alluvium::{Builder, Engine, Error, Result, StateDirectory};
use alluvium_storage::{
    ClaimedStorage, Disk, DiskStorage, FileJournal, FileJournalOptions, FileManifests, Manifests,
    MemoryJournal, MemoryManifests, MemoryStorage, Published, SimulatedDisk,
};

use crate::support::{PATIENCE, alone, assert_poisoned, query};
use crate::{bank, state_directory};

/// Relations of every kind, and operators of every kind.
pub const DEFINITIONS: &str = "
    CREATE TABLE accounts (id BIGINT PRIMARY KEY, name VARCHAR, balance BIGINT);
    CREATE TABLE notes (account BIGINT, note VARCHAR, at TIMESTAMP DEFAULT NOW());
    CREATE TABLE ticks (n BIGINT) WITH ('materialized' = 'false');
    CREATE LOCAL VIEW rich AS SELECT id, name FROM accounts WHERE balance > 10;
    CREATE MATERIALIZED VIEW totals AS SELECT COUNT(*) AS accounts, SUM(balance) AS balance FROM accounts;
    CREATE MATERIALIZED VIEW noted AS
        SELECT name, COUNT(*) AS notes, MAX(note) AS last FROM notes JOIN rich ON account = id GROUP BY name;
    CREATE MATERIALIZED VIEW ticked AS SELECT COUNT(*) AS ticks, SUM(n) AS sum FROM ticks;
    CREATE MATERIALIZED VIEW recent AS SELECT note FROM notes WHERE at > NOW() - INTERVAL '1' HOUR;
    CREATE MATERIALIZED VIEW silent AS
        SELECT name, note FROM accounts LEFT JOIN notes ON account = id WHERE note IS NULL OR note > 'b';
    CREATE MATERIALIZED VIEW names AS
        SELECT DISTINCT name FROM accounts UNION ALL SELECT 'constant' UNION ALL SELECT note FROM notes;
    CREATE MATERIALIZED VIEW without AS
        SELECT id FROM accounts EXCEPT SELECT account FROM notes;
    CREATE MATERIALIZED VIEW first AS
        SELECT * FROM (SELECT account, note, ROW_NUMBER() OVER (PARTITION BY account ORDER BY note DESC) AS n
                       FROM notes) WHERE n <= 2;
    CREATE MATERIALIZED VIEW running AS
        SELECT account, note, COUNT(*) OVER (PARTITION BY account ORDER BY note) AS n FROM notes;
    CREATE MATERIALIZED VIEW texts AS
        SELECT account, STRING_AGG(note, ',' ORDER BY note) AS notes, COUNT(DISTINCT note) AS n FROM notes GROUP BY account;
    CREATE MATERIALIZED VIEW failing AS SELECT id, 10 / (balance - 5) AS x FROM accounts;
    CREATE MATERIALIZED VIEW cross_all AS SELECT a.id AS a, b.id AS b FROM accounts a, accounts b WHERE a.id < b.id;
    CREATE MATERIALIZED VIEW numbers AS
        SELECT COUNT(*) AS n FROM accounts, UNNEST(range(0, 3)) AS r(v) WHERE v < id;
    CREATE MATERIALIZED VIEW richest AS SELECT id, balance FROM accounts ORDER BY balance DESC, id LIMIT 2;
    CREATE MATERIALIZED VIEW highest AS SELECT n FROM ticks ORDER BY n DESC LIMIT 5;
    CREATE MATERIALIZED VIEW longest AS SELECT note FROM notes ORDER BY LENGTH(note), note DESC LIMIT 3 OFFSET 1;
    CREATE MATERIALIZED VIEW shares AS SELECT id, totals.balance - accounts.balance AS others FROM accounts, totals;
    CREATE MATERIALIZED VIEW closest AS
        SELECT id, note FROM accounts LEFT JOIN notes ON account > id AND account < id + 2;
    CREATE MATERIALIZED VIEW ends AS SELECT account % 2 AS odd, MIN(note) AS a, MAX(note) AS z FROM notes GROUP BY account % 2;
    CREATE MATERIALIZED VIEW maps AS SELECT MAP([note], [account]) AS m FROM notes;
";

pub const RELATIONS: &[&str] = &[
    "accounts",
    "notes",
    "totals",
    "noted",
    "ticked",
    "recent",
    "silent",
    "names",
    "without",
    "first",
    "running",
    "texts",
    "failing",
    "cross_all",
    "numbers",
    "richest",
    "highest",
    "longest",
    "shares",
    "closest",
    "ends",
    "maps",
    "alluvium.errors",
];

/// All of it as text.
pub fn shown(engine: &Engine) -> Vec<String> {
    let all = RELATIONS.iter().map(|name| {
        let columns = if *name == "alluvium.errors" { "view, row, message" } else { "*" };
        query(engine, &format!("SELECT {columns} FROM {name}"))
    });
    all.zip(RELATIONS).flat_map(|(rows, name)| [vec![format!("- {name}")], rows].concat()).collect()
}

fn open(directory: &Path, workers: usize) -> Result<Engine> {
    opened(directory, workers, &Minutes::default())
}

/// A clock that stands until it is set.
pub type Minutes = Arc<AtomicU64>;

fn opened(directory: &Path, workers: usize, clock: &Minutes) -> Result<Engine> {
    let state = format!("file:{}", directory.display());
    with(clock).workers(workers).state(state).open()
}

pub fn with(clock: &Minutes) -> Builder {
    let clock = clock.clone();
    let now = move || UNIX_EPOCH + Duration::from_secs(60 * clock.load(Ordering::Relaxed));
    Engine::builder().clock(now)
}

/// A few changes of everything, different in each round.
pub fn change(engine: &Engine, round: i64) {
    change_named(engine, round, "");
}

/// As [`change`], of tables whose names end so.
pub fn change_named(engine: &Engine, round: i64, end: &str) {
    let mut session = engine.session();
    session
        .execute(&format!(
            "BEGIN;
             INSERT INTO accounts{end} VALUES ({round}, 'name{}', {}), ({}, 'both', 5);
             INSERT INTO notes{end} (account, note) VALUES ({round}, 'a{round}'), ({round}, 'b'), ({}, 'c');
             DELETE FROM notes{end} WHERE note = 'a{}';
             DELETE FROM accounts{end} WHERE id = {};
             INSERT INTO ticks{end} VALUES ({round}), (1);
             COMMIT",
            round % 3,
            round * 3,
            round + 100,
            round / 2,
            round - 2,
            round - 3,
        ))
        .unwrap();
}

/// The names of the files in a folder of a state directory.
fn files(directory: &Path, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(directory.join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn everything_goes_on_after_a_checkpoint() {
    for workers in [1, 3] {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path();
        let clock = Minutes::default();
        let judge = with(&clock).workers(1).open_in_memory().unwrap();
        judge.execute(DEFINITIONS).unwrap();
        let mut engine = opened(state, workers, &clock).unwrap();
        engine.execute(DEFINITIONS).unwrap();
        for round in 0..12 {
            clock.store(round as u64 * 17, Ordering::Relaxed);
            change(&engine, round);
            change(&judge, round);
            if round % 3 == 1 {
                engine.execute("CHECKPOINT").unwrap();
            }
            if round % 4 != 3 {
                continue;
            }
            let epoch = engine.progress().committed;
            assert_eq!(shown(&engine), shown(&judge), "round {round}");
            drop(engine);
            engine = opened(state, workers, &clock).unwrap();
            assert_eq!(engine.progress().committed, epoch);
            assert_eq!(shown(&engine), shown(&judge), "round {round}, again");
        }
        assert_eq!(shown(&engine), shown(&judge));
    }
}

#[test]
fn a_checkpoint_without_changes_is_none_and_memory_has_none() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path(), 1).unwrap();
    engine.execute("CREATE TABLE t (n INT); INSERT INTO t VALUES (1); CHECKPOINT").unwrap();
    let before = files(directory.path(), "manifests");
    engine.execute("CHECKPOINT; CHECKPOINT").unwrap();
    assert_eq!(files(directory.path(), "manifests"), before);
    engine
        .execute("INSERT INTO t VALUES (2); CHECKPOINT; INSERT INTO t VALUES (3); CHECKPOINT")
        .unwrap();
    // Two manifests and the file that says which is current.
    assert_eq!(files(directory.path(), "manifests").len(), 3);
    Engine::builder().workers(1).open_in_memory().unwrap().execute("CHECKPOINT").unwrap();
}

#[test]
fn the_journal_and_old_files_go_when_checkpoints_come() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path();
    let engine = open(state, 2).unwrap();
    engine.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v VARCHAR)").unwrap();
    let mut most = 0;
    for round in 0..40 {
        engine
            .execute(&format!(
                "INSERT OR REPLACE INTO t SELECT v % 1000, repeat('x', 300) || '{round}' FROM UNNEST(range(0, 3000)) AS r(v);
                 CHECKPOINT"
            ))
            .unwrap();
        let bytes = |folder: &str| -> u64 {
            let size =
                |name: &String| fs::metadata(state.join(folder).join(name)).map_or(0, |m| m.len());
            files(state, folder).iter().map(size).sum()
        };
        most = most.max(bytes("blobs"));
    }
    // A thousand rows of 300 bytes, a few times.
    assert!(most < 8 << 20, "{most} bytes");
    drop(engine);
    let engine = open(state, 2).unwrap();
    assert_eq!(query(&engine, "SELECT COUNT(*), MIN(RIGHT(v, 2)) FROM t"), ["1000 39"]);
}

#[test]
fn a_missing_or_damaged_file_of_a_checkpoint_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path();
    let engine = open(state, 1).unwrap();
    engine.execute("CREATE TABLE t (id BIGINT, v VARCHAR)").unwrap();
    engine
        .execute("INSERT INTO t SELECT v, 'v' FROM UNNEST(range(0, 3000)) AS r(v); CHECKPOINT")
        .unwrap();
    drop(engine);
    let blobs = files(state, "blobs");
    let path = state.join("blobs").join(&blobs[0]);
    let bytes = fs::read(&path).unwrap();
    let refused = || match open(state, 1) {
        Err(Error::Start { message, .. }) => message,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it has started"),
    };
    fs::remove_file(&path).unwrap();
    assert!(refused().contains(&blobs[0]), "{}", refused());
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(refused().contains(&blobs[0]), "{}", refused());
    fs::write(&path, &bytes).unwrap();
    assert_eq!(query(&open(state, 1).unwrap(), "SELECT COUNT(*) FROM t"), ["3000"]);
}

/// Moves money, and takes checkpoints in between, until a call fails. How many moves were acknowledged.
fn bank(engine: &Engine, moves: i64) -> i64 {
    bank::run(engine, moves, |number| match number % 2 {
        0 => engine.execute("CHECKPOINT").map(drop),
        _ => Ok(()),
    })
}

/// An engine with everything on one disk.
fn on(disk: &SimulatedDisk) -> Result<Engine> {
    on_with(disk, 1)
}

pub fn on_with(disk: &SimulatedDisk, workers: usize) -> Result<Engine> {
    let failed = |error: alluvium_storage::Error| Error::data(error.to_string());
    let options = FileJournalOptions { segment_size: 4096, write_ahead: 1024, queue_size: 512 };
    let journal = FileJournal::open_with(Arc::new(disk.clone()), options).map_err(failed)?;
    let manifests = FileManifests::open_on(Arc::new(disk.clone())).map_err(failed)?;
    let blobs = DiskStorage::open(Arc::new(disk.clone())).map_err(failed)?;
    let blobs = ClaimedStorage::open(Arc::new(blobs)).map_err(failed)?;
    Engine::builder()
        .workers(workers)
        .memory(1)
        .checkpoints(Duration::MAX, u64::MAX)
        .store(Arc::new(journal), Arc::new(manifests), Arc::new(blobs))
        .open()
}

/// The names of all blobs on a disk.
fn blobs(disk: &SimulatedDisk) -> Vec<String> {
    let mut names = disk.list().unwrap();
    names.retain(|name| name.ends_with(".alluvium"));
    names
}

#[test]
fn after_a_crash_or_failure_at_any_call_checkpoints_and_the_journal_fit_together() {
    const MOVES: i64 = 7;
    let disk = SimulatedDisk::new(0);
    let engine = on(&disk).unwrap();
    engine.execute(bank::DEFINITIONS).unwrap();
    let first = disk.calls();
    assert_eq!(bank(&engine, MOVES), MOVES);
    let calls = disk.calls() - first;
    drop(engine);
    assert!(calls > 100, "{calls}");
    let step = if std::env::var_os("ALLUVIUM_CRASHES").is_some() { 1 } else { 13 };
    for call in (1..=calls).step_by(step) {
        let disk = SimulatedDisk::new(call);
        let engine = on(&disk).unwrap();
        engine.execute(bank::DEFINITIONS).unwrap();
        disk.fail_from(disk.calls() + call);
        let acknowledged = bank(&engine, MOVES);
        drop(engine);
        // The machine loses power as well.
        disk.crash();
        disk.mend();
        let engine = on(&disk).unwrap_or_else(|error| panic!("call {call}: {error}"));
        let moved: i64 = query(&engine, "SELECT money FROM b")[0].parse().unwrap();
        // One more may have reached the disk.
        assert!((acknowledged..=acknowledged + 1).contains(&moved), "{acknowledged}: {moved}");
        assert_eq!(query(&engine, "SELECT * FROM total"), ["100"], "call {call}");
        assert_eq!(query(&engine, "SELECT * FROM moved"), [moved.to_string()], "call {call}");
        assert_eq!(bank(&engine, 3), 3);
        drop(engine);
        disk.crash();
        let engine = on(&disk).unwrap();
        assert_eq!(query(&engine, "SELECT money FROM b"), [(moved + 3).to_string()]);
        assert_eq!(query(&engine, "SELECT n FROM moved"), [(moved + 3).to_string()]);
        engine.execute("CHECKPOINT; INSERT INTO b VALUES (2, 0); CHECKPOINT").unwrap();
        drop(engine);
        // No file is left that nothing names.
        let left = blobs(&disk);
        drop(on(&disk).unwrap());
        assert_eq!(blobs(&disk), left, "call {call}");
    }
}

#[test]
fn after_a_crash_or_failure_at_any_call_while_rows_are_dealt_out_anew_all_is_as_it_was() {
    const MOVES: i64 = 3;
    let prepared = |seed| {
        let disk = SimulatedDisk::new(seed);
        let engine = on(&disk).unwrap();
        engine.execute(bank::DEFINITIONS).unwrap();
        // Enough for files.
        engine
            .execute(
                "CREATE TABLE t (n BIGINT, s VARCHAR); CREATE MATERIALIZED VIEW v AS SELECT s, COUNT(*) AS c FROM t GROUP BY s;
                 INSERT INTO t SELECT v, repeat('x', 100) || v FROM UNNEST(range(0, 3000)) AS r(v)",
            )
            .unwrap();
        assert_eq!(bank(&engine, MOVES), MOVES);
        engine.execute("CHECKPOINT").unwrap();
        disk
    };
    // Opening with more workers, and a checkpoint of what they have.
    let deal = |disk: &SimulatedDisk| on_with(disk, 3).and_then(|engine| engine.checkpoint());
    let disk = prepared(0);
    let first = disk.calls();
    deal(&disk).unwrap();
    let calls = disk.calls() - first;
    assert!(calls > 10, "{calls}");
    let step = calls.div_ceil(12) as usize;
    for call in (1..=calls).step_by(step) {
        let disk = prepared(call);
        disk.fail_from(disk.calls() + call);
        let _ = deal(&disk);
        disk.crash();
        disk.mend();
        for workers in [2, 1] {
            let engine = on_with(&disk, workers).unwrap_or_else(|error| panic!("{call}: {error}"));
            assert_eq!(query(&engine, "SELECT money FROM b"), [MOVES.to_string()], "call {call}");
            assert_eq!(query(&engine, "SELECT * FROM total"), ["100"], "call {call}");
            assert_eq!(
                query(&engine, "SELECT COUNT(*), SUM(c) FROM v"),
                ["3000 3000"],
                "call {call}"
            );
        }
        // No file is left that nothing names.
        let engine = on_with(&disk, 2).unwrap();
        engine.execute("CHECKPOINT; INSERT INTO b VALUES (2, 0); CHECKPOINT").unwrap();
        drop(engine);
        let left = blobs(&disk);
        drop(on_with(&disk, 2).unwrap());
        assert_eq!(blobs(&disk), left, "call {call}");
    }
}

#[test]
fn as_many_checkpoints_are_kept_as_the_engine_is_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let open = |count| {
        let builder = Engine::builder().workers(1).checkpoints(Duration::MAX, u64::MAX);
        let state = format!("file:{}", directory.path().display());
        builder.retain_checkpoints(count).state(state).open().unwrap()
    };
    let state = || StateDirectory::open(directory.path()).unwrap();
    let kept = || {
        let listed = state().checkpoints().unwrap();
        listed.iter().map(|checkpoint| checkpoint.number).collect::<Vec<_>>()
    };
    let engine = open(4);
    engine.execute("CREATE TABLE t (n INT)").unwrap();
    for number in 1..=6 {
        engine.execute(&format!("INSERT INTO t VALUES ({number}); CHECKPOINT")).unwrap();
    }
    assert_eq!(kept(), [3, 4, 5, 6]);
    engine.execute("INSERT INTO t VALUES (7)").unwrap();
    drop(engine);
    // Commits after an old checkpoint are still there.
    let copies = tempfile::tempdir().unwrap();
    for number in 3..=6 {
        let copy = copies.path().join(number.to_string());
        state().backup_from(number, &copy).unwrap();
        let rows = query(&state_directory::open(&copy).unwrap(), "SELECT SUM(n) FROM t");
        assert_eq!(rows, ["28"]);
    }
    // At least two are kept. The others are given up with the next one, and not before.
    let engine = open(0);
    assert_eq!(kept(), [3, 4, 5, 6]);
    engine.execute("INSERT INTO t VALUES (8); CHECKPOINT").unwrap();
    assert_eq!(kept(), [6, 7]);
    drop(engine);
    assert_eq!(state_directory::damage(directory.path()), [""; 0]);
    drop(open(2));
    assert_eq!(state().check().unwrap().findings, []);
}

#[test]
fn an_engine_stops_when_another_one_takes_a_checkpoint_in_its_directory() {
    let manifests = Arc::new(MemoryManifests::default());
    let blobs = ClaimedStorage::open(Arc::new(MemoryStorage::default())).unwrap();
    let journal = Arc::new(MemoryJournal::default());
    let engine = Engine::builder()
        .workers(1)
        .checkpoints(Duration::MAX, u64::MAX)
        .store(journal, manifests.clone(), Arc::new(blobs))
        .open()
        .unwrap();
    engine.execute("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (1); CHECKPOINT").unwrap();
    assert_eq!(manifests.publish(2, b"of another engine").unwrap(), Published::Done);
    engine.execute("INSERT INTO t VALUES (2)").unwrap();
    let error = engine.checkpoint().unwrap_err().to_string();
    assert!(error.contains("manifest 2 is of another engine"), "{error}");
    assert_poisoned(engine.execute("INSERT INTO t VALUES (3)"), "another engine");
    assert_poisoned(engine.query("SELECT * FROM t"), "another engine");
}

#[test]
fn checkpoints_are_taken_after_a_time_and_after_so_many_bytes() {
    for (interval, bytes) in [(Duration::from_millis(20), u64::MAX), (Duration::MAX, 1000)] {
        let manifests = Arc::new(MemoryManifests::default());
        let blobs = ClaimedStorage::open(Arc::new(MemoryStorage::default())).unwrap();
        let engine = Engine::builder()
            .workers(1)
            .checkpoints(interval, bytes)
            .store(Arc::new(MemoryJournal::default()), manifests.clone(), Arc::new(blobs))
            .open()
            .unwrap();
        engine.execute("CREATE TABLE t (n BIGINT)").unwrap();
        for _ in 0..5 {
            let before = manifests.list().unwrap().pop();
            engine.execute("INSERT INTO t SELECT UNNEST(range(0, 1000))").unwrap();
            // Nothing else is recorded.
            let start = Instant::now();
            while manifests.list().unwrap().pop() == before {
                assert!(start.elapsed() < PATIENCE, "no checkpoint is taken");
                sleep(Duration::from_millis(1));
            }
        }
    }
}

/// How often threads of engines have gone to sleep in this process.
#[cfg(target_os = "linux")]
fn sleeps() -> u64 {
    let read = |path: std::path::PathBuf| fs::read_to_string(path).unwrap_or_default();
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let ours = tasks.filter(|task| read(task.join("comm")).starts_with("alluvium"));
    let count = |task: std::path::PathBuf| {
        let status = read(task.join("status"));
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.map_or(0, |count| count.trim().parse().unwrap())
    };
    ours.map(count).sum()
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_engine_with_a_state_directory_sleeps() {
    if !alone("checkpoints::an_idle_engine_with_a_state_directory_sleeps") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let state = format!("file:{}", directory.path().display());
    let engine = Engine::builder().workers(2).state(state).open().unwrap();
    engine
        .execute(
            "CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT SUM(n) AS s FROM t",
        )
        .unwrap();
    let _subscription = engine.subscribe("v").unwrap();
    engine.execute("INSERT INTO t VALUES (1)").unwrap();
    engine.wait(engine.progress().committed).unwrap();
    // The remaining work is done soon.
    let start = Instant::now();
    loop {
        let before = sleeps();
        sleep(Duration::from_millis(500));
        let after = sleeps();
        assert!(before > 0);
        if before == after {
            return;
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "threads have run {} times",
            after - before
        );
    }
}
