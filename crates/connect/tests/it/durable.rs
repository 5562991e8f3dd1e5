//! Connectors of an engine with a state directory: rows that were read and written stay so, exactly once.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use alluvium::{Builder, Engine, OutputMode, Result};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::util::pretty::pretty_format_batches;
use tempfile::TempDir;

/// How many rows an input's transaction has.
const PORTION: usize = 7;

const DEFINITIONS: &str = "
    CREATE TABLE sale (id BIGINT, item VARCHAR, price BIGINT) WITH ('materialized' = 'true', 'connectors' = '[
        {\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"old.csv\"}}},
        {\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"new.jsonl\"}}}]');
    CREATE TABLE visit (id BIGINT, item VARCHAR) WITH ('materialized' = 'false', 'append_only' = 'true',
        'connectors' = '[{\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"visits.csv.gz\"}}}]');
    CREATE MATERIALIZED VIEW total AS SELECT item, COUNT(*) AS n, SUM(price) AS price FROM sale GROUP BY item;
    CREATE MATERIALIZED VIEW visits AS SELECT item, COUNT(*) AS n FROM visit GROUP BY item;
    CREATE VIEW dear WITH ('connectors' = '[
        {\"transport\": {\"name\": \"file_output\", \"config\": {\"path\": \"dear.csv\", \"mode\": \"changes\"}}}]')
        AS SELECT id, item FROM sale WHERE price > 50;
    CREATE VIEW odd WITH ('connectors' = '[
        {\"transport\": {\"name\": \"file_output\", \"config\": {\"path\": \"odd.jsonl\", \"mode\": \"changes\"}}}]')
        AS SELECT id, COUNT(*) AS n FROM visit WHERE id % 2 = 1 GROUP BY id;";

fn inputs(folder: &Path) {
    let mut random = fastrand::Rng::with_seed(3);
    let item = |n: usize| ["nut", "bolt", "\"a, \"\"b\"\"\nc\"", ""][n % 4];
    let mut old = String::from("id,item,price\n");
    for n in 0..700 {
        match n % 50 {
            17 => old.push_str("x,nut,1\n"),
            _ => old.push_str(&format!("{n},{},{}\n", item(n), random.u32(0..100))),
        }
    }
    fs::write(folder.join("old.csv"), old).unwrap();
    let new = |n: i64| format!("{{\"price\": {}, \"id\": {n}, \"item\": \"nut\"}}\n", n % 90);
    fs::write(folder.join("new.jsonl"), (700..1000).map(new).collect::<String>()).unwrap();
    let visits: String = (0..900).map(|n| format!("{},{}\n", n % 40, ["a", "b"][n % 2])).collect();
    let file = fs::File::create(folder.join("visits.csv.gz")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, visits.as_bytes()).unwrap();
    gzip.finish().unwrap();
}

fn builder(workers: usize) -> Builder {
    alluvium_connect::formats(Engine::builder().workers(workers).batch_rows(PORTION))
}

fn open(folder: &Path, workers: usize) -> Result<Engine> {
    let state = folder.join("state").display().to_string();
    let often = Duration::from_millis(15);
    builder(workers).state(format!("file:{state}")).checkpoints(often, u64::MAX).open()
}

/// As `open`, with checkpoints only on request.
fn open_seldom(folder: &Path) -> Builder {
    let state = folder.join("state").display().to_string();
    builder(1).state(format!("file:{state}")).checkpoints(Duration::MAX, u64::MAX)
}

fn define(engine: &Engine, folder: &Path) {
    let mut session = engine.session();
    session.set_base(folder);
    session.execute(DEFINITIONS).unwrap();
}

fn show(engine: &Engine, query: &str) -> String {
    pretty_format_batches(&engine.query(query).unwrap()).unwrap().to_string()
}

/// The answer to a query, without the paths of files.
fn shown_without(engine: &Engine, query: &str, folder: &Path) -> String {
    let answer = show(engine, query).replace(&folder.display().to_string(), "");
    let cells = answer.lines().filter(|line| !line.starts_with('+'));
    let words = cells.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    words.collect::<Vec<_>>().join("\n")
}

/// The whole state: rows of relations, refused rows, and the files written.
fn everything(engine: &Engine, folder: &Path) -> Vec<String> {
    engine.finish().unwrap();
    let count = engine.query("SELECT COUNT(*) FROM sale").unwrap();
    assert_eq!(count[0].column(0).as_primitive::<Int64Type>().value(0), 986);
    let mut all: Vec<String> = [
        "SELECT * FROM sale ORDER BY id",
        "SELECT * FROM total ORDER BY item",
        "SELECT * FROM visits ORDER BY item",
    ]
    .map(|query| show(engine, query))
    .into();
    let errors = "SELECT view, expression, row, message FROM alluvium.errors ORDER BY row";
    all.push(shown_without(engine, errors, folder));
    for name in ["dear.csv", "odd.jsonl"] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let mut written: Vec<String> = match name {
            // Rows have lines of their own, but for one item.
            "dear.csv" => text.replace("\nc", " c").lines().map(str::to_owned).collect(),
            _ => text.lines().map(str::to_owned).collect(),
        };
        let epochs: Vec<u64> = written.iter().filter_map(|line| epoch(line)).collect();
        assert!(epochs.is_sorted(), "{name} is in the order of epochs");
        // Which portions of two tables come first depends on their threads.
        written.iter_mut().for_each(|line| *line = without_epoch(line));
        written.sort();
        all.push(written.join("\n"));
    }
    all
}

/// The epoch of a line of an output.
fn epoch(line: &str) -> Option<u64> {
    let digits = line.trim_start_matches("{\"epoch\":");
    digits[..digits.find(',')?].parse().ok()
}

fn without_epoch(line: &str) -> String {
    line[line.find(',').unwrap_or(0)..].to_owned()
}

#[test]
fn inputs_and_outputs_go_on_where_they_were() {
    let undisturbed = tempfile::tempdir().unwrap();
    inputs(undisturbed.path());
    let expected = {
        let engine = builder(1).open_in_memory().unwrap();
        define(&engine, undisturbed.path());
        everything(&engine, undisturbed.path())
    };
    for seed in 0..3 {
        let mut random = fastrand::Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        inputs(folder.path());
        let workers = seed as usize % 3 + 1;
        let mut engine = open(folder.path(), workers).unwrap();
        define(&engine, folder.path());
        for _ in 0..random.u32(2..7) {
            engine.start().unwrap();
            std::thread::sleep(Duration::from_millis(random.u64(0..40)));
            drop(engine);
            engine = open(folder.path(), workers).unwrap();
        }
        assert_eq!(everything(&engine, folder.path()), expected, "seed {seed}");
        drop(engine);
        // All was read and written: nothing is read or written again.
        engine = open(folder.path(), workers).unwrap();
        assert_eq!(everything(&engine, folder.path()), expected, "seed {seed}, again");
    }
}

#[test]
fn another_number_of_workers_reads_and_writes_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |from: u32| (from..from + 100).map(|n| format!("{n}\n")).collect::<String>();
    fs::write(folder.path().join("t.csv"), rows(0)).unwrap();
    let mut engine = open(folder.path(), 1).unwrap();
    let mut session = engine.session();
    session.set_base(folder.path());
    let definitions = "
        CREATE TABLE t (n BIGINT) WITH ('materialized' = 'true', 'connectors' = '[
            {\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"t.csv\"}}}]');
        CREATE VIEW v WITH ('connectors' = '[
            {\"transport\": {\"name\": \"file_output\", \"config\": {\"path\": \"v.csv\"}}}]') AS SELECT n FROM t;";
    session.execute(definitions).unwrap();
    drop(session);
    for (round, workers) in [2, 3, 1, 2].into_iter().enumerate() {
        engine.finish().unwrap();
        let mut lines = fs::read_to_string(folder.path().join("v.csv")).unwrap();
        let mut numbers: Vec<u32> = lines
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(2).unwrap().parse().unwrap())
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100 * (round as u32 + 1)).collect::<Vec<_>>());
        drop(engine);
        lines.clear();
        (0..=round as u32 + 1).for_each(|part| lines.push_str(&rows(part * 100)));
        fs::write(folder.path().join("t.csv"), lines).unwrap();
        engine = open(folder.path(), workers).unwrap();
    }
}

/// Outputs go back with the epochs that are left out, and come again with the copy that was put aside.
#[test]
fn a_directory_whose_file_is_gone_is_opened_without_what_was_read_of_it() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), "7\n8\n").unwrap();
    let engine = open_seldom(folder.path()).open().unwrap();
    let mut session = engine.session();
    session.set_base(folder.path());
    session
        .execute(
            "CREATE TABLE t (n BIGINT) WITH ('materialized' = 'true', 'connectors' = '[
                {\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"t.csv\"}}}]');
             CREATE VIEW v WITH ('connectors' = '[
                {\"transport\": {\"name\": \"file_output\", \"config\": {\"path\": \"v.csv\"}}}]') AS SELECT n FROM t;
             INSERT INTO t VALUES (1)",
        )
        .unwrap();
    drop(session);
    engine.finish().unwrap();
    // Rows after the checkpoint are read again at each start.
    fs::write(folder.path().join("t.csv"), "7\n8\n9\n").unwrap();
    drop(engine);
    let engine = open_seldom(folder.path()).open().unwrap();
    engine.start().unwrap();
    engine.wait_for_sources().unwrap();
    let last = engine.progress().committed;
    // An engine that is dropped does not wait for its outputs.
    let wait_for = |row: String| {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let written = fs::read_to_string(folder.path().join("v.csv")).unwrap();
            if written.contains(&row) {
                return written;
            }
            assert!(Instant::now() < deadline, "{row} is not in {written}");
            thread::sleep(Duration::from_millis(5));
        }
    };
    let written = wait_for(format!("{last},1,9"));
    drop(engine);
    fs::rename(folder.path().join("t.csv"), folder.path().join("gone.csv")).unwrap();
    let error = open_seldom(folder.path()).open().err().unwrap().to_string();
    assert!(error.contains("t.csv"), "{error}");
    let engine = open_seldom(folder.path()).until(last - 1).open().unwrap();
    fs::write(folder.path().join("t.csv"), "7\n8\n").unwrap();
    assert_eq!(
        engine.query("SELECT n FROM t").unwrap().iter().map(|rows| rows.num_rows()).sum::<usize>(),
        3
    );
    let aside = engine.put_aside().unwrap().to_owned();
    engine.execute("INSERT INTO t VALUES (2)").unwrap();
    let left = wait_for(format!("{last},1,2"));
    drop(engine);
    assert!(!left.contains(",1,9"), "{left}");
    // The other way, with the file.
    fs::rename(folder.path().join("gone.csv"), folder.path().join("t.csv")).unwrap();
    fs::rename(folder.path().join("state"), folder.path().join("other")).unwrap();
    let aside = aside.strip_prefix(folder.path().join("state")).unwrap();
    fs::rename(folder.path().join("other").join(aside), folder.path().join("state")).unwrap();
    drop(open_seldom(folder.path()).open().unwrap());
    assert_eq!(fs::read_to_string(folder.path().join("v.csv")).unwrap(), written);
}

/// A file that others only append to has each final row once, however often the engine starts again.
#[test]
fn final_rows_are_written_once_across_restarts() {
    let folder = TempDir::new().unwrap();
    let define = "CREATE TABLE t (n BIGINT LATENESS 10);
        CREATE VIEW f WITH ('emit_final' = 'n', 'connectors' = '[
            {\"transport\": {\"name\": \"file_output\", \"config\": {\"path\": \"f.csv\", \"mode\": \"changes\"}}}]')
            AS SELECT n, COUNT(*) AS c FROM t GROUP BY n";
    for round in 0..12 {
        let engine = open(folder.path(), 2).unwrap();
        if round == 0 {
            let mut session = engine.session();
            session.set_base(folder.path());
            session.execute(define).unwrap();
        }
        let n = 5 * round;
        engine.execute(&format!("INSERT INTO t VALUES ({n}), ({n}), ({})", n + 2)).unwrap();
        if round % 3 == 1 {
            engine.checkpoint().unwrap();
        }
    }
    let engine = open(folder.path(), 2).unwrap();
    engine.finish().unwrap();
    let text = fs::read_to_string(folder.path().join("f.csv")).unwrap();
    let mut written: Vec<Vec<i64>> = text
        .lines()
        .filter_map(|line| line.split(',').map(|value| value.parse().ok()).collect())
        .collect();
    assert!(written.is_sorted_by_key(|row| row[0]), "in the order of epochs: {text}");
    written.sort_by_key(|row| row[2]);
    let written: Vec<&[i64]> = written.iter().map(|row| &row[1..]).collect();
    // Weight, number and count of all that is below 57 - 10.
    let expected: Vec<[i64; 3]> =
        (0..10).flat_map(|round| [[1, 5 * round, 2], [1, 5 * round + 2, 1]]).take(19).collect();
    assert_eq!(written, expected);
}

#[test]
fn an_output_of_a_program_is_part_of_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let (changes, contents) = (folder.path().join("v.csv"), folder.path().join("w.json"));
    let engine = open(folder.path(), 2).unwrap();
    let insert = |engine: &Engine, n: u32| {
        engine.session().execute(&format!("INSERT INTO t VALUES ({n})")).unwrap();
    };
    engine.session().execute("CREATE TABLE t (n BIGINT)").unwrap();
    insert(&engine, 1);
    let add = |engine: &Engine| {
        engine.output("t", &changes, None, &[], OutputMode::Changes).unwrap();
        engine.output("t", &contents, None, &[], OutputMode::Contents).unwrap();
    };
    add(&engine);
    insert(&engine, 2);
    engine.checkpoint().unwrap();
    insert(&engine, 3);
    drop(engine);
    let engine = open(folder.path(), 2).unwrap();
    insert(&engine, 4);
    // It is there already.
    add(&engine);
    engine.finish().unwrap();
    drop(engine);
    let written = "epoch,weight,n\r\n1,1,1\r\n2,1,2\r\n3,1,3\r\n4,1,4\r\n";
    assert_eq!(fs::read_to_string(&changes).unwrap(), written);
    assert_eq!(fs::read_to_string(&contents).unwrap().matches('n').count(), 4);
    // A relation takes its outputs with it.
    let engine = open(folder.path(), 2).unwrap();
    engine.session().execute("DROP TABLE t; CREATE TABLE t (n BIGINT)").unwrap();
    engine.checkpoint().unwrap();
    drop(engine);
    let engine = open(folder.path(), 2).unwrap();
    insert(&engine, 5);
    engine.finish().unwrap();
    assert_eq!(fs::read_to_string(&changes).unwrap(), written);
}

#[test]
fn refused_rows_are_listed_after_a_restart() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.csv"), "1\nx\n2\ny\n").unwrap();
    fs::write(folder.path().join("wrong.csv"), "z\n").unwrap();
    let mut engine = open(folder.path(), 1).unwrap();
    let listed = |engine: &Engine| {
        let errors =
            "SELECT epoch, view, row, message FROM alluvium.errors ORDER BY view, epoch, row";
        shown_without(engine, errors, folder.path())
    };
    engine.session().execute("CREATE TABLE t (n BIGINT); CREATE TABLE u (n BIGINT)").unwrap();
    for round in 0..4 {
        for (table, file) in [("t", "t.csv"), ("u", "wrong.csv"), ("t", "wrong.csv")] {
            let path = folder.path().join(file);
            let copy = format!("COPY {table} FROM '{}'", path.display());
            engine.session().execute(&copy).unwrap();
        }
        let before = listed(&engine);
        assert_eq!(before.lines().count(), 1 + 4 * (round + 1), "{before}");
        if round % 2 == 1 {
            engine.checkpoint().unwrap();
        }
        drop(engine);
        engine = open(folder.path(), round % 2 + 1).unwrap();
        assert_eq!(listed(&engine), before, "round {round}");
    }
    engine.session().execute("DROP TABLE t").unwrap();
    assert_eq!(listed(&engine).lines().count(), 1 + 4);
}

#[test]
fn an_output_that_cannot_go_on_after_a_restart_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path(), 1).unwrap();
    engine.session().execute("CREATE TABLE t (n BIGINT)").unwrap();
    for name in ["v.parquet", "v.json", "v.csv.gz", "v.jsonl.gz"] {
        let path = folder.path().join(name);
        let error = engine.output("t", &path, None, &[], OutputMode::Changes).unwrap_err();
        assert!(error.to_string().contains("CSV or JSON lines"), "{error}");
        assert!(!path.exists(), "nothing is written");
        engine.output("t", &path, None, &[], OutputMode::Contents).unwrap();
    }
}

#[test]
fn a_file_that_was_changed_since_it_was_read_is_named() {
    let text: String = (0..100).map(|n| format!("{n}\n")).collect();
    let opened = |change: &dyn Fn(&Path), checkpoint: bool| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        fs::write(&path, &text).unwrap();
        let state = format!("file:{}", folder.path().join("state").display());
        let open = || builder(1).state(&state).open();
        let engine = open().unwrap();
        let mut session = engine.session();
        session.set_base(folder.path());
        let table = "CREATE TABLE t (n BIGINT) WITH ('materialized' = 'true', 'connectors' = '[
            {\"transport\": {\"name\": \"file_input\", \"config\": {\"path\": \"t.csv\"}}}]'); START";
        session.execute(table).unwrap();
        engine.wait_for_sources().unwrap();
        if checkpoint {
            engine.checkpoint().unwrap();
        }
        drop((session, engine));
        change(&path);
        open().and_then(|engine| engine.start().map(|()| (engine, folder)))
    };
    let check = |result: Result<(Engine, TempDir)>, what: &str| {
        let error = result.err().unwrap().to_string();
        assert!(error.contains("t.csv") && error.contains(what), "{error}");
    };
    let shorten = |path: &Path| fs::write(path, "1\n2\n").unwrap();
    let damage = |path: &Path| fs::write(path, text.replace("7\n", "x\n")).unwrap();
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    check(opened(&shorten, false), "what was read is not there");
    check(opened(&damage, false), "what was read is not there");
    check(opened(&remove, false), "cannot open");
    check(opened(&shorten, true), "shorter");
    // Rows in a checkpoint need not be read again.
    let (engine, _folder) = opened(&damage, true).unwrap();
    assert!(show(&engine, "SELECT COUNT(*) FROM t").contains("100"));
    let grow = |path: &Path| fs::write(path, format!("{text}100\n")).unwrap();
    for checkpoint in [false, true] {
        let (engine, _folder) = opened(&grow, checkpoint).unwrap();
        engine.wait_for_sources().unwrap();
        assert!(show(&engine, "SELECT COUNT(*) FROM t").contains("101"));
    }
}

/// An engine that takes no checkpoints of its own.
fn without_checkpoints(folder: &Path) -> Result<Engine> {
    let state = folder.join("state").display().to_string();
    builder(1).state(format!("file:{state}")).checkpoints(Duration::MAX, u64::MAX).open()
}

fn run(engine: &Engine, folder: &Path, sql: &str) -> Result<()> {
    let mut session = engine.session();
    session.set_base(folder);
    session.execute(sql).map(drop)
}

/// The view was recorded before its output was opened: the statement failed again whenever the directory was opened.
#[test]
fn a_view_whose_output_cannot_be_opened_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("folder.csv")).unwrap();
    for (path, column) in [
        ("x.parquet", "a"),
        ("x.json", "a"),
        ("x.csv.gz", "a"),
        ("folder.csv", "a"),
        ("missing/x.csv", "a"),
        ("y.csv", "a AS epoch"),
    ] {
        for replaces in ["", "OR REPLACE "] {
            let engine = without_checkpoints(folder.path()).unwrap();
            run(
                &engine,
                folder.path(),
                "CREATE TABLE IF NOT EXISTS t (a INT); INSERT INTO t VALUES (1)",
            )
            .unwrap();
            let create = format!(
                "CREATE {replaces}VIEW v WITH (connector = 'file', path = '{path}', mode = 'changes') AS SELECT {column} FROM t"
            );
            run(&engine, folder.path(), &create).unwrap_err();
        }
    }
    let engine = without_checkpoints(folder.path()).unwrap();
    assert_eq!(engine.relations().unwrap().len(), 1);
    assert!(show(&engine, "SELECT COUNT(*) FROM t").contains("12"));
}

/// The relations of the last checkpoint are opened first, and files are not as they were then.
#[test]
fn files_of_what_is_dropped_later_are_not_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let view = |which: &str| {
        format!(
            "CREATE OR REPLACE VIEW o WITH (connector = 'file', path = 'o.csv') AS SELECT a FROM t WHERE a > {which}"
        )
    };
    let engine = without_checkpoints(path).unwrap();
    run(&engine, path, "CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2), (3), (4)").unwrap();
    run(&engine, path, &view("0")).unwrap();
    engine.checkpoint().unwrap();
    run(&engine, path, &view("3")).unwrap();
    drop(engine);
    let engine = without_checkpoints(path).unwrap();
    engine.finish().unwrap();
    assert_eq!(fs::read_to_string(path.join("o.csv")).unwrap().lines().count(), 2);
    run(&engine, path, "DROP VIEW o").unwrap();
    drop(engine);
    fs::remove_file(path.join("o.csv")).unwrap();
    let engine = without_checkpoints(path).unwrap();
    // An input that was read since, and whose table is dropped.
    fs::write(path.join("in.csv"), "1\n2\n").unwrap();
    let input = "CREATE TABLE i (a INT) WITH (connector = 'file', path = 'in.csv', 'materialized' = 'true')";
    run(&engine, path, input).unwrap();
    run(&engine, path, "CREATE MATERIALIZED VIEW s AS SELECT SUM(a) AS s FROM i").unwrap();
    engine.start().unwrap();
    engine.wait_for_sources().unwrap();
    assert!(show(&engine, "SELECT s FROM s").contains('3'));
    run(&engine, path, "DROP TABLE i CASCADE; INSERT INTO t VALUES (5)").unwrap();
    drop(engine);
    fs::remove_file(path.join("in.csv")).unwrap();
    let engine = without_checkpoints(path).unwrap();
    assert!(show(&engine, "SELECT SUM(a) FROM t").contains("15"));
    // One whose table is still there is needed.
    fs::write(path.join("in.csv"), "1\n2\n").unwrap();
    run(&engine, path, input).unwrap();
    engine.start().unwrap();
    engine.wait_for_sources().unwrap();
    drop(engine);
    fs::remove_file(path.join("in.csv")).unwrap();
    let error = without_checkpoints(path).err().unwrap().to_string();
    assert_eq!(error.matches("the source \"csv\" of table \"i\"").count(), 1, "{error}");
}

/// Each of them wrote over the other.
#[test]
fn two_views_are_not_written_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let engine = without_checkpoints(folder.path()).unwrap();
    let view = |name: &str| {
        format!(
            "CREATE VIEW {name} WITH (connector = 'file', path = 'same.csv') AS SELECT a FROM t"
        )
    };
    run(&engine, folder.path(), "CREATE TABLE t (a INT)").unwrap();
    run(&engine, folder.path(), &view("one")).unwrap();
    let error = run(&engine, folder.path(), &view("other")).unwrap_err().to_string();
    assert!(error.contains("\"one\" is written to") && error.contains("same.csv"), "{error}");
    run(&engine, folder.path(), &format!("DROP VIEW one; {}", view("other"))).unwrap();
}

/// The position in the file was not made durable before the next checkpoint.
#[test]
fn rows_of_a_file_that_grows_are_complete_soon() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.csv"), "").unwrap();
    let engine = without_checkpoints(folder.path()).unwrap();
    let table = "CREATE TABLE t (a INT) WITH (connector = 'file', path = 'in.csv', 'follow' = 'true', 'linger_ms' = '20')";
    run(&engine, folder.path(), table).unwrap();
    run(&engine, folder.path(), "CREATE MATERIALIZED VIEW v AS SELECT SUM(a) AS s FROM t").unwrap();
    let mut changes = engine.subscribe("v").unwrap();
    engine.start().unwrap();
    fs::write(folder.path().join("in.csv"), "1\n").unwrap();
    for _ in 0..2_000 {
        while let Some(change) = changes.try_next().unwrap() {
            if change.rows.columns().iter().any(|sums| sums.null_count() < sums.len()) {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the row is not there");
}
