//! Groups are forgotten by a time that follows from their key.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use alluvium::Engine;

use crate::support::query;

/// Auctions and bids. An auction's end follows from its key.
fn tables(prefix: &str, key: &str, options: &str, lateness: &str) -> String {
    format!(
        "CREATE TABLE {prefix}auction (id BIGINT {key}, ts TIMESTAMP {lateness}, expires TIMESTAMP) {options};
         CREATE TABLE {prefix}bid (auction BIGINT, price BIGINT, ts TIMESTAMP {lateness}) {options};"
    )
}

const PROMISED: &str = "PRIMARY KEY NOT ENFORCED";
const ENFORCED: &str = "PRIMARY KEY";
const NOTHING_KEPT: &str = "WITH ('materialized' = 'false', 'append_only' = 'true')";
const LATENESS: &str = "LATENESS INTERVAL '1' MINUTE";
const VIEWS: [&str; 3] = ["best", "first", "second"];

/// Groups whose key has no time, the first rows of such groups, and those without the time.
fn views(prefix: &str, kind: &str) -> String {
    let pairs = format!(
        "FROM {prefix}auction AS a JOIN {prefix}bid AS b ON a.id = b.auction
         WHERE b.ts BETWEEN a.ts AND a.expires"
    );
    let place = "ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ts) AS place";
    format!(
        "CREATE {kind} VIEW {prefix}best AS SELECT a.id, MAX(b.price) AS price, COUNT(*) AS bids {pairs} GROUP BY a.id;
         CREATE {kind} VIEW {prefix}first AS
         SELECT * FROM (SELECT a.*, b.price, {place} {pairs}) AS r WHERE place <= 1;
         CREATE {kind} VIEW {prefix}second AS
         SELECT id, price, place FROM (SELECT a.id, b.price, {place} {pairs}) AS r WHERE place BETWEEN 1 AND 2"
    )
}

fn at(second: u64) -> String {
    format!("TIMESTAMP '2024-01-01' + INTERVAL '{second} seconds'")
}

/// Ten auctions of half a minute a minute, with two bids for each, and one for an auction that has ended.
fn minutes(engine: &Engine, prefix: &str, from: u64, to: u64) {
    for minute in from..to {
        let ids = || 10 * minute..10 * minute + 10;
        let start = |id: u64| 60 * minute + id % 10;
        let auctions = ids().map(|id| format!("({id}, {}, {})", at(start(id)), at(start(id) + 30)));
        let bids = ids().flat_map(|id| {
            let bid = |auction: u64, price: u64, second: u64| {
                format!("({auction}, {price}, {})", at(second))
            };
            [
                bid(id, id % 7, start(id) + 5),
                bid(id, id % 5, start(id) + 20),
                bid(id.saturating_sub(20), 9, start(id) + 1),
            ]
        });
        let auctions = auctions.collect::<Vec<_>>().join(", ");
        let bids = bids.collect::<Vec<_>>().join(", ");
        engine.execute(&format!("INSERT INTO {prefix}auction VALUES {auctions}")).unwrap();
        engine.execute(&format!("INSERT INTO {prefix}bid VALUES {bids}")).unwrap();
        if minute % 8 == 0 {
            engine.wait(engine.progress().committed).unwrap();
        }
    }
    engine.wait(engine.progress().committed).unwrap();
}

fn assert_small(engine: &Engine, when: &str) {
    for view in VIEWS {
        let rows = query(
            engine,
            &format!(
                "SELECT COALESCE(SUM(rows), 0) FROM alluvium.arrangements
                 WHERE view = '{view}' AND operator <> 'Contents'"
            ),
        );
        let rows: u64 = rows[0].parse().unwrap();
        // Groups alone would be 3,000 in the end.
        assert!(rows < 1_500, "{view}, {when}: {rows} rows");
    }
}

#[test]
fn groups_are_forgotten_by_what_follows_from_their_key() {
    for (workers, memory) in [(1, None), (2, Some(1 << 20)), (3, None)] {
        let engine = Engine::builder().workers(workers).memory(memory).open().unwrap();
        engine.execute(&tables("", PROMISED, NOTHING_KEPT, LATENESS)).unwrap();
        engine.execute(&views("", "")).unwrap();
        minutes(&engine, "", 0, 300);
        assert_small(&engine, &format!("{workers} workers"));
    }
}

#[test]
fn what_was_forgotten_by_a_key_stays_forgotten_when_an_engine_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let state = format!("file:{}", directory.path().display());
        Engine::builder().workers(2).memory(1 << 20).state(state).open().unwrap()
    };
    let engine = open();
    engine.execute(&tables("", PROMISED, NOTHING_KEPT, LATENESS)).unwrap();
    engine.execute(&views("", "")).unwrap();
    minutes(&engine, "", 0, 100);
    engine.execute("CHECKPOINT").unwrap();
    minutes(&engine, "", 100, 110);
    drop(engine);
    let engine = open();
    minutes(&engine, "", 110, 300);
    assert_small(&engine, "when it goes on");
}

/// Views show the same with lateness as without, whether the key is enforced or promised.
#[test]
fn forgetting_by_a_key_changes_no_result() {
    for (workers, key, options) in
        [(1, ENFORCED, ""), (2, PROMISED, NOTHING_KEPT), (3, ENFORCED, "")]
    {
        let engine = Engine::builder().workers(workers).memory(1 << 20).open().unwrap();
        for (prefix, lateness) in [("", LATENESS), ("p_", "")] {
            engine.execute(&tables(prefix, key, options, lateness)).unwrap();
            engine.execute(&views(prefix, "MATERIALIZED")).unwrap();
        }
        for minute in 0..30 {
            for prefix in ["", "p_"] {
                minutes(&engine, prefix, minute, minute + 1);
                if options.is_empty() {
                    // Of what is in time, an auction ends earlier, a bid is taken back, and an auction goes.
                    let id = 10 * minute;
                    let start = at(60 * minute);
                    let change = format!(
                        "UPDATE {prefix}auction SET expires = ts + INTERVAL '10' SECOND WHERE id = {};
                         DELETE FROM {prefix}bid WHERE auction = {} AND ts >= {start};
                         DELETE FROM {prefix}auction WHERE id = {}",
                        id + 3, id + 4, id + 5
                    );
                    engine.execute(&change).unwrap();
                }
            }
            for view in VIEWS {
                let rows = |prefix| query(&engine, &format!("SELECT * FROM {prefix}{view}"));
                assert_eq!(rows(""), rows("p_"), "{view}, {workers} workers, minute {minute}");
            }
        }
    }
}

/// Where rows break the promise, each of them has a group of its own, which is right in itself.
#[test]
fn a_broken_promise_makes_several_groups_of_one() {
    for workers in [1, 3] {
        let engine = Engine::builder().workers(workers).open().unwrap();
        engine.execute(&tables("", PROMISED, NOTHING_KEPT, LATENESS)).unwrap();
        engine.execute(&views("", "MATERIALIZED")).unwrap();
        let change =
            format!(
            "INSERT INTO auction VALUES (1, {0}, {1}), (1, {0}, {2}), (1, {0}, {2}), (2, {0}, {1});
             INSERT INTO bid VALUES (1, 5, {0}), (1, 8, {1}), (1, 9, {2}), (2, 3, {1})",
            at(0), at(10), at(20)
        );
        engine.execute(&change).unwrap();
        let expected = ["1 8 2", "1 9 6", "2 3 1"];
        assert_eq!(query(&engine, "SELECT * FROM best ORDER BY id, price"), expected);
        minutes(&engine, "", 1, 100);
        let still = "SELECT * FROM best WHERE id < 10 ORDER BY id, price";
        assert_eq!(query(&engine, still), expected);
    }
}
