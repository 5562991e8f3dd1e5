//! Views that emit each row once, when it can no longer change.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::Path;

use alluvium::{Engine, Subscription};

use crate::support::{batch_lines, engine, engine_with, query, settled};

/// All changes of a view: in which epoch each row came.
struct Log {
    subscription: Subscription,
    rows: Vec<(u64, String)>,
}

impl Log {
    fn of(engine: &Engine, view: &str) -> Self {
        Self { subscription: engine.subscribe(view).unwrap(), rows: Vec::new() }
    }

    /// Takes the changes that are there; none of them may take a row back.
    fn take(&mut self) -> &[(u64, String)] {
        while let Some(change) = self.subscription.try_next().unwrap() {
            for (row, weight) in batch_lines(&change.rows).into_iter().zip(change.weights.iter()) {
                assert!(*weight > 0, "{row} is taken back in epoch {}", change.epoch);
                self.rows.extend((0..*weight).map(|_| (change.epoch, row.clone())));
            }
        }
        &self.rows
    }

    fn sorted(&mut self) -> Vec<String> {
        let mut rows: Vec<String> = self.take().iter().map(|(_, row)| row.clone()).collect();
        rows.sort();
        rows
    }
}

/// Executes a statement, and returns the epoch that it made once that is complete.
fn step(engine: &Engine, sql: &str) -> u64 {
    engine.execute(sql).unwrap();
    let epoch = engine.progress().committed;
    engine.wait(epoch).unwrap();
    epoch
}

/// The message of a statement that fails.
fn refusal(engine: &Engine, sql: &str) -> String {
    engine.execute(sql).unwrap_err().to_string()
}

#[test]
fn a_row_is_emitted_once_in_the_epoch_after_which_it_cannot_change() {
    for workers in 1..=3 {
        let engine = engine_with(
            workers,
            "CREATE TABLE t (n BIGINT LATENESS 10, v BIGINT);
             CREATE VIEW f WITH ('emit_final' = 'N') AS SELECT n, COUNT(*) AS c, SUM(v) AS s FROM t GROUP BY n;
             CREATE MATERIALIZED VIEW m AS SELECT n, COUNT(*) AS c, SUM(v) AS s FROM t GROUP BY n
                 EMIT ON WINDOW CLOSE",
        );
        let mut log = Log::of(&engine, "f");
        step(&engine, "INSERT INTO t VALUES (100, 1), (100, 2), (95, 3), (NULL, 9)");
        assert_eq!(log.take(), []);
        assert!(query(&engine, "SELECT * FROM m").is_empty());
        // Up to 90 nothing can change any more, but 90 itself can.
        step(&engine, "INSERT INTO t VALUES (90, 4)");
        assert_eq!(log.take(), []);
        let first = step(&engine, "INSERT INTO t VALUES (100, 5), (106, 6)");
        let mut expected = vec![(first, "90 1 4".to_owned()), (first, "95 1 3".to_owned())];
        assert_eq!(log.sorted(), ["90 1 4", "95 1 3"], "{workers} workers");
        assert!(log.take().iter().all(|(epoch, _)| *epoch == first));
        assert_eq!(query(&engine, "SELECT * FROM m"), ["90 1 4", "95 1 3"]);
        // A row that raises the waterline above others is one of the last that change them.
        let second = step(&engine, "INSERT INTO t VALUES (100, 7), (96, 8), (111, 0)");
        expected.extend([(second, "100 4 15".to_owned()), (second, "96 1 8".to_owned())]);
        let mut rows = log.take().to_vec();
        rows.sort();
        assert_eq!(rows, expected);
        // Late rows change nothing, and nothing comes twice.
        step(&engine, "INSERT INTO t VALUES (96, 1), (100, 1)");
        step(&engine, "INSERT INTO t VALUES (112, 1)");
        assert_eq!(log.take().len(), 4);
        assert_eq!(query(&engine, "SELECT COUNT(*), SUM(c) FROM m"), ["4 7"]);
    }
}

#[test]
fn a_view_that_comes_later_has_the_rows_that_are_final_already() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (n BIGINT LATENESS 10);
         INSERT INTO t VALUES (1), (1), (15), (20), (NULL);
         CREATE MATERIALIZED VIEW m WITH ('emit_final' = 'n') AS SELECT n FROM t",
    );
    assert_eq!(query(&engine, "SELECT * FROM m"), ["1", "1"]);
    step(&engine, "INSERT INTO t VALUES (26), (15)");
    assert_eq!(query(&engine, "SELECT * FROM m"), ["1", "1", "15", "15"]);
}

#[test]
fn rows_that_are_taken_back_before_they_are_final_never_come() {
    let engine = engine_with(
        3,
        "CREATE TABLE t (k BIGINT PRIMARY KEY, n BIGINT LATENESS 10, v VARCHAR);
         CREATE MATERIALIZED VIEW m WITH ('emit_final' = 'n') AS SELECT * FROM t",
    );
    step(&engine, "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')");
    step(&engine, "INSERT OR REPLACE INTO t VALUES (1, 5, 'd'); DELETE FROM t WHERE k = 2");
    step(&engine, "INSERT INTO t VALUES (4, 14, 'e')");
    assert_eq!(query(&engine, "SELECT * FROM m"), ["3 3 c"]);
    // Final rows cannot be replaced; others can.
    step(&engine, "INSERT OR REPLACE INTO t VALUES (3, 20, 'x'), (1, 30, 'y')");
    assert_eq!(query(&engine, "SELECT * FROM m"), ["3 3 c", "4 14 e"]);
}

#[test]
fn views_of_final_rows_have_rows_that_are_only_inserted() {
    let engine = engine_with(
        2,
        "CREATE TABLE t (n BIGINT LATENESS 10, v BIGINT);
         CREATE LOCAL VIEW l WITH ('emit_final' = 'n') AS SELECT n, SUM(v) AS s FROM t GROUP BY n;
         CREATE VIEW p WITH ('emit_final' = 'n') AS SELECT n, SUM(v) AS s FROM t GROUP BY n;
         CREATE MATERIALIZED VIEW m WITH ('emit_final' = 'n') AS SELECT n, SUM(v) AS s FROM t GROUP BY n;
         CREATE MATERIALIZED VIEW of_l AS SELECT MAX(s) AS s, COUNT(*) AS c FROM l;
         CREATE MATERIALIZED VIEW of_p AS SELECT MAX(s) AS s, COUNT(*) AS c FROM p;
         CREATE MATERIALIZED VIEW of_m AS SELECT MAX(s) AS s, COUNT(*) AS c FROM m;
         CREATE MATERIALIZED VIEW on_m WITH ('emit_final' = 'n') AS SELECT n, COUNT(*) AS c FROM m GROUP BY n;
         CREATE MATERIALIZED VIEW again WITH ('emit_final' = 'd') AS SELECT n + 5 AS d, s FROM p",
    );
    for (number, expected) in [(10, "NULL 0"), (25, "20 1"), (40, "50 2"), (60, "80 3")] {
        step(&engine, &format!("INSERT INTO t VALUES ({number}, {number}), ({number}, {number})"));
        for view in ["of_l", "of_p", "of_m"] {
            assert_eq!(query(&engine, &format!("SELECT * FROM {view}")), [expected], "{view}");
        }
    }
    assert_eq!(query(&engine, "SELECT * FROM on_m"), ["10 1", "25 1", "40 1"]);
    assert_eq!(query(&engine, "SELECT * FROM again"), ["15 20", "30 50", "45 80"]);
    for view in ["of_l", "of_p", "of_m"] {
        let explained = format!("{:?}", engine.session().execute(&format!("EXPLAIN VIEW {view}")));
        assert!(explained.contains("append-only"), "{explained}");
    }
    let message = refusal(&engine, "SELECT * FROM p");
    assert!(message.contains("only the final rows of \"p\" are emitted"), "{message}");
}

#[test]
fn what_has_no_bound_is_refused_with_the_reason() {
    let engine = engine_with(
        1,
        "CREATE TABLE t (n BIGINT LATENESS 10, m BIGINT, v VARCHAR);
         CREATE TABLE u (a BIGINT LATENESS 1, b BIGINT LATENESS 1)",
    );
    for (sql, expected) in [
        (
            "CREATE VIEW f WITH ('emit_final' = 'm') AS SELECT * FROM t",
            "no row of \"f\" is ever final by \"m\": t.m has no LATENESS; add LATENESS to t.m in CREATE TABLE",
        ),
        ("CREATE VIEW f WITH ('emit_final' = 'x') AS SELECT * FROM t", "no column \"x\""),
        (
            "CREATE VIEW f WITH ('emit_final' = 'c') AS SELECT n, COUNT(*) AS c FROM t GROUP BY n",
            "no row of \"f\" is ever final by \"c\": ",
        ),
        (
            "CREATE VIEW f AS SELECT m, v FROM t EMIT ON WINDOW CLOSE",
            "no column of \"f\" says when a window closes: of \"m\", t.m has no LATENESS",
        ),
        (
            "CREATE VIEW f AS SELECT * FROM u EMIT ON WINDOW CLOSE",
            "rows of \"f\" can be final by several columns: write WITH ('emit_final' = …) with one of 'a', 'b'",
        ),
        (
            "CREATE VIEW f WITH ('emit_final' = 'a') AS SELECT * FROM u EMIT ON WINDOW CLOSE",
            "it is said twice which rows of the view are final",
        ),
    ] {
        let message = refusal(&engine, sql);
        assert!(message.contains(expected), "{sql}: {message}");
    }
}

/// Numbers that seem random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

const LATENESS: i64 = 20;

const TABLES: &str = "
    CREATE TABLE t (n BIGINT LATENESS 20, k BIGINT, v BIGINT);
    CREATE TABLE u (n BIGINT LATENESS 20, k BIGINT, v BIGINT);";

/// Queries, the column by which rows are final, and how much less than the waterline of `t` alone, or of both tables, its
/// bound is.
const QUERIES: [(&str, bool, i64, &str); 7] = [
    ("rows", false, 0, "SELECT n, k, v FROM t"),
    ("twice", false, 0, "SELECT n, k FROM t UNION ALL SELECT n, k FROM t WHERE k > 1"),
    (
        "groups",
        false,
        0,
        "SELECT k, n, COUNT(*) AS c, SUM(v) AS s, MAX(v) AS m FROM t GROUP BY k, n",
    ),
    ("both", true, 0, "SELECT n, v FROM t UNION ALL SELECT n, v FROM u"),
    ("joined", true, 0, "SELECT t.n, t.v, u.v AS w FROM t JOIN u ON t.n = u.n AND t.k = u.k"),
    (
        "unmatched",
        true,
        0,
        "SELECT t.n, t.v, u.v AS w FROM t LEFT JOIN u ON t.n = u.n AND t.k = u.k",
    ),
    ("moved", false, 7, "SELECT n - 7 AS n, COUNT(*) AS c FROM t WHERE k < 3 GROUP BY n - 7"),
];

/// The tables as they should be.
#[derive(Default)]
struct Model {
    rows: BTreeMap<&'static str, Vec<[i64; 3]>>,
    highest: BTreeMap<&'static str, i64>,
    time: i64,
}

impl Model {
    /// The statements of an epoch: rows that are out of order within the lateness and some that are too late, and deletions.
    fn next(&mut self, random: &mut Random) -> String {
        self.time += random.below(8) as i64;
        let mut statements = vec!["BEGIN".to_owned()];
        let before = self.highest.clone();
        for table in ["t", "u"] {
            if random.below(4) == 0 {
                continue;
            }
            let bound = before.get(table).map_or(-1_000_000, |highest| highest - LATENESS);
            let rows = self.rows.entry(table).or_default();
            if let Some(place) = (random.below(3) == 0).then(|| random.below(rows.len() as u64 + 1))
                && let Some([n, k, v]) = rows.get(place as usize).copied()
                && n >= bound
            {
                rows.retain(|row| *row != [n, k, v]);
                statements
                    .push(format!("DELETE FROM {table} WHERE n = {n} AND k = {k} AND v = {v}"));
            }
            let mut values = Vec::new();
            for _ in 0..=random.below(9) {
                let n = self.time - random.below(25) as i64;
                let (k, v) = (random.below(4) as i64, random.below(3) as i64);
                values.push(format!("({n}, {k}, {v})"));
                if n >= bound {
                    rows.push([n, k, v]);
                    let highest = self.highest.entry(table).or_insert(n);
                    *highest = n.max(*highest);
                }
            }
            statements.push(format!("INSERT INTO {table} VALUES {}", values.join(", ")));
        }
        statements.push("COMMIT".to_owned());
        statements.join("; ")
    }

    /// The bound of a query.
    fn bound(&self, both: bool, less: i64) -> i64 {
        let waterline = |table| self.highest.get(table).map_or(-1_000_000, |high| high - LATENESS);
        let bound = if both { waterline("t").min(waterline("u")) } else { waterline("t") };
        bound - less
    }
}

/// After every epoch, what was emitted is what the plain view has below the bound, whatever the workers and the budget.
#[test]
fn after_every_epoch_the_emitted_rows_are_those_of_the_plain_view_below_its_bound() {
    for (seed, workers, memory) in
        [(1, 1, None), (2, 2, Some(1 << 20)), (3, 3, None), (4, 1, Some(1 << 20)), (5, 3, None)]
    {
        let mut builder = Engine::builder().workers(workers);
        if let Some(memory) = memory {
            builder = builder.memory(memory);
        }
        let engine = builder.open().unwrap();
        engine.execute(TABLES).unwrap();
        let mut logs = Vec::new();
        for (name, both, less, query) in QUERIES {
            let plain = format!("CREATE MATERIALIZED VIEW {name} AS {query}");
            let of_final = format!("CREATE VIEW f_{name} WITH ('emit_final' = 'n') AS {query}");
            engine.execute(&format!("{plain}; {of_final}")).unwrap();
            logs.push((name, both, less, Log::of(&engine, &format!("f_{name}"))));
        }
        let (mut model, mut random) = (Model::default(), Random(seed * 0x9E37_79B9));
        for round in 0..60 {
            engine.execute(&model.next(&mut random)).unwrap();
            // Sometimes several epochs are in flight.
            if random.below(3) > 0 {
                continue;
            }
            engine.wait(engine.progress().committed).unwrap();
            let counted = query(&engine, "SELECT COUNT(*) FROM rows");
            assert_eq!(counted, [model.rows.get("t").map_or(0, Vec::len).to_string()]);
            for (name, both, less, log) in &mut logs {
                let bound = model.bound(*both, *less);
                let sql = format!("SELECT * FROM {name} WHERE n < {bound}");
                let expected = query(&engine, &sql);
                assert_eq!(
                    log.sorted(),
                    expected,
                    "{name} below {bound}, {workers} workers, {round}"
                );
            }
        }
        let counts = logs.iter().map(|(name, .., log)| (*name, log.rows.len()));
        let counts: Vec<_> = counts.collect();
        assert!(counts.iter().all(|(_, rows)| *rows > 10), "little was final: {counts:?}");
    }
}

const DURABLE: &str = "
    CREATE TABLE t (n BIGINT LATENESS 20, k BIGINT, v BIGINT);
    CREATE TABLE u (n BIGINT LATENESS 20, k BIGINT, v BIGINT);
    CREATE MATERIALIZED VIEW groups WITH ('emit_final' = 'n') AS
        SELECT n, k, COUNT(*) AS c FROM t GROUP BY n, k;
    CREATE MATERIALIZED VIEW both WITH ('emit_final' = 'n') AS
        SELECT n, k FROM t UNION ALL SELECT n, k FROM u;
    CREATE VIEW plain AS SELECT n, SUM(v) AS s FROM t GROUP BY n EMIT ON WINDOW CLOSE;
    CREATE MATERIALIZED VIEW of_plain AS SELECT COUNT(*) AS c, MAX(s) AS m, SUM(n) AS n FROM plain;";

fn shown(engine: &Engine) -> Vec<String> {
    let views = ["groups", "both", "of_plain"];
    views.iter().flat_map(|view| settled(engine, &format!("SELECT * FROM {view}"))).collect()
}

fn open(directory: &Path, workers: usize) -> Engine {
    let state = format!("file:{}", directory.display());
    Engine::builder().workers(workers).state(state).history(100).open().unwrap()
}

/// By the journal, by checkpoints, and with another number of workers.
#[test]
fn final_rows_come_once_also_across_restarts() {
    const ROUNDS: usize = 12;
    for (checkpoints, workers) in [
        (vec![], [2, 2]),
        ((0..ROUNDS).collect(), [2, 2]),
        (vec![3, 7], [1, 1]),
        (vec![2, 5, 6], [1, 3]),
    ] {
        let judge = engine(1);
        judge.execute(DURABLE).unwrap();
        let directory = tempfile::tempdir().unwrap();
        open(directory.path(), workers[0]).execute(DURABLE).unwrap();
        let (mut model, mut random) = (Model::default(), Random(77));
        let mut before: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for round in 0..ROUNDS {
            let engine = open(directory.path(), workers[round % 2]);
            assert_eq!(shown(&engine), shown(&judge), "{checkpoints:?} {round}");
            let mut changes = Log::of(&engine, "both");
            assert_eq!(changes.sorted(), before.remove("both").unwrap_or_default());
            for _ in 0..3 {
                let sql = model.next(&mut random);
                judge.execute(&sql).unwrap();
                engine.execute(&sql).unwrap();
                assert_eq!(shown(&engine), shown(&judge), "{checkpoints:?} {round}");
            }
            before.insert("both", changes.sorted());
            if checkpoints.contains(&round) {
                engine.checkpoint().unwrap();
            }
        }
        assert!(shown(&judge).len() > 30);
    }
}

/// The rows of state of a view, of all workers, but its contents.
fn waiting(engine: &Engine, view: &str) -> u64 {
    let sql = format!(
        "SELECT COALESCE(SUM(rows), 0) FROM alluvium.arrangements
         WHERE view = '{view}' AND operator <> 'Contents'"
    );
    query(engine, &sql)[0].parse().unwrap()
}

#[test]
fn what_was_emitted_is_forgotten() {
    for (workers, memory) in [(1, None), (2, Some(1 << 20))] {
        let mut builder = Engine::builder().workers(workers);
        if let Some(memory) = memory {
            builder = builder.memory(memory);
        }
        let engine = builder.open().unwrap();
        engine
            .execute(
                "CREATE TABLE t (n BIGINT LATENESS 100, v VARCHAR)
                     WITH ('materialized' = 'false', 'append_only' = 'true');
                 CREATE VIEW f WITH ('emit_final' = 'n') AS SELECT * FROM t",
            )
            .unwrap();
        let mut log = Log::of(&engine, "f");
        let mut most = 0;
        for round in 0..200_u64 {
            let values: Vec<String> =
                (0..100).map(|row| format!("({}, 'row {row}')", 100 * round + row)).collect();
            step(&engine, &format!("INSERT INTO t VALUES {}, (NULL, 'x')", values.join(", ")));
            assert_eq!(
                log.take().len() as u64,
                100 * round.saturating_sub(1) + if round > 0 { 99 } else { 0 }
            );
            most = most.max(waiting(&engine, "f"));
        }
        assert!(most < 3_000, "{most} rows wait, of which about 100 are not final");
    }
}
