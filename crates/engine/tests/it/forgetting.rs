//! State that can no longer matter is forgotten.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::{Duration, UNIX_EPOCH};

use alluvium::{Engine, Outcome};

use crate::support::query;

/// The rows of state of a view, of all workers and operators but its contents.
fn state_rows(engine: &Engine, view: &str) -> u64 {
    let rows = query(
        engine,
        &format!(
            "SELECT COALESCE(SUM(rows), 0) FROM alluvium.arrangements
             WHERE view = '{view}' AND operator <> 'Contents'"
        ),
    );
    rows[0].parse().unwrap()
}

/// The output of `EXPLAIN STATE` for a view.
fn explained(engine: &Engine, view: &str) -> String {
    match engine.session().execute(&format!("EXPLAIN STATE {view}")).unwrap().pop() {
        Some(Outcome::Text(text)) => text,
        other => panic!("it is a text, not {other:?}"),
    }
}

/// Inserts twenty rows for each of these minutes, in disorder within the lateness.
fn minutes(engine: &Engine, from: u32, to: u32) {
    minutes_of(engine, "t", from, to);
}

fn minutes_of(engine: &Engine, table: &str, from: u32, to: u32) {
    for minute in from..to {
        let rows: Vec<String> = (0..20)
            .map(|row| {
                let minute = minute + row % 2;
                let at = format!("{:02}:{:02}:{:02}", minute / 60 % 24, minute % 60, row * 3);
                format!("({}, '2024-01-{:02} {at}')", row % 5, 1 + minute / 1440)
            })
            .collect();
        engine.execute(&format!("INSERT INTO {table} VALUES {}", rows.join(", "))).unwrap();
        // Epochs in flight hold back pruning.
        if minute % 8 == 0 {
            engine.wait(engine.progress().committed).unwrap();
        }
    }
    engine.wait(engine.progress().committed).unwrap();
}

const BAND: &str = "a.n = b.n AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND";

/// A view for each operator that can forget.
fn views() -> Vec<(&'static str, String)> {
    let fixed = [
        (
            "groups",
            "SELECT DATE_TRUNC('minute', ts) AS m, n, COUNT(*) AS c, MAX(n) AS x FROM t GROUP BY 1, 2",
        ),
        (
            "second",
            "SELECT n, DATE_TRUNC('minute', ts) AS m, COUNT(DISTINCT ts) AS c FROM t GROUP BY 1, 2",
        ),
        ("medians", "SELECT DATE_TRUNC('minute', ts) AS m, MEDIAN(n) AS c FROM t GROUP BY 1"),
        ("distincts", "SELECT DISTINCT ts, n FROM t"),
        (
            "tops",
            "SELECT * FROM (SELECT ts, n, ROW_NUMBER() OVER
            (PARTITION BY DATE_TRUNC('minute', ts) ORDER BY n, ts) AS r FROM t) AS x WHERE r <= 2",
        ),
        (
            "ranks",
            "SELECT * FROM (SELECT ts, n, RANK() OVER
            (PARTITION BY n, DATE_TRUNC('minute', ts) ORDER BY ts DESC) AS r FROM t) AS x WHERE r = 1",
        ),
        (
            "windows",
            "SELECT n, ts, SUM(n) OVER (PARTITION BY DATE_BIN(INTERVAL '2' MINUTE, ts) ORDER BY ts) AS s FROM t",
        ),
        (
            "ranges",
            "SELECT n, ts, SUM(n) OVER (PARTITION BY n % 2 ORDER BY ts RANGE BETWEEN
            INTERVAL '40' SECOND PRECEDING AND INTERVAL '10' SECOND FOLLOWING) AS s,
            MAX(n) OVER (PARTITION BY n % 2 ORDER BY ts RANGE BETWEEN
            INTERVAL '1' MINUTE PRECEDING AND INTERVAL '5' SECOND PRECEDING) AS m FROM t",
        ),
        (
            "falling",
            "SELECT n, ts, COUNT(*) OVER (ORDER BY ts DESC RANGE BETWEEN
            INTERVAL '30' SECOND PRECEDING AND INTERVAL '20' SECOND FOLLOWING) AS c FROM t",
        ),
        (
            "outer",
            "SELECT a.n, a.ts, b.n AS other FROM t AS a LEFT JOIN t AS b ON a.ts = b.ts AND a.n < b.n",
        ),
        (
            "anti",
            "SELECT n, ts FROM t AS a WHERE NOT EXISTS (SELECT 1 FROM t AS b WHERE b.ts = a.ts AND b.n > a.n)",
        ),
        (
            "until",
            "SELECT a.n, a.ts, b.ts AS other FROM (SELECT n, ts, CASE WHEN n < 2 THEN ts + INTERVAL '5' SECOND
            ELSE ts + INTERVAL '20' SECOND END AS expires FROM t) AS a
            JOIN t AS b ON a.n = b.n AND b.ts BETWEEN a.ts AND a.expires",
        ),
        (
            "tumbles",
            "SELECT window_end, n, MIN(ts) AS first FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts),
            INTERVAL '1' MINUTE)) GROUP BY window_end, n",
        ),
        (
            "hops",
            "SELECT window_start, n, COUNT(*) AS c FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts),
            INTERVAL '1' MINUTE, INTERVAL '3' MINUTE)) GROUP BY window_start, n",
        ),
        (
            "sessions",
            "SELECT n, ts, window_start, window_end FROM SESSION(t, ts, n, INTERVAL '10' SECOND)",
        ),
        (
            "visits",
            "SELECT n, window_start, window_end, COUNT(*) AS c, MIN(ts) AS first
            FROM SESSION(t, ts, n, INTERVAL '10' SECOND) GROUP BY n, window_start, window_end",
        ),
        (
            "grouped_sessions",
            "SELECT n, SESSION_END(ts, INTERVAL '5' SECOND) AS e, COUNT(*) AS c FROM t
            GROUP BY n, SESSION(ts, INTERVAL '5' SECOND)",
        ),
        ("unions", "SELECT ts, n FROM t WHERE n < 3 UNION SELECT ts, n FROM t WHERE n > 1"),
        ("differences", "SELECT ts, n FROM t WHERE n < 3 EXCEPT SELECT ts, n FROM t WHERE n > 1"),
        ("all_of", "SELECT n, ts FROM t EXCEPT ALL SELECT n, ts FROM t WHERE n > 1"),
        ("both", "SELECT n, ts FROM t WHERE n < 3 INTERSECT SELECT n, ts FROM t WHERE n > 1"),
        ("all_both", "SELECT n, ts FROM t WHERE n < 3 INTERSECT ALL SELECT n, ts FROM t"),
        (
            "nearest",
            "SELECT a.n, a.ts, b.ts AS other FROM t AS a LEFT ASOF JOIN t AS b MATCH_CONDITION (a.ts > b.ts)
            ON a.n = b.n AND DATE_TRUNC('minute', a.ts) = DATE_TRUNC('minute', b.ts)",
        ),
        // The time follows a column of no fixed width.
        ("texts", "SELECT DISTINCT CAST(n AS TEXT) AS t, ts FROM t"),
        (
            "differing",
            "SELECT CAST(n AS TEXT) AS t, ts FROM t WHERE n < 3
            EXCEPT SELECT CAST(n AS TEXT), ts FROM t WHERE n > 1",
        ),
    ];
    let mut views: Vec<_> = fixed.map(|(name, query)| (name, query.to_owned())).into();
    for (name, join) in [
        ("bands", "JOIN"),
        ("left_bands", "LEFT JOIN"),
        ("right_bands", "RIGHT JOIN"),
        ("full_bands", "FULL JOIN"),
    ] {
        let select = "SELECT a.n, a.ts, b.ts AS other";
        views.push((name, format!("{select} FROM t AS a {join} t AS b ON {BAND}")));
    }
    for (name, exists) in [("semi_bands", "EXISTS"), ("anti_bands", "NOT EXISTS")] {
        let later = format!("SELECT 1 FROM t AS b WHERE {BAND} AND b.ts > a.ts");
        views.push((name, format!("SELECT n, ts FROM t AS a WHERE {exists} ({later})")));
    }
    views
}

/// Views of which a part is forgotten: the left rows of ASOF joins. Right rows stay, for later left rows.
fn views_with_a_side() -> Vec<(&'static str, String)> {
    let view = |name, kind: &str, condition: &str| {
        let select = "SELECT a.n, a.ts, b.n AS m, b.ts AS other";
        (name, format!("{select} FROM t AS a {kind} JOIN t AS b ON {condition}"))
    };
    vec![
        view("last", "ASOF", "a.n = b.n AND a.ts > b.ts"),
        view("left_last", "LEFT ASOF", "a.n = b.n AND a.ts - INTERVAL '5' SECOND >= b.ts"),
        view("last_of_all", "LEFT ASOF", "a.ts > b.ts"),
        view("next", "LEFT ASOF", "a.n = b.n AND a.ts < b.ts"),
    ]
}

/// Views that need the last rows before the waterline, however old they are, where rows are only inserted.
fn views_with_last_rows() -> Vec<(&'static str, String)> {
    let window = |name, functions: &str| (name, format!("SELECT n, ts, {functions} FROM t"));
    let mut views = vec![
        window("before", "LAG(ts) OVER (PARTITION BY n ORDER BY ts) AS p"),
        window(
            "around",
            "LAG(n, 2) OVER (ORDER BY ts) AS p, LEAD(n) OVER (ORDER BY ts) AS f, n % 2 AS odd",
        ),
        window(
            "counted",
            "SUM(n) OVER (PARTITION BY n % 2 ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING) AS s",
        ),
        window(
            "backwards",
            "MAX(n) OVER (PARTITION BY n % 2 ORDER BY ts DESC ROWS BETWEEN 1 PRECEDING AND 4 FOLLOWING) AS m,
             LAG(ts) OVER (PARTITION BY n % 2 ORDER BY ts DESC) AS next",
        ),
    ];
    views.extend(views_with_a_side().into_iter().filter(|(name, _)| *name != "next"));
    views
}

fn create(engine: &Engine) {
    let table = "CREATE TABLE t (n BIGINT, ts TIMESTAMP LATENESS INTERVAL '2' MINUTES)
                 WITH ('materialized' = 'false', 'append_only' = 'false')";
    engine.execute(table).unwrap();
    create_views(engine);
}

/// The same views of a view with lateness: its table has texts for times, and so no lateness.
fn create_of_view(engine: &Engine, kind: &str) {
    let definitions = format!(
        "CREATE TABLE raw (n BIGINT, at TEXT) WITH ('materialized' = 'false', 'append_only' = 'false');
         CREATE {kind} VIEW t AS SELECT n, CAST(at AS TIMESTAMP) AS ts FROM raw;
         LATENESS t.ts INTERVAL '2' MINUTES"
    );
    engine.execute(&definitions).unwrap();
    create_views(engine);
}

fn create_views(engine: &Engine) {
    for (name, query) in views() {
        engine.execute(&format!("CREATE VIEW {name} AS {query}")).unwrap();
    }
}

/// Views of a table whose rows are only inserted.
fn create_of_insertions(engine: &Engine) {
    let table = "CREATE TABLE t (n BIGINT, ts TIMESTAMP LATENESS INTERVAL '2' MINUTES)
                 WITH ('materialized' = 'false', 'append_only' = 'true')";
    engine.execute(table).unwrap();
    for (name, query) in views_with_last_rows() {
        engine.execute(&format!("CREATE VIEW {name} AS {query}")).unwrap();
    }
}

/// The state of the views is no larger after four times as long.
fn assert_small(engine: &Engine, when: &str) {
    assert_views_small(engine, views(), when);
}

fn assert_views_small(engine: &Engine, views: Vec<(&str, String)>, when: &str) {
    for (name, _) in views {
        let rows = state_rows(engine, name);
        // About seventy rows are above the waterline. A full join has them in four states, and each worker's part of a state has
        // up to four times the rows that it needs. Forgetting nothing, each state would have 8,000 in the end.
        assert!(rows < 3_000, "{name}, {when}: {rows} rows\n{}", explained(engine, name));
    }
}

/// For each operator that can forget, what it keeps does not grow with what has passed: 2,000 rows, and then 8,000.
#[test]
fn state_that_can_no_longer_matter_is_forgotten() {
    for (workers, memory) in [(1, None), (2, Some(1 << 20))] {
        let mut builder = Engine::builder().workers(workers);
        if let Some(memory) = memory {
            builder = builder.memory(memory);
        }
        let engine = builder.open().unwrap();
        create(&engine);
        minutes(&engine, 0, 100);
        assert_small(&engine, &format!("{workers} workers, early"));
        minutes(&engine, 100, 400);
        assert_small(&engine, &format!("{workers} workers, late"));
    }
}

/// The same of the rows that stay because later ones need the last of them, across the end of an engine.
#[test]
fn of_rows_that_are_needed_however_old_the_last_ones_stay() {
    for (workers, memory) in [(1, None), (2, Some(1 << 20))] {
        let directory = tempfile::tempdir().unwrap();
        let open = || {
            let state = format!("file:{}", directory.path().display());
            let mut builder = Engine::builder().workers(workers).state(state);
            if let Some(memory) = memory {
                builder = builder.memory(memory);
            }
            builder.open().unwrap()
        };
        let engine = open();
        create_of_insertions(&engine);
        minutes(&engine, 0, 100);
        assert_views_small(&engine, views_with_last_rows(), "early");
        engine.execute("CHECKPOINT").unwrap();
        drop(engine);
        let engine = open();
        minutes(&engine, 100, 400);
        assert_views_small(&engine, views_with_last_rows(), "late");
        let explained = explained(&engine, "counted");
        assert!(
            explained.contains("but for the last 5 rows before that of each key"),
            "{explained}"
        );
    }
}

/// Left rows of an ASOF join are kept until the waterline of the right side has passed them.
#[test]
fn left_rows_whose_match_is_final_are_forgotten() {
    let engine = Engine::builder().workers(2).open().unwrap();
    create(&engine);
    for (name, query) in views_with_a_side() {
        engine.execute(&format!("CREATE VIEW {name} AS {query}")).unwrap();
    }
    minutes(&engine, 0, 400);
    for name in ["last", "left_last", "last_of_all"] {
        let rows = |side: &str| {
            let rows = query(
                &engine,
                &format!(
                    "SELECT SUM(rows) FROM alluvium.arrangements WHERE view = '{name}' AND operator = '{side}'"
                ),
            );
            rows[0].parse::<u64>().unwrap()
        };
        let (left, right) = (rows("ArrangeLeft"), rows("ArrangeRight"));
        assert!(left < 1_000, "{name}: {left} rows\n{}", explained(&engine, name));
        assert!(right >= 8_000, "{name}: {right} rows");
    }
}

/// The same where the table has no lateness, and a view of it has.
#[test]
fn state_of_views_of_a_view_with_lateness_is_forgotten() {
    for (workers, kind) in [(1, ""), (2, "LOCAL"), (3, "MATERIALIZED")] {
        let engine = Engine::builder().workers(workers).open().unwrap();
        create_of_view(&engine, kind);
        minutes_of(&engine, "raw", 0, 100);
        assert_small(&engine, &format!("{workers} workers, {kind}, early"));
        minutes_of(&engine, "raw", 100, 400);
        assert_small(&engine, &format!("{workers} workers, {kind}, late"));
    }
}

/// The same where the engine ends in between, and another resumes from its last checkpoint.
#[test]
fn what_was_forgotten_stays_forgotten_when_an_engine_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let state = format!("file:{}", directory.path().display());
        Engine::builder().workers(2).state(state).open().unwrap()
    };
    let engine = open();
    create(&engine);
    minutes(&engine, 0, 100);
    engine.execute("CHECKPOINT").unwrap();
    drop(engine);
    let engine = open();
    assert_small(&engine, "when it goes on");
    minutes(&engine, 100, 250);
    engine.execute("CHECKPOINT").unwrap();
    minutes(&engine, 250, 251);
    drop(engine);
    let engine = open();
    minutes(&engine, 251, 400);
    assert_small(&engine, "when it has gone on twice");
}

/// Pruning changes no result: views of a table with lateness show what those of one without it do, after every epoch,
/// whatever the order of rows within the lateness.
#[test]
fn forgetting_changes_no_result() {
    let views: Vec<_> = views().into_iter().chain(views_with_a_side()).collect();
    assert_same_results(&views, true);
}

/// The same where rows are only inserted.
#[test]
fn forgetting_all_but_the_last_rows_changes_no_result() {
    assert_same_results(&views_with_last_rows(), false);
}

/// Rows are deleted, too, if there are `deletions`; otherwise the tables are append-only.
fn assert_same_results(views: &[(&str, String)], deletions: bool) {
    let options = if deletions { "" } else { "WITH ('append_only' = 'true')" };
    for (workers, memory) in [(1, None), (2, Some(1 << 20)), (3, None)] {
        let mut builder = Engine::builder().workers(workers);
        if let Some(memory) = memory {
            builder = builder.memory(memory);
        }
        let engine = builder.open().unwrap();
        for (table, lateness) in [("t", "LATENESS INTERVAL '2' MINUTES"), ("p", "")] {
            engine
                .execute(&format!(
                    "CREATE TABLE {table} (n BIGINT, ts TIMESTAMP {lateness}) {options}"
                ))
                .unwrap();
            for (name, query) in views {
                let query = query
                    .replace("FROM t", &format!("FROM {table}"))
                    .replace("JOIN t ", &format!("JOIN {table} "))
                    .replace("TABLE t,", &format!("TABLE {table},"));
                let create = format!("CREATE MATERIALIZED VIEW {table}_{name} AS {query}");
                engine.execute(&create).unwrap();
            }
        }
        let mut state = workers as u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for epoch in 0..24 {
            let from = 30 * epoch;
            let row = |_| {
                let (n, at) = (random(5), from + random(100));
                format!("({n}, TIMESTAMP '2024-01-01' + INTERVAL '{at} seconds')")
            };
            let rows = (0..10).map(row).collect::<Vec<_>>().join(", ");
            let gone = random(5);
            for table in ["t", "p"] {
                let insert = format!("INSERT INTO {table} VALUES {rows}");
                engine.execute(&insert).unwrap();
                let least = format!("TIMESTAMP '2024-01-01' + INTERVAL '{} seconds'", from + 20);
                let delete = format!("DELETE FROM {table} WHERE n = {gone} AND ts >= {least}");
                if deletions {
                    engine.execute(&delete).unwrap();
                }
            }
            for (name, _) in views {
                let rows = |table| query(&engine, &format!("SELECT * FROM {table}_{name}"));
                assert_eq!(rows("t"), rows("p"), "{name}, {workers} workers, epoch {epoch}");
            }
        }
    }
}

/// Rows that NOW() has passed are forgotten. Rows that will come into view are not.
#[test]
fn what_can_not_come_back_into_view_is_forgotten() {
    let second = |second: u64| UNIX_EPOCH + Duration::from_secs(1_704_067_200 + second);
    let engine = Engine::builder().workers(2).open().unwrap();
    engine
        .execute(
            "CREATE TABLE t (n BIGINT, ts TIMESTAMP) WITH ('materialized' = 'false');
             CREATE MATERIALIZED VIEW recent AS SELECT n FROM t WHERE ts >= NOW() - INTERVAL '20' SECONDS;
             CREATE MATERIALIZED VIEW counts AS SELECT COUNT(*) AS c FROM t
                WHERE ts + INTERVAL '20' SECOND > NOW() AND ts <= NOW()",
        )
        .unwrap();
    let mut after = Vec::new();
    for now in 0..400 {
        let mut tx = engine.begin_at(second(now)).unwrap();
        let row = |at| format!("({at}, TIMESTAMP '2024-01-01' + INTERVAL '{at} seconds')");
        let rows = [now, now.saturating_sub(10), now + 10].map(row).join(", ");
        let rows = format!("SELECT * FROM (VALUES {rows}) AS v (n, ts)");
        engine.query(&rows).unwrap().into_iter().for_each(|rows| tx.insert("t", rows).unwrap());
        let epoch = tx.commit().unwrap();
        if now == 99 || now == 399 {
            engine.wait(epoch).unwrap();
            after.push(["recent", "counts"].map(|view| state_rows(&engine, view)));
            let visible = query(&engine, "SELECT COUNT(*) FROM recent");
            assert_eq!(visible, ["63"], "twenty seconds of rows, and those that come");
            let counted = query(&engine, "SELECT c FROM counts");
            assert_eq!(counted, ["50"]);
        }
    }
    assert!(after.iter().flatten().all(|rows| *rows < 400), "{after:?}");
}

/// Where rows only enter a table, the first ones of a group are all that is kept.
#[test]
fn rows_that_only_enter_are_kept_as_far_as_they_rank() {
    for memory in [None, Some(1 << 20)] {
        let mut builder = Engine::builder().workers(2);
        if let Some(memory) = memory {
            builder = builder.memory(memory);
        }
        let engine = builder.open().unwrap();
        let table = "CREATE TABLE t (n BIGINT, ts TIMESTAMP)
                     WITH ('materialized' = 'false', 'append_only' = 'true')";
        engine.execute(table).unwrap();
        let row_number = "ROW_NUMBER() OVER (PARTITION BY n ORDER BY ts DESC) AS r";
        let views = [
            ("extremes", "SELECT n, MIN(ts) AS f, MAX(ts) AS l FROM t GROUP BY n".to_owned(), 5),
            ("last", format!("SELECT * FROM (SELECT *, {row_number} FROM t) AS x WHERE r = 1"), 5),
            (
                "three",
                format!("SELECT * FROM (SELECT *, {row_number} FROM t) AS x WHERE r <= 3"),
                15,
            ),
            ("limited", "SELECT * FROM t ORDER BY ts DESC, n LIMIT 4".to_owned(), 4),
            ("first", "SELECT DISTINCT ON (n) n, ts FROM t ORDER BY n, ts".to_owned(), 5),
        ];
        for (name, query, _) in &views {
            engine.execute(&format!("CREATE VIEW {name} AS {query}")).unwrap();
        }
        for round in [0..50, 50..200] {
            minutes(&engine, round.start, round.end);
            for (name, _, rows) in &views {
                let kept = state_rows(&engine, name);
                // Rows that have just been replaced are there until they meet in a merge.
                assert!((*rows..=12 * rows).contains(&kept), "{name}: {kept} rows, not {rows}");
            }
        }
    }
}
