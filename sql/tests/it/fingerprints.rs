//! Fingerprints identify what state means, in every process.

use alluvium_sql::plan::Fingerprint;

use crate::fixture::Definitions;

fn fingerprint(definitions: &Definitions, query: &str) -> Fingerprint {
    definitions.view(query).unwrap_or_else(|error| panic!("{query}: {error}")).plan.fingerprint()
}

#[test]
fn a_fingerprint_is_the_same_in_every_process_and_build() {
    let definitions = Definitions::flights();
    let queries = [
        "SELECT origin FROM flights",
        "SELECT a + 1 AS x, 'text' AS t, 1.5 AS d FROM numbers WHERE a IN (1, 2)",
        "SELECT a.name, count(*) AS n, median(f.distance) AS m FROM flights f JOIN airlines a ON f.carrier = a.carrier
         GROUP BY a.name",
        "SELECT x FROM (VALUES (1, 'a'), (2, NULL)) v (x, y)",
    ];
    let prints = queries.map(|query| format!("{query}\n{}\n", fingerprint(&definitions, query)));
    insta::assert_snapshot!(prints.join("\n"));
}

#[test]
fn queries_that_mean_the_same_share_a_fingerprint() {
    let definitions = Definitions::flights();
    for (one, other) in [
        (
            "SELECT id FROM flights WHERE distance > 10",
            "SELECT f.id FROM flights f WHERE f.distance > 10",
        ),
        (
            "SELECT f.id, w.temp FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour",
            "SELECT f.id, w.temp FROM flights f JOIN weather w ON f.time_hour = w.time_hour AND f.origin = w.origin",
        ),
    ] {
        assert_eq!(
            fingerprint(&definitions, one),
            fingerprint(&definitions, other),
            "{one}\n{other}"
        );
    }
}

#[test]
fn what_changes_rows_changes_the_fingerprint() {
    let definitions = Definitions::flights();
    let queries = [
        "SELECT a AS x FROM numbers",
        "SELECT c AS x FROM numbers",
        "SELECT a AS y FROM numbers",
        "SELECT CAST(a AS BIGINT) AS x FROM numbers",
        "SELECT TRY_CAST(a AS BIGINT) AS x FROM numbers",
        "SELECT a AS x FROM numbers WHERE t = '1'",
        "SELECT a AS x FROM numbers WHERE t = '1' OR t = '2'",
        "SELECT a + CAST(1 AS INT) AS x FROM numbers",
        "SELECT a + CAST(1 AS BIGINT) AS x FROM numbers",
        "SELECT DISTINCT a AS x FROM numbers",
        "SELECT sum(a) AS x FROM numbers",
        "SELECT sum(DISTINCT a) AS x FROM numbers",
        "SELECT string_agg(t, ',' ORDER BY a) AS x FROM numbers",
        "SELECT string_agg(t, ';' ORDER BY a) AS x FROM numbers",
        "SELECT string_agg(t, ';' ORDER BY a DESC) AS x FROM numbers",
        "SELECT sum(a) OVER (ORDER BY c ROWS 1 PRECEDING) AS x FROM numbers",
        "SELECT sum(a) OVER (ORDER BY c ROWS 2 PRECEDING) AS x FROM numbers",
        "SELECT window_end AS x FROM TUMBLE(flights, time_hour, INTERVAL '10' SECOND)",
        "SELECT window_end AS x FROM TUMBLE(flights, time_hour, INTERVAL '20' SECOND)",
        "SELECT window_end AS x FROM HOP(flights, time_hour, INTERVAL '10' SECOND, INTERVAL '20' SECOND)",
        "SELECT window_end AS x FROM HOP(flights, time_hour, INTERVAL '10' SECOND, INTERVAL '30' SECOND)",
        "SELECT window_end AS x FROM SESSION(flights, time_hour, carrier, INTERVAL '10' SECOND)",
        "SELECT window_end AS x FROM SESSION(flights, time_hour, carrier, INTERVAL '20' SECOND)",
        "SELECT window_start AS x FROM SESSION(flights, time_hour, carrier, INTERVAL '20' SECOND)",
        "SELECT lag(a) OVER (ORDER BY c) AS x FROM numbers",
        "SELECT lag(a, 2) OVER (ORDER BY c) AS x FROM numbers",
        "SELECT lead(a) OVER (ORDER BY c) AS x FROM numbers",
        "SELECT ntile(2) OVER (ORDER BY c) AS x FROM numbers",
        "SELECT ntile(3) OVER (ORDER BY c) AS x FROM numbers",
        "SELECT first_value(a) OVER (ORDER BY c) AS x FROM numbers",
        "SELECT last_value(a) OVER (ORDER BY c) AS x FROM numbers",
        "SELECT nth_value(a, 2) OVER (ORDER BY c) AS x FROM numbers",
        "SELECT array_agg(a ORDER BY c) AS x FROM numbers",
        "SELECT array_agg(DISTINCT a) AS x FROM numbers",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) AS x FROM numbers",
        "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY a) AS x FROM numbers",
        "SELECT t LIKE 'a%' AS x FROM numbers",
        "SELECT t NOT LIKE 'a%' AS x FROM numbers",
        "SELECT t ILIKE 'a%' AS x FROM numbers",
        "SELECT a IN (1, 2, 3, 4, 5) AS x FROM numbers",
        "SELECT a NOT IN (1, 2, 3, 4, 5) AS x FROM numbers",
        "SELECT a IN (1, 2, 3, 4, 6) AS x FROM numbers",
        "SELECT CASE WHEN a > 1 THEN b ELSE c END AS x FROM numbers",
        "SELECT CASE WHEN a > 1 THEN c ELSE b END AS x FROM numbers",
        "SELECT make_array(t, 'a, b') AS x FROM numbers",
        "SELECT make_array(t, 'a', 'b') AS x FROM numbers",
        "SELECT a AS x FROM numbers ORDER BY a LIMIT 1",
        "SELECT a AS x FROM numbers ORDER BY a LIMIT 1 OFFSET 1",
        "SELECT a AS x FROM numbers ORDER BY a DESC LIMIT 1",
        "SELECT a AS x FROM numbers INTERSECT SELECT c FROM numbers",
        "SELECT a AS x FROM numbers EXCEPT SELECT c FROM numbers",
        "SELECT x FROM (VALUES (1), (2)) v (x)",
        "SELECT x FROM (VALUES (1), (3)) v (x)",
        "SELECT x FROM (VALUES (1.0), (2.0)) v (x)",
        "SELECT n.a AS x FROM numbers n LEFT JOIN numbers m ON n.a = m.c",
        "SELECT n.a AS x FROM numbers n JOIN numbers m ON n.a = m.c",
    ];
    let prints: Vec<Fingerprint> =
        queries.iter().map(|query| fingerprint(&definitions, query)).collect();
    for (at, print) in prints.iter().enumerate() {
        if let Some(other) = prints[..at].iter().position(|other| other == print) {
            panic!("equal fingerprints:\n{}\n{}", queries[other], queries[at]);
        }
    }
}

#[test]
fn a_materialized_view_of_another_meaning_changes_the_fingerprints_of_its_readers() {
    let over = |view: &str| {
        let mut definitions = Definitions::flights();
        definitions.define(&format!("CREATE MATERIALIZED VIEW v AS {view}"));
        fingerprint(&definitions, "SELECT count(*) AS n FROM v")
    };
    let all = over("SELECT origin FROM flights");
    assert_eq!(over("SELECT f.origin FROM flights f"), all);
    assert_ne!(over("SELECT origin FROM flights WHERE distance > 10"), all);
}

#[test]
fn sharing_lists_each_index_once_after_those_it_is_made_of_and_keeps_the_fingerprint() {
    let query = "SELECT f.id, g.id AS other FROM flights f
         JOIN airlines a ON f.carrier = a.carrier JOIN flights g ON f.tailnum = g.tailnum";
    let plan = Definitions::flights().view(query).unwrap().plan;
    let before = plan.fingerprint();
    let shared = plan.share(&|_| false);
    assert_eq!(shared.plan.fingerprint(), before);
    let mut listed = Vec::new();
    for index in &shared.indexes {
        assert_eq!(index.fingerprint, index.index.fingerprint());
        assert!(index.index.parts().iter().all(|part| listed.contains(part)));
        assert!(!listed.contains(&index.fingerprint));
        listed.push(index.fingerprint);
    }
    assert!(listed.len() >= 3, "{}", listed.len());
}
