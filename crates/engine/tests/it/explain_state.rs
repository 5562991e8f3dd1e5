//! EXPLAIN STATE says what a view keeps, and whether and below what that is pruned, or why not and what helps.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::{Duration, Instant};

use alluvium::{Engine, Outcome};

use crate::support::{PATIENCE, engine_with, query};

const TABLES: &str = "
    CREATE TABLE bid (
        auction BIGINT, bidder BIGINT, price BIGINT, date_time TIMESTAMP LATENESS INTERVAL '4' SECONDS)
    WITH ('materialized' = 'false');
    CREATE TABLE auction (
        id BIGINT, seller BIGINT, expires TIMESTAMP, date_time TIMESTAMP LATENESS INTERVAL '4' SECONDS)
    WITH ('materialized' = 'false');
    CREATE TABLE person (id BIGINT, name TEXT, date_time TIMESTAMP) WITH ('materialized' = 'false');
    CREATE TABLE category (id BIGINT PRIMARY KEY, name TEXT);";

const ROWS: &str = "
    INSERT INTO category VALUES (10, 'ten');
    INSERT INTO person VALUES (1, 'Ann', '2024-01-01 00:00:00');
    INSERT INTO auction VALUES (10, 1, '2024-01-01 00:01:00', '2024-01-01 00:00:00');
    INSERT INTO bid VALUES (10, 1, 100, '2024-01-01 00:00:05'), (10, 2, 110, '2024-01-01 00:00:06');
    INSERT INTO bid VALUES (10, 1, 120, '2024-01-01 00:01:07');
    INSERT INTO auction VALUES (11, 1, '2024-01-01 00:02:00', '2024-01-01 00:01:08');";

/// The output of `EXPLAIN STATE` for a view.
fn explained(engine: &Engine, view: &str) -> String {
    match engine.session().execute(&format!("EXPLAIN STATE {view}")).unwrap().pop() {
        Some(Outcome::Text(text)) => text,
        other => panic!("it is a text, not {other:?}"),
    }
}

/// A text without fingerprints, numbers of rows and bytes, and what merges have still to drop.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("about ")) {
        let words: Vec<&str> = line.split_inclusive(' ').collect();
        for (number, word) in words.iter().enumerate() {
            let bare = word.trim_end_matches([' ', ':']);
            let next = words.get(number + 1).map_or("", |next| next.trim_end_matches([' ', ',']));
            let is_fingerprint = bare.len() == 8 && bare.bytes().all(|it| it.is_ascii_hexdigit());
            let is_number = !bare.is_empty() && bare.bytes().all(|it| it.is_ascii_digit());
            let is_count = is_number && ["row", "rows", "bytes"].contains(&next);
            match is_fingerprint || is_count {
                true => shown.push_str(&word.replace(bare, "#")),
                false => shown.push_str(word),
            }
        }
        shown.push('\n');
    }
    shown.replace("# row,", "# rows,")
}

/// Rows that raise no waterline. With them the states learn of the waterlines that others have raised.
const MORE_ROWS: &str = "
    INSERT INTO person VALUES (1, 'Ann', '2024-01-01 00:00:00');
    INSERT INTO bid VALUES (10, 1, 120, '2024-01-01 00:01:07');
    INSERT INTO auction VALUES (11, 1, '2024-01-01 00:02:00', '2024-01-01 00:01:08');";

/// Asserts the report on a view once the waterlines have reached all states.
fn assert_says(engine: &Engine, view: &str, expected: &str) {
    let expected = expected.lines().map(|line| format!("{line}\n")).collect::<String>();
    let begun = Instant::now();
    loop {
        engine.execute(MORE_ROWS).unwrap();
        engine.wait(engine.progress().committed).unwrap();
        let shown = without_numbers(&explained(engine, view));
        if shown == expected {
            return;
        }
        assert!(begun.elapsed() < PATIENCE / 10, "{view}:\n{shown}\nis not\n{expected}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asserts the report on the view `v` among those that some statements create.
fn assert_explained(statements: &str, expected: &str) {
    let engine = engine_with(1, TABLES);
    engine.execute(statements).unwrap();
    engine.execute(ROWS).unwrap();
    assert_says(&engine, "v", expected);
}

#[test]
fn a_group_by_a_time_is_pruned() {
    assert_explained(
        "CREATE VIEW v AS SELECT date_time, COUNT(*) AS c FROM bid GROUP BY date_time",
        "aggregate count(*) by date_time (GROUP BY at line 1, column 68)\n\
         \x20 groups in aggregate.1 #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:01:03, from the waterline of bid.date_time",
    );
}

#[test]
fn a_group_by_a_window_of_a_time_is_pruned() {
    assert_explained(
        "CREATE MATERIALIZED VIEW v AS\nSELECT DATE_TRUNC('minute', date_time) AS minute, bidder, MAX(price) AS most\n\
         FROM bid\nGROUP BY 1, bidder",
        "the view\n\
         \x20 contents in rows #: # rows, # bytes in memory\n\
         \x20   never pruned: a materialized view keeps its rows, to be read\n\
         \x20   what helps: leave out MATERIALIZED if nothing reads them, or select fewer rows\n\
         aggregate max(price) by key1, bidder (GROUP BY at line 4, column 10)\n\
         \x20 groups in aggregate.1 #: # rows, # bytes in memory\n\
         \x20   pruned: date_trunc('minute', date_time) >= 2024-01-01T00:01:00, from the waterline of bid.date_time",
    );
}

#[test]
fn a_group_by_something_else_is_not() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT bidder, COUNT(*) AS c\nFROM bid\nGROUP BY bidder",
        "aggregate count(*) by bidder (GROUP BY at line 4, column 10)\n\
         \x20 groups in aggregate.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: the key has no time, so a later row can change any group\n\
         \x20   what helps: add a time that has LATENESS to the key, or DATE_TRUNC or DATE_BIN of it",
    );
}

#[test]
fn a_group_by_what_need_not_rise_is_not() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT DATE_TRUNC('day', date_time - (expires - date_time)) AS day, COUNT(*) AS c\n\
         FROM auction\nGROUP BY 1",
        "aggregate count(*) by key1 (GROUP BY at line 4, column 10)\n\
         \x20 groups in aggregate.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: date_time - interval(expires - date_time) need not rise with time (at line 2, column 8)\n\
         \x20   what helps: use the time itself, or DATE_TRUNC or DATE_BIN of it, or add a constant",
    );
}

#[test]
fn a_join_with_a_band_is_pruned() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT a.id, b.price\nFROM auction AS a\nJOIN bid AS b ON a.id = b.auction\n\
         AND b.date_time BETWEEN a.date_time AND a.expires",
        "join on id = auction (the join at line 4, column 18)\n\
         \x20 left rows in join.1.left #: # rows, # bytes in memory\n\
         \x20   pruned: expires >= 2024-01-01T00:01:03, from the waterline of bid.date_time\n\
         \x20 right rows in join.1.right #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:01:04, from the waterline of auction.date_time",
    );
}

#[test]
fn a_join_without_a_time_is_not() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT a.id, b.price\nFROM auction AS a\nJOIN bid AS b ON a.id = b.auction",
        "join on id = auction (the join at line 4, column 18)\n\
         \x20 left rows in index #: # rows, # bytes in memory\n\
         \x20   never pruned: its rows have no time, so a later row of the other side can match any of them\n\
         \x20   what helps: select a time that has LATENESS, and bound it by the other side's in ON\n\
         \x20 right rows in index #: # rows, # bytes in memory\n\
         \x20   never pruned: its rows have no time, so a later row of the other side can match any of them\n\
         \x20   what helps: select a time that has LATENESS, and bound it by the other side's in ON",
    );
}

#[test]
fn a_join_with_a_table_without_lateness_is_pruned_on_one_side() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT p.name, a.id\nFROM person AS p\nJOIN auction AS a ON p.id = a.seller\n\
         AND a.date_time BETWEEN p.date_time AND p.date_time + INTERVAL '10' SECOND",
        "join on id = seller (the join at line 4, column 22)\n\
         \x20 left rows in join.1.left #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:00:54, from the waterline of auction.date_time\n\
         \x20 right rows in index #: # rows, # bytes in memory\n\
         \x20   never pruned: person.date_time has no LATENESS (at line 5, column 25)\n\
         \x20   what helps: add LATENESS to person.date_time in CREATE TABLE",
    );
}

#[test]
fn an_outer_join_on_a_time_is_pruned_and_another_is_not() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT a.id, b.price\nFROM auction AS a\nLEFT JOIN bid AS b\n\
         ON a.date_time = b.date_time AND a.seller < b.bidder",
        "left join on date_time = date_time where seller < bidder (the join at line 5, column 4)\n\
         \x20 left rows in outer_join.1.left #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:01:03, from the least of the waterline of auction.date_time and the waterline of bid.date_time\n\
         \x20 right rows in outer_join.1.right #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:01:04, from the waterline of auction.date_time\n\
         \x20 rows with partners in outer_join.1 #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:01:03, from the least of the waterline of auction.date_time and the waterline of bid.date_time",
    );
    assert_explained(
        "CREATE VIEW v AS\nSELECT a.id, b.price\nFROM auction AS a\nLEFT JOIN bid AS b\n\
         ON a.id = b.auction AND b.date_time < a.expires",
        "left join on id = auction where date_time < expires (the join at line 5, column 4)\n\
         \x20 left rows in index #: # rows, # bytes in memory\n\
         \x20   never pruned: auction.expires has no LATENESS (at line 5, column 39)\n\
         \x20   what helps: add LATENESS to auction.expires in CREATE TABLE\n\
         \x20 right rows in index #: # rows, # bytes in memory\n\
         \x20   never pruned: a later row of the other side can match a row of any time\n\
         \x20   what helps: bound the times of both sides in ON, as in b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 hour'\n\
         \x20 rows with partners in outer_join.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: auction.expires has no LATENESS (at line 5, column 39)\n\
         \x20   what helps: add LATENESS to auction.expires in CREATE TABLE",
    );
}

#[test]
fn a_distinct_is_pruned_by_a_time_wherever_it_stands() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT DISTINCT bidder, date_time FROM bid",
        "distinct (DISTINCT at line 2, column 1)\n\
         \x20 rows in distinct.1 #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:01:03, from the waterline of bid.date_time",
    );
    assert_explained(
        "CREATE VIEW v AS\nSELECT DISTINCT name, date_time FROM person",
        "distinct (DISTINCT at line 2, column 1)\n\
         \x20 rows in distinct.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: person.date_time has no LATENESS (at line 2, column 23)\n\
         \x20   what helps: add LATENESS to person.date_time in CREATE TABLE",
    );
    assert_explained(
        "CREATE VIEW v AS\nSELECT DISTINCT auction, bidder FROM bid",
        "distinct (DISTINCT at line 2, column 1)\n\
         \x20 rows in distinct.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: the rows have no time, so any of them can come again\n\
         \x20   what helps: select a time that has LATENESS as well",
    );
}

#[test]
fn a_distinct_is_pruned_by_a_time_behind_a_text() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT DISTINCT CAST(bidder AS TEXT) AS who, date_time FROM bid",
        "distinct (DISTINCT at line 2, column 1)\n\
         \x20 rows in distinct.1 #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:01:03, from the waterline of bid.date_time",
    );
}

#[test]
fn a_top_and_a_window_are_pruned_by_a_time_in_their_key() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT * FROM (\n  SELECT bidder, price,\n    ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS r\n\
         \x20 FROM bid) AS x\nWHERE r <= 2",
        "first # rows with numbers in order of price desc by auction (PARTITION BY at line 4, column 37)\n\
         \x20 rows in top.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: the key has no time, so a later row can change any group\n\
         \x20   what helps: add a time that has LATENESS to the key, or DATE_TRUNC or DATE_BIN of it",
    );
    assert_explained(
        "CREATE VIEW v AS\nSELECT bidder, SUM(price) OVER (PARTITION BY DATE_BIN(INTERVAL '10' SECOND, date_time)\n\
         \x20 ORDER BY price) AS s\nFROM bid",
        "window sum(input6) in order of price by key5 (PARTITION BY at line 2, column 46)\n\
         \x20 rows in window.1 #: # rows, # bytes in memory\n\
         \x20   pruned: date_bin('10.000000000 secs', date_time) >= 2024-01-01T00:01:00, from the waterline of bid.date_time",
    );
}

#[test]
fn a_window_is_pruned_by_the_time_of_its_order_as_far_as_its_ranges_reach() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT bidder, COUNT(*) OVER (PARTITION BY auction ORDER BY date_time\n\
         \x20 RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND INTERVAL '3' SECOND FOLLOWING) AS c\nFROM bid",
        "window count(1) in order of date_time by auction (PARTITION BY at line 2, column 44)\n\
         \x20 rows in window.1 #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:00:50, from the waterline of bid.date_time",
    );
    assert_explained(
        "CREATE VIEW v AS\nSELECT bidder, LAG(price) OVER (PARTITION BY auction ORDER BY date_time) AS p\nFROM bid",
        "window lag(price) in order of date_time by auction (PARTITION BY at line 2, column 46)\n\
         \x20 rows in window.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: rows are counted from row to row, and a row that is deleted moves all of them\n\
         \x20   what helps: declare the table WITH ('append_only' = 'true') if nothing is deleted, or use RANGE frames of fixed length, or partition by DATE_TRUNC or DATE_BIN of a time that has LATENESS",
    );
    assert_explained(
        "CREATE VIEW v AS\nSELECT bidder, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY date_time) AS r\nFROM bid",
        "window row_number() in order of date_time by auction (PARTITION BY at line 2, column 48)\n\
         \x20 rows in window.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: a function of the window sees rows however old they are\n\
         \x20   what helps: use RANGE frames of fixed length, or partition by DATE_TRUNC or DATE_BIN of a time that has LATENESS",
    );
    assert_explained(
        "CREATE VIEW v AS\nSELECT id, COUNT(*) OVER (PARTITION BY name ORDER BY date_time\n\
         \x20 RANGE INTERVAL '10' SECOND PRECEDING) AS c\nFROM person",
        "window count(1) in order of date_time by name (PARTITION BY at line 2, column 40)\n\
         \x20 rows in window.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: person.date_time has no LATENESS (at line 2, column 54)\n\
         \x20   what helps: add LATENESS to person.date_time in CREATE TABLE",
    );
}

#[test]
fn a_union_is_pruned_if_all_of_its_sides_have_lateness() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT date_time, COUNT(*) AS c FROM (\n  SELECT date_time FROM bid UNION ALL\n  SELECT date_time FROM auction) AS u\nGROUP BY date_time",
        "aggregate count(*) by date_time (GROUP BY at line 5, column 10)\n\
         \x20 groups in aggregate.1 #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:01:03, from the least of the waterline of bid.date_time and the waterline of auction.date_time",
    );
    assert_explained(
        "CREATE VIEW v AS\nSELECT date_time, COUNT(*) AS c FROM (\n  SELECT date_time FROM bid UNION ALL\n  SELECT date_time FROM person) AS u\nGROUP BY date_time",
        "aggregate count(*) by date_time (GROUP BY at line 5, column 10)\n\
         \x20 groups in aggregate.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: person.date_time has no LATENESS (at line 4, column 25)\n\
         \x20   what helps: add LATENESS to person.date_time in CREATE TABLE",
    );
}

#[test]
fn a_table_keeps_its_contents() {
    assert_explained(
        "CREATE VIEW v AS\nSELECT c.name, b.price\nFROM bid AS b JOIN category AS c ON b.auction = c.id",
        "join on auction = id (the join at line 3, column 37)\n\
         \x20 left rows in index #: # rows, # bytes in memory\n\
         \x20   never pruned: its rows have no time, so a later row of the other side can match any of them\n\
         \x20   what helps: select a time that has LATENESS, and bound it by the other side's in ON\n\
         \x20 right rows in category: # rows, # bytes in memory\n\
         \x20   never pruned: a table keeps its contents, whoever reads them\n\
         \x20   what helps: if only views read it, say 'materialized' = 'false' in CREATE TABLE, without a PRIMARY KEY",
    );
}

#[test]
fn the_states_of_views_that_are_expanded_are_found_in_their_own_text() {
    assert_explained(
        "CREATE LOCAL VIEW best AS\nSELECT auction, MAX(price) AS price\nFROM bid\nGROUP BY auction;
         CREATE VIEW v AS SELECT price, COUNT(*) AS c FROM best GROUP BY price",
        "aggregate count(*) by price (GROUP BY at line 1, column 65)\n\
         \x20 groups in aggregate.2 #: # rows, # bytes in memory\n\
         \x20   never pruned: the key has no time, so a later row can change any group\n\
         \x20   what helps: add a time that has LATENESS to the key, or DATE_TRUNC or DATE_BIN of it\n\
         \x20 aggregate max(price) by auction (GROUP BY at line 4, column 10 of best)\n\
         \x20   groups in aggregate.1 #: # rows, # bytes in memory\n\
         \x20     never pruned: the key has no time, so a later row can change any group\n\
         \x20     what helps: add a time that has LATENESS to the key, or DATE_TRUNC or DATE_BIN of it",
    );
}

/// An index keeps what the reader needs that needs the most: a reader that needs less keeps its own.
#[test]
fn of_two_readers_of_the_same_rows_one_needs_all() {
    let engine = engine_with(1, TABLES);
    engine
        .execute(
            "CREATE VIEW v AS\nSELECT a.id, b.price FROM auction AS a JOIN bid AS b ON a.id = b.auction
             AND b.date_time BETWEEN a.date_time AND a.expires;
             CREATE VIEW w AS\nSELECT a.id, b.date_time, a.date_time AS start, a.expires, b.price
             FROM auction AS a JOIN bid AS b ON a.id = b.auction;
             CREATE VIEW x AS\nSELECT a.id, MAX(b.date_time) AS last, MAX(a.date_time) AS start, MAX(a.expires) AS e, SUM(b.price) AS p
             FROM auction AS a JOIN bid AS b ON a.id = b.auction GROUP BY a.id",
        )
        .unwrap();
    engine.execute(ROWS).unwrap();
    engine.wait(engine.progress().committed).unwrap();
    assert_says(
        &engine,
        "v",
        "join on id = auction (the join at line 2, column 57)\n\
         \x20 left rows in join.1.left #: # rows, # bytes in memory\n\
         \x20   pruned: expires >= 2024-01-01T00:01:03, from the waterline of bid.date_time\n\
         \x20 right rows in join.1.right #: # rows, # bytes in memory\n\
         \x20   pruned: date_time >= 2024-01-01T00:01:04, from the waterline of auction.date_time",
    );
    assert_says(
        &engine,
        "w",
        "join on id = auction (the join at line 3, column 49)\n\
         \x20 left rows in index #: # rows, # bytes in memory\n\
         \x20   never pruned: a later row of the other side can match a row of any time\n\
         \x20   what helps: bound the times of both sides in ON, as in b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 hour'\n\
         \x20 right rows in index #: # rows, # bytes in memory\n\
         \x20   never pruned: a later row of the other side can match a row of any time\n\
         \x20   what helps: bound the times of both sides in ON, as in b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 hour'",
    );
    assert_says(
        &engine,
        "x",
        "aggregate max(date_time#1), max(date_time#2), max(expires), sum(price) by id (GROUP BY at line 3, column 75)\n\
         \x20 groups in aggregate.1 #: # rows, # bytes in memory\n\
         \x20   never pruned: the key has no time, so a later row can change any group\n\
         \x20   what helps: add a time that has LATENESS to the key, or DATE_TRUNC or DATE_BIN of it\n\
         \x20 join on id = auction (the join at line 3, column 49)\n\
         \x20   left rows in index #: # rows, # bytes in memory\n\
         \x20     never pruned: a later row of the other side can match a row of any time\n\
         \x20     what helps: bound the times of both sides in ON, as in b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 hour'\n\
         \x20   right rows in index #: # rows, # bytes in memory\n\
         \x20     never pruned: a later row of the other side can match a row of any time\n\
         \x20     what helps: bound the times of both sides in ON, as in b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 hour'",
    );
    let states = query(
        &engine,
        "SELECT DISTINCT CASE WHEN view LIKE 'index%' THEN 'index' ELSE view END AS view, id, bound, reason
         FROM alluvium.arrangements WHERE rows > 0",
    );
    let any_time = "a later row of the other side can match a row of any time: bound the times of both sides in ON, as in \
                    b.ts BETWEEN a.ts AND a.ts + INTERVAL '1 hour'";
    let expected = [
        "category rows NULL a table keeps its contents, whoever reads them: if only views read it, say 'materialized' = \
         'false' in CREATE TABLE, without a PRIMARY KEY"
            .to_owned(),
        format!("index rows NULL w: {any_time}; x: {any_time}"),
        "v join.1.left 2024-01-01T00:01:03 NULL".to_owned(),
        "v join.1.right 2024-01-01T00:01:04 NULL".to_owned(),
        "x aggregate.1 NULL the key has no time, so a later row can change any group: add a time that has LATENESS to the \
         key, or DATE_TRUNC or DATE_BIN of it"
            .to_owned(),
    ];
    assert_eq!(states, expected);
}

/// The numbers are those of `alluvium.arrangements`, and rows below the bound are told apart.
#[test]
fn rows_and_bytes_are_those_of_all_workers() {
    let engine = engine_with(2, TABLES);
    engine
        .execute("CREATE VIEW v AS SELECT date_time, bidder, COUNT(*) AS c FROM bid GROUP BY 1, 2")
        .unwrap();
    for second in 0..50 {
        let row = |bidder| format!("(1, {bidder}, 5, '2024-01-01 00:00:{second:02}')");
        let rows: Vec<String> = (0..100).map(row).collect();
        engine.execute(&format!("INSERT INTO bid VALUES {}", rows.join(", "))).unwrap();
    }
    let begun = Instant::now();
    loop {
        let rows: Vec<String> =
            (0..100).map(|bidder| format!("(1, {bidder}, 5, '2024-01-01 00:00:49')")).collect();
        engine.execute(&format!("INSERT INTO bid VALUES {}", rows.join(", "))).unwrap();
        engine.wait(engine.progress().committed).unwrap();
        let held = query(
            &engine,
            "SELECT SUM(rows), SUM(memory_bytes), MIN(bound), SUM(rows_below), COUNT(DISTINCT worker)
             FROM alluvium.arrangements WHERE view = 'v'",
        );
        let text = explained(&engine, "v");
        let parts: Vec<&str> = held[0].split(' ').collect();
        let [rows, bytes, bound, below, workers] = parts[..] else { panic!("{held:?}") };
        assert_eq!(workers, "2");
        let counted = |text: &str| text.parse::<u64>().unwrap_or_default();
        let is_said = text.contains(&format!("{rows} rows, {bytes} bytes in memory"))
            && text.contains(&format!(
                "pruned: date_time >= {bound}, from the waterline of bid.date_time"
            ))
            && text.contains(&format!(
                "about {} rows (",
                counted(rows) - counted(below).min(counted(rows))
            ))
            && bound == "2024-01-01T00:00:45";
        if is_said {
            // Merges have dropped most of what is below.
            assert!(counted(rows) < 5_000, "{text}");
            return;
        }
        // Workers may have advanced in between.
        assert!(begun.elapsed() < PATIENCE, "{held:?}\n{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_date_is_pruned_by_another_one_plus_an_interval() {
    let tables = "
        CREATE TABLE a (day DATE LATENESS INTERVAL '1' DAY, x BIGINT) WITH ('materialized' = 'false');
        CREATE TABLE b (day DATE LATENESS INTERVAL '1' DAY, y BIGINT) WITH ('materialized' = 'false');
        CREATE MATERIALIZED VIEW v AS
            SELECT x, y FROM a JOIN b ON x = y AND b.day BETWEEN a.day AND a.day + INTERVAL '2' DAYS;";
    let text = without_numbers(&explained(&engine_with(1, tables), "v"));
    assert!(text.contains("pruned by day, from the waterline of b.day"), "{text}");
    assert!(text.contains("pruned by day, from the waterline of a.day"), "{text}");
}
