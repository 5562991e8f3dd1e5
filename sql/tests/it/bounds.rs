//! Which state of a view is pruned, and why other state is not.

use alluvium_sql::physical::Output;
use alluvium_sql::plan::KeptBy;
use alluvium_sql::plan::{ViewText, explain_state};

use crate::fixture::Definitions;

const AUCTIONS: &str = "
    CREATE TABLE auction (
        id BIGINT, seller BIGINT, category BIGINT, expires TIMESTAMP,
        date_time TIMESTAMP LATENESS INTERVAL '4' SECONDS);
    CREATE TABLE bid (
        auction BIGINT, bidder BIGINT, price BIGINT,
        date_time TIMESTAMP LATENESS INTERVAL '4' SECONDS);
    CREATE TABLE quote (
        auction BIGINT, price BIGINT, date_time TIMESTAMP LATENESS INTERVAL '4' SECONDS)
        WITH ('append_only' = 'true');
    CREATE TABLE person (id BIGINT, name TEXT, date_time TIMESTAMP);
    CREATE TABLE reading (sensor INT, number BIGINT LATENESS 100, day DATE LATENESS INTERVAL '1' DAY, at INT)";

/// The reported operators of a query that keep state.
fn kept(query: &str) -> Vec<KeptBy> {
    let mut definitions = Definitions::flights();
    definitions.define(AUCTIONS);
    kept_in(&mut definitions, query)
}

fn kept_in(definitions: &mut Definitions, query: &str) -> Vec<KeptBy> {
    let view = definitions.view(query).unwrap();
    let text = format!("CREATE VIEW v AS\n{query}");
    let texts = [ViewText { name: "v", text: &text }];
    explain_state(&view.plan, Output::Changes, &texts, &|_| false).unwrap()
}

/// The reported states of a query, a state a line.
fn states(query: &str) -> Vec<String> {
    lines(&kept(query))
}

fn lines(kept: &[KeptBy]) -> Vec<String> {
    let states = kept.iter().flat_map(|by| &by.states).filter(|state| state.what != "contents");
    states.map(|state| format!("{}: {}", state.what, state.keeping)).collect()
}

fn assert_states(query: &str, expected: &[&str]) {
    assert_eq!(states(query), expected, "{query}");
}

#[test]
fn groups_by_a_time_are_pruned_by_it() {
    for key in [
        "date_time",
        "DATE_TRUNC('hour', date_time)",
        "DATE_BIN(INTERVAL '10' SECOND, date_time)",
        "CAST(date_time AS DATE)",
        "date_time - INTERVAL '1' HOUR",
    ] {
        let said = states(&format!("SELECT bidder, {key} AS k, COUNT(*) FROM bid GROUP BY 1, 2"));
        assert_eq!(said.len(), 1, "{key}: {said:?}");
        assert!(said[0].starts_with("groups: pruned by "), "{key}: {said:?}");
        assert!(said[0].ends_with(", from the waterline of bid.date_time"), "{key}: {said:?}");
    }
    let said = states("SELECT number + 1 AS n, MAX(at) FROM reading GROUP BY 1");
    assert_eq!(said, ["groups: pruned by number + 1, from the waterline of reading.number"]);
}

#[test]
fn a_group_that_does_not_rise_with_time_is_kept() {
    for (query, reason) in [
        ("SELECT bidder, COUNT(*) FROM bid GROUP BY 1", "the key has no time"),
        ("SELECT COUNT(*) FROM bid", "all rows are one group"),
        ("SELECT date_time, COUNT(*) FROM person GROUP BY 1", "person.date_time has no LATENESS"),
        ("SELECT 0 - number AS n, COUNT(*) FROM reading GROUP BY 1", "the key has no time"),
        (
            "SELECT DATE_TRUNC('day', date_time - (expires - date_time)) AS d, COUNT(*) FROM auction GROUP BY 1",
            "need not rise with time",
        ),
        // A month has not always the same length: a later time may become an earlier one.
        (
            "SELECT date_time - INTERVAL '1' MONTH AS t, COUNT(*) FROM bid GROUP BY 1",
            "need not rise with time",
        ),
    ] {
        let said = states(query);
        assert_eq!(said.len(), 1, "{query}: {said:?}");
        assert!(said[0].starts_with("groups: never pruned: "), "{query}: {said:?}");
        assert!(said[0].contains(reason), "{query}: {said:?}");
    }
}

#[test]
fn joins_are_pruned_through_their_conditions() {
    // The winning bids of auctions: an auction is needed until it has expired, a bid until no auction begins before it.
    assert_states(
        "SELECT a.id, b.price FROM auction AS a JOIN bid AS b ON a.id = b.auction
         AND b.date_time BETWEEN a.date_time AND a.expires",
        &[
            "left rows: pruned by expires, from the waterline of bid.date_time",
            "right rows: pruned by date_time, from the waterline of auction.date_time",
        ],
    );
    // A band.
    let said = states(
        "SELECT a.id, b.price FROM auction AS a JOIN bid AS b ON a.id = b.auction
         AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL '1' HOUR",
    );
    assert!(said.iter().all(|state| state.contains(": pruned by ")), "{said:?}");
    // An equality of times.
    let said = states(
        "SELECT b.price, m.price AS most FROM bid AS b JOIN
         (SELECT MAX(price) AS price, DATE_BIN(INTERVAL '10' SECOND, date_time) AS start FROM bid GROUP BY 2) AS m
         ON b.price = m.price AND DATE_BIN(INTERVAL '10' SECOND, b.date_time) = m.start",
    );
    assert!(said.iter().all(|state| state.contains(": pruned by ")), "{said:?}");
    // People register whenever they like.
    assert_states(
        "SELECT p.name, a.id FROM person AS p JOIN auction AS a ON p.id = a.seller
         AND a.date_time BETWEEN p.date_time AND p.date_time + INTERVAL '10' SECOND",
        &[
            "left rows: pruned by date_time, from the waterline of auction.date_time",
            "right rows: never pruned: person.date_time has no LATENESS (at line 3, column 34)",
        ],
    );
}

#[test]
fn a_materialized_view_has_the_bounds_of_its_query_and_final_rows_that_of_their_column() {
    let mut definitions = Definitions::flights();
    definitions.define(AUCTIONS);
    definitions.define(
        "CREATE MATERIALIZED VIEW hourly AS
            SELECT DATE_TRUNC('hour', date_time) AS hour, date_time, auction, COUNT(*) AS c FROM bid GROUP BY 1, 2, 3;
         CREATE MATERIALIZED VIEW closed WITH ('emit_final' = 'hour') AS SELECT * FROM hourly",
    );
    let mut said = |query: &str| lines(&kept_in(&mut definitions, query));
    for view in ["hourly", "closed"] {
        let said = said(&format!("SELECT hour, SUM(c) FROM {view} GROUP BY 1"));
        assert_eq!(said, ["groups: pruned by hour, from the waterline of bid.date_time"], "{view}");
    }
    assert_eq!(
        said("SELECT date_time, SUM(c) FROM hourly GROUP BY 1"),
        ["groups: pruned by date_time, from the waterline of bid.date_time"]
    );
    let said = said("SELECT date_time, SUM(c) FROM closed GROUP BY 1");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("never pruned: rows come when they are final by \"hour\""),
        "{said:?}"
    );
}

#[test]
fn the_bound_of_a_union_is_the_least() {
    let said = states(
        "SELECT date_time, COUNT(*) FROM (SELECT date_time FROM bid UNION ALL SELECT date_time FROM auction) AS u
         GROUP BY 1",
    );
    let least =
        "the least of the waterline of bid.date_time and the waterline of auction.date_time";
    assert_eq!(said, [format!("groups: pruned by date_time, from {least}")]);
    let said = states(
        "SELECT date_time, COUNT(*) FROM (SELECT date_time FROM bid UNION ALL SELECT date_time FROM person) AS u
         GROUP BY 1",
    );
    assert!(said[0].contains("person.date_time has no LATENESS"), "{said:?}");
}

#[test]
fn outer_joins_of_equal_times_are_pruned() {
    for join in ["LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"] {
        let said = states(&format!(
            "SELECT a.date_time FROM auction AS a {join} bid AS b ON a.date_time = b.date_time AND a.id = b.auction"
        ));
        assert_eq!(said.len(), 2, "{join}: {said:?}");
        assert!(said.iter().all(|state| state.contains(": pruned by ")), "{join}: {said:?}");
    }
}

#[test]
fn outer_joins_are_pruned_through_their_conditions() {
    let band =
        "a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL '1' HOUR";
    for join in ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"] {
        let said = states(&format!("SELECT a.id FROM auction AS a {join} bid AS b ON {band}"));
        assert!(said.len() >= 2, "{join}: {said:?}");
        assert!(said.iter().all(|state| state.contains(": pruned by ")), "{join}: {said:?}");
    }
    for exists in ["EXISTS", "NOT EXISTS"] {
        let said = states(&format!(
            "SELECT a.id FROM auction AS a WHERE {exists} (SELECT 1 FROM bid AS b WHERE {band})"
        ));
        assert!(said.iter().all(|state| state.contains(": pruned by ")), "{exists}: {said:?}");
    }
    // An auction without a bid can change when any auction can, whatever the condition says of its expiry.
    let until = "a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires";
    let said =
        states(&format!("SELECT a.id, b.price FROM auction AS a LEFT JOIN bid AS b ON {until}"));
    assert!(said[0].starts_with("left rows: never pruned: "), "{said:?}");
    assert!(
        said[1].contains("right rows: pruned by date_time, from the waterline of auction"),
        "{said:?}"
    );
    let said =
        states(&format!("SELECT a.id, b.price FROM bid AS b LEFT JOIN auction AS a ON {until}"));
    let of_bids = "the least of the waterline of bid.date_time and the waterline of auction";
    assert!(
        said[0].contains(&format!("left rows: pruned by date_time, from {of_bids}")),
        "{said:?}"
    );
    assert!(
        said[1].contains("right rows: pruned by expires, from the waterline of bid"),
        "{said:?}"
    );
}

#[test]
fn left_rows_of_asof_joins_are_pruned_behind_the_right_side() {
    let earlier = "b.auction = a.id AND a.date_time >= b.date_time";
    let said =
        states(&format!("SELECT a.id, b.price FROM auction AS a ASOF JOIN bid AS b ON {earlier}"));
    assert_eq!(said[0], "left rows: pruned by date_time, from the waterline of bid.date_time");
    assert!(
        said[1].starts_with("right rows: never pruned: when the last row of a key is deleted,"),
        "{said:?}"
    );
    // Where none is deleted, the last one of each key is enough.
    let last = states(&format!(
        "SELECT a.id, b.price FROM auction AS a ASOF JOIN quote AS b ON {earlier}"
    ));
    let of_both =
        "the least of the waterline of auction.date_time and the waterline of quote.date_time";
    let but = "but for the last row before that of each key";
    assert_eq!(last[1], format!("right rows: pruned by date_time, from {of_both}, {but}"));
    // A right row can still come after any left row.
    let later = "b.auction = a.id AND a.date_time <= b.date_time";
    let said = states(&format!(
        "SELECT a.id, b.price FROM auction AS a LEFT ASOF JOIN bid AS b ON {later}"
    ));
    assert!(
        said.iter()
            .all(|state| state.contains("rows: never pruned: a later row of the right side")),
        "{said:?}"
    );
    // Days are over.
    let days = "CAST(a.date_time AS DATE) = CAST(b.date_time AS DATE)";
    for condition in [earlier, later] {
        let said = states(&format!(
            "SELECT a.id, b.price FROM auction AS a LEFT ASOF JOIN bid AS b ON {condition} AND {days}"
        ));
        assert!(
            said.iter().all(|state| state.contains("rows: pruned by CAST(date_time AS Date32)")),
            "{said:?}"
        );
    }
    let person =
        "SELECT a.id, p.name FROM auction AS a ASOF JOIN person AS p ON a.date_time >= p.date_time";
    assert!(
        states(person)[0].contains("left rows: never pruned: person.date_time has no LATENESS")
    );
}

#[test]
fn of_rows_that_are_counted_the_last_ones_stay_if_none_is_deleted() {
    let lag = |table, function| {
        states(&format!(
            "SELECT price, {function} OVER (PARTITION BY auction ORDER BY date_time) AS p FROM {table}"
        ))
    };
    let pruned =
        "rows: pruned by date_time, from the waterline of quote.date_time, but for the last";
    assert_eq!(lag("quote", "LAG(price)"), [format!("{pruned} row before that of each key")]);
    assert_eq!(
        lag("quote", "LEAD(price, 3)"),
        [format!("{pruned} 3 rows before that of each key")]
    );
    let never = |said: Vec<String>| said[0].starts_with("rows: never pruned: ");
    assert!(never(lag("bid", "LAG(price)")), "a bid may be deleted");
    assert!(never(lag("quote", "ROW_NUMBER()")), "it counts all rows");
}

#[test]
fn rows_of_asof_joins_are_final_by_the_times_that_their_sides_give() {
    let bound = |query: &str| {
        let mut definitions = Definitions::flights();
        definitions.define(AUCTIONS);
        let view = definitions.view(query).unwrap();
        view.bounds.iter().map(|bound| bound.is_ok()).collect::<Vec<_>>()
    };
    let select = "SELECT a.date_time AS left_time, b.date_time AS right_time, a.id FROM auction AS a ASOF JOIN bid AS b ON";
    assert_eq!(bound(&format!("{select} a.date_time >= b.date_time")), [true, false, false]);
    assert_eq!(bound(&format!("{select} a.date_time < b.date_time")), [false, true, false]);
}

#[test]
fn what_time_has_passed_is_pruned() {
    let said = states("SELECT id FROM person WHERE date_time >= NOW() - INTERVAL '1' HOUR");
    let expected = "rows in view: pruned by date_time, from NOW() at the time of the last change";
    assert_eq!(said[0], expected, "{said:?}");
    let said = states("SELECT id FROM person WHERE date_time + INTERVAL '1' DAY > NOW()");
    assert_eq!(said[0], expected, "{said:?}");
    // These come into view one after the other, and stay.
    let said = states("SELECT id FROM person WHERE date_time <= NOW()");
    let expected = "rows that come into view later: pruned by date_time, from NOW() at the time of the last change";
    assert_eq!(said[0], expected, "{said:?}");
    // Other expressions of the time are joined with it.
    let said = states("SELECT id FROM person WHERE date_time > NOW() - INTERVAL '1' MONTH");
    assert!(said[0].starts_with("left rows: never pruned: now() - '1 mons' need not"), "{said:?}");
}

#[test]
fn rows_that_time_takes_out_of_view_have_old_values_in_other_columns() {
    let of_bids = "SELECT date_time, COUNT(*) FROM bid WHERE date_time > NOW() - INTERVAL '1' HOUR GROUP BY 1";
    let said = states(of_bids);
    let expected = "groups: pruned by date_time, from NOW() at the time of the last change";
    assert_eq!(said[0], expected, "{said:?}");
    let said = states("SELECT date_time, COUNT(*) FROM auction WHERE expires > NOW() GROUP BY 1");
    assert!(said[0].contains("groups: never pruned: rows come into view or leave it"), "{said:?}");
}

#[test]
fn sessions_are_pruned_by_their_ends() {
    let sessions = "SESSION(bid, date_time, bidder, INTERVAL '10' SECOND)";
    let said = states(&format!("SELECT bidder, price, window_start FROM {sessions}"));
    let kept =
        "rows with their sessions: pruned by window_end, from the waterline of bid.date_time";
    assert_eq!(said, [kept]);
    let keys = "bidder, window_start, window_end";
    let said = states(&format!("SELECT {keys}, COUNT(*) FROM {sessions} GROUP BY {keys}"));
    let groups = "groups: pruned by window_end, from the waterline of bid.date_time";
    assert_eq!(said, [groups, kept]);
    let said = states(&format!("SELECT window_start, COUNT(*) FROM {sessions} GROUP BY 1"));
    assert!(said[0].starts_with("groups: never pruned: a session goes on while"), "{said:?}");
    assert_eq!(said[1], kept);
    let sessions = "SESSION(person, date_time, id, INTERVAL '10' SECOND)";
    let said = states(&format!("SELECT id, window_end FROM {sessions}"));
    assert!(said[0].contains("never pruned: person.date_time has no LATENESS"), "{said:?}");
}

#[test]
fn clocks_of_zones_do_not_always_rise() {
    for key in [
        "CAST(date_time AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York' AS TIMESTAMP)",
        "CAST(date_time AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York' AS DATE)",
    ] {
        let said = states(&format!("SELECT {key} AS k, COUNT(*) FROM bid GROUP BY 1"));
        assert!(said[0].contains("need not rise with time"), "{key}: {said:?}");
    }
}

#[test]
fn values_that_change_with_their_group_have_no_bound() {
    let said = states(
        "SELECT last, COUNT(*) FROM (SELECT bidder, MAX(date_time) AS last FROM bid GROUP BY 1) AS l GROUP BY 1",
    );
    assert!(
        said[0].contains("never pruned: max(date_time) can change with any row of its group"),
        "{said:?}"
    );
}

/// The reported places of the operators of a query.
fn places(query: &str) -> Vec<String> {
    kept(query).into_iter().filter_map(|by| by.at).collect()
}

#[test]
fn a_place_is_given_only_if_nothing_else_is_like_it() {
    let twice = |one: &str, other: &str| {
        format!(
            "SELECT {one} AS k, COUNT(*) AS c FROM bid GROUP BY {one}\n\
             UNION ALL SELECT {other}, SUM(price) FROM bid GROUP BY {other}"
        )
    };
    assert_eq!(
        places(&twice("bidder", "auction")),
        ["GROUP BY at line 2, column 53", "GROUP BY at line 3, column 56"]
    );
    assert_eq!(places(&twice("bidder", "bidder")), ["in GROUP BY", "in GROUP BY"]);

    let said =
        states("SELECT date_time - INTERVAL '1' MONTH AS t, COUNT(*) AS c FROM bid GROUP BY 1");
    assert!(said[0].ends_with("(at line 2, column 8)"), "{said:?}");
    let said = states(
        "SELECT date_time - INTERVAL '1' MONTH AS t, COUNT(*) AS c FROM bid
         WHERE date_time - INTERVAL '1' YEAR < TIMESTAMP '2024-01-01' GROUP BY 1",
    );
    assert!(!said[0].contains("(at line"), "{said:?}");
}

#[test]
fn clauses_of_all_kinds_have_places() {
    for (query, place) in [
        ("SELECT DISTINCT bidder FROM bid", "DISTINCT at line 2, column 1"),
        ("SELECT COUNT(*) AS c FROM bid", "the aggregates at line 2, column 8"),
        ("SELECT * FROM bid ORDER BY price LIMIT 3", "LIMIT or OVER at line 2, column 40"),
        (
            "SELECT price, SUM(price) OVER (PARTITION BY bidder ORDER BY price) AS s FROM bid",
            "PARTITION BY at line 2, column 45",
        ),
        ("SELECT bidder FROM bid EXCEPT SELECT id FROM person", "EXCEPT at line 2, column 31"),
        (
            "SELECT a.id FROM auction AS a JOIN bid AS b ON a.id = b.auction",
            "the join at line 2, column 48",
        ),
        (
            "SELECT price FROM bid WHERE bidder IN (SELECT id FROM person)",
            "the join at line 2, column 29",
        ),
    ] {
        let said = places(query);
        assert!(said.iter().any(|said| said == place), "{query}: {said:?}");
    }
}

const EVENTS: &str = "
    CREATE TABLE raw (id BIGINT, at TEXT, n BIGINT) WITH ('materialized' = 'false');
    LATENESS event.ts INTERVAL '1' HOUR;
    CREATE VIEW event AS SELECT id, CAST(at AS TIMESTAMP) AS ts, n FROM raw;
    LATENESS stored.ts INTERVAL '1' HOUR;
    CREATE MATERIALIZED VIEW stored AS SELECT id, CAST(at AS TIMESTAMP) AS ts, n FROM raw";

#[test]
fn waterlines_of_views_bound_what_reads_them() {
    let mut definitions = Definitions::flights();
    definitions.define(EVENTS);
    definitions.define(
        "CREATE MATERIALIZED VIEW hours AS SELECT DATE_TRUNC('hour', ts) AS h, id FROM event",
    );
    for (query, expected) in [
        (
            "SELECT ts, COUNT(*) FROM event GROUP BY ts",
            "pruned by ts, from the waterline of event.ts",
        ),
        (
            "SELECT ts, COUNT(*) FROM stored GROUP BY ts",
            "pruned by ts, from the waterline of stored.ts",
        ),
        ("SELECT h, COUNT(*) FROM hours GROUP BY h", "pruned by h, from the waterline of event.ts"),
        (
            "SELECT e.id FROM event AS e LEFT JOIN stored AS s ON e.ts = s.ts",
            "pruned by ts, from the least of the waterline of event.ts and the waterline of stored.ts",
        ),
    ] {
        let said = lines(&kept_in(&mut definitions, query));
        assert!(said.iter().any(|line| line.ends_with(expected)), "{query}: {said:?}");
    }
}

#[test]
fn a_row_and_the_one_that_replaces_it_can_both_be_there_where_one_is_late() {
    let mut definitions = Definitions::flights();
    definitions.define(EVENTS);
    definitions.define(
        "LATENESS latest.ts INTERVAL '1' HOUR;
         CREATE VIEW latest AS SELECT id, MAX(ts) AS ts FROM event GROUP BY id;
         LATENESS counts.ts INTERVAL '1' HOUR;
         CREATE VIEW counts AS SELECT id, ts, COUNT(*) AS c FROM event GROUP BY id, ts",
    );
    let unique = |query: &str| definitions.view(query).unwrap().plan.properties.unique;
    assert_eq!(unique("SELECT * FROM latest"), Vec::<Vec<usize>>::new());
    assert_eq!(unique("SELECT * FROM counts"), [[0, 1]]);
}

/// The auctions of [`AUCTIONS`], with keys of all kinds.
const KEYED: &str = "
    CREATE TABLE keyed (
        id BIGINT PRIMARY KEY, category BIGINT, expires TIMESTAMP,
        date_time TIMESTAMP LATENESS INTERVAL '4' SECONDS);
    CREATE TABLE promised (
        id BIGINT PRIMARY KEY NOT ENFORCED, category BIGINT, expires TIMESTAMP,
        date_time TIMESTAMP LATENESS INTERVAL '4' SECONDS) WITH ('materialized' = 'false', 'append_only' = 'true');
    CREATE TABLE composite (
        id BIGINT, category BIGINT, expires TIMESTAMP,
        date_time TIMESTAMP LATENESS INTERVAL '4' SECONDS, PRIMARY KEY (id, category) ENFORCED)";

/// The report on the groups, or rows, that the topmost operator of a query keeps.
fn said_of_groups(query: &str) -> String {
    let mut definitions = Definitions::flights();
    definitions.define(AUCTIONS);
    definitions.define(KEYED);
    lines(&kept_in(&mut definitions, query)).swap_remove(0)
}

#[test]
fn a_group_is_final_by_a_time_that_follows_from_its_key() {
    let pruned = "pruned by expires, from the least of the waterline of auctions.date_time and the waterline of bid.date_time";
    let within =
        "JOIN bid AS b ON a.id = b.auction WHERE b.date_time BETWEEN a.date_time AND a.expires";
    for (table, keys, is_pruned) in [
        ("keyed", "a.id", true),
        ("keyed", "b.auction", true),
        ("keyed", "a.category, a.id", true),
        ("keyed", "a.category", false),
        ("keyed", "a.id + 1", false),
        ("promised", "a.id", true),
        ("promised", "b.auction", true),
        ("composite", "a.id", false),
        ("composite", "a.id, a.category", true),
        ("composite", "b.auction, a.category", true),
        ("auction", "a.id", false),
        ("auction", "a.id, a.category", false),
    ] {
        let pruned = pruned.replace("auctions", table);
        let said = said_of_groups(&format!(
            "SELECT {keys}, MAX(b.price) AS most FROM {table} AS a {within} GROUP BY {keys}"
        ));
        assert_eq!(said == format!("groups: {pruned}"), is_pruned, "{table} by {keys}: {said}");
        let said = said_of_groups(&format!(
            "SELECT price FROM (SELECT b.price, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY b.price DESC) AS place
             FROM {table} AS a {within}) AS ranked WHERE place <= 1"
        ));
        assert_eq!(said == format!("rows: {pruned}"), is_pruned, "{table} by {keys}: {said}");
    }
}

#[test]
fn what_follows_from_a_key_does_not_where_rows_come_without_it() {
    let of = |rows: &str| {
        said_of_groups(&format!("SELECT id, MAX(price) FROM ({rows}) AS r GROUP BY id"))
    };
    let on = "ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.date_time + INTERVAL '1' HOUR";
    let columns = "a.id, a.date_time, b.price";
    assert!(
        of(&format!("SELECT {columns} FROM keyed AS a LEFT JOIN bid AS b {on}"))
            .contains("pruned by date_time")
    );
    for rows in [
        format!("SELECT {columns} FROM keyed AS a RIGHT JOIN bid AS b {on}"),
        format!("SELECT {columns} FROM keyed AS a FULL JOIN bid AS b {on}"),
        format!(
            "SELECT {columns} FROM keyed AS a JOIN bid AS b {on}
             UNION ALL SELECT {columns} FROM keyed AS a JOIN bid AS b {on} AND b.price > 3"
        ),
    ] {
        let said = of(&rows);
        assert!(said.starts_with("groups: never pruned"), "{rows}: {said}");
    }
}

/// Of a row that replaces another, the new one can come in time for a view and the old one too late to be taken back.
#[test]
fn a_key_of_a_table_is_none_of_a_view_with_lateness() {
    let mut definitions = Definitions::flights();
    definitions.define(
        "CREATE TABLE raw (id BIGINT PRIMARY KEY, at TEXT, n BIGINT);
         CREATE LOCAL VIEW event AS SELECT id, CAST(at AS TIMESTAMP) AS ts, n FROM raw;
         LATENESS event.ts INTERVAL '1' HOUR",
    );
    let said =
        lines(&kept_in(&mut definitions, "SELECT id, MAX(n), MAX(ts) FROM event GROUP BY id"));
    assert!(said[0].starts_with("groups: never pruned: the key has no time"), "{said:?}");
}

/// A promise that rows break makes several groups of one: then nothing may rely on there being one.
#[test]
fn a_promised_key_is_not_unique_and_neither_is_a_group_by_it() {
    let mut definitions = Definitions::flights();
    definitions.define(KEYED);
    let unique = |query: &str| definitions.view(query).unwrap().plan.properties.unique.clone();
    assert_eq!(unique("SELECT id, COUNT(*) FROM keyed GROUP BY id"), [[0]]);
    for query in [
        "SELECT id, category FROM promised",
        "SELECT id, COUNT(*) FROM promised GROUP BY id",
        "SELECT DISTINCT ON (id) id, category FROM promised ORDER BY id, category",
    ] {
        assert!(unique(query).is_empty(), "{query}");
    }
    assert_eq!(unique("SELECT category, COUNT(*) FROM promised GROUP BY category"), [[0]]);
}
