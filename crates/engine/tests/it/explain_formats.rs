//! EXPLAIN as JSON, as a graph and as a picture.

use std::time::{Duration, Instant};

use alluvium::{Engine, Outcome};
use serde_json::Value;

fn engine() -> Engine {
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine starts");
    let definitions = "
        CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, name VARCHAR);
        CREATE LOCAL VIEW sums AS SELECT v, SUM(k) AS s FROM t WHERE name <> '<b>&\"quoted\"</b>' GROUP BY v;
        CREATE MATERIALIZED VIEW pairs AS SELECT a.v, a.s, b.s AS other FROM sums a JOIN sums b ON a.v = b.s;
        INSERT INTO t SELECT k, k % 10, 'n' FROM generate_series(0, 99) AS s(k)";
    engine.execute(definitions).expect("it is right");
    engine.wait(engine.progress().committed).expect("it is complete");
    engine
}

fn text(engine: &Engine, sql: &str) -> String {
    match engine.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(Outcome::Text(text)) => text,
        other => panic!("{sql}: {other:?}"),
    }
}

fn json(engine: &Engine, sql: &str) -> Value {
    let text = text(engine, sql);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn nodes(explained: &Value) -> &[Value] {
    explained["nodes"].as_array().expect("it has nodes")
}

const ALL: [(&str, &str); 5] = [
    ("", "SELECT v, COUNT(*) AS n FROM t WHERE name > 'a' GROUP BY v"),
    ("", "VIEW pairs"),
    ("", "STATE pairs"),
    ("ANALYZE, ", "pairs"),
    ("ANALYZE, ", "SELECT v, COUNT(*) AS n FROM t WHERE name > 'a' GROUP BY v"),
];

#[test]
fn all_explanations_have_all_formats() {
    let engine = engine();
    for (analyze, what) in ALL {
        let of =
            |format: &str| text(&engine, &format!("EXPLAIN ({analyze}FORMAT {format}) {what}"));
        let plain = text(&engine, &format!("EXPLAIN {} {what}", analyze.trim_end_matches(", ")));
        if analyze.is_empty() {
            assert_eq!(of("text"), plain, "{what}");
        } else {
            let head = |text: &str| text.split(" took ").next().map(str::to_owned);
            assert_eq!(head(&of("text")), head(&plain));
        }
        let explained: Value = serde_json::from_str(&of("json")).expect("it is JSON");
        let nodes = nodes(&explained);
        for (id, node) in nodes.iter().enumerate() {
            assert_eq!(node["id"], id);
            let operation = node["operation"].as_str().expect("it has one");
            assert!(plain.contains(operation), "{operation}: {plain}");
            for input in node["inputs"].as_array().expect("they are a list") {
                assert!(nodes.get(input.as_u64().expect("a number") as usize).is_some());
            }
            assert_eq!(node.get("busy_ns").is_some(), !analyze.is_empty(), "{node}");
        }
        let edges: usize = nodes.iter().map(|it| it["inputs"].as_array().map_or(0, Vec::len)).sum();
        let places = explained["places"].as_array().expect("they are a list");
        assert_eq!(places.len(), nodes.len());
        for (place, node) in places.iter().zip(nodes) {
            for input in node["inputs"].as_array().expect("they are a list") {
                let below = &places[input.as_u64().expect("a number") as usize];
                assert!(below[1].as_f64() > place[1].as_f64(), "{places:?}");
            }
        }
        let dot = of("dot");
        assert!(dot.starts_with("digraph plan {\n") && dot.ends_with("}\n"), "{dot}");
        assert_eq!(dot.matches(" -> ").count(), edges, "{dot}");
        assert_eq!(dot.matches(" [label=").count(), nodes.len(), "{dot}");
        assert_eq!(
            dot.replace("\\\\", "").replace("\\\"", "").matches('"').count() % 2,
            0,
            "{dot}"
        );
        let svg = of("svg");
        check_svg(&svg);
        assert_eq!(svg.matches("<g>").count(), nodes.len(), "{svg}");
        assert_eq!(svg.matches("<path").count(), 2 * edges, "{svg}");
        assert!(svg.contains("currentColor") && !svg.contains("<script"), "{svg}");
        let took_time = nodes.iter().any(|node| node["busy_percent"].as_u64() > Some(0));
        assert_eq!(svg.contains("#e8590c"), took_time, "{svg}");
    }
}

/// Its elements end in the order in which they begin, and its texts have no marks of their own.
fn check_svg(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut parts = svg.trim_end().split('<');
    assert_eq!(parts.next(), Some(""));
    for part in parts {
        let (element, text) = part.split_once('>').expect("an element ends");
        assert!(!text.contains('>'), "{text}");
        assert_eq!(element.matches('"').count() % 2, 0, "{element}");
        for reference in text.split('&').skip(1) {
            let known = ["lt;", "gt;", "amp;", "quot;"];
            assert!(known.iter().any(|it| reference.starts_with(it)), "{text}");
        }
        match element.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if element.ends_with('/') => {}
            None => open.push(element.split(' ').next().expect("it has a name")),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn an_operator_with_two_readers_is_one_node() {
    let engine = engine();
    let plain = text(&engine, "EXPLAIN VIEW pairs");
    let aggregates = |text: &str| text.matches("aggregate sum(k)").count();
    assert_eq!(aggregates(&plain), 2, "{plain}");
    let explained = json(&engine, "EXPLAIN (FORMAT json) VIEW pairs");
    assert_eq!(explained["kind"], "view");
    assert_eq!(explained["relation"], "pairs");
    let operations = nodes(&explained).iter().filter_map(|node| node["operation"].as_str());
    let operations: Vec<&str> = operations.collect();
    assert_eq!(aggregates(&operations.join("\n")), 1, "{operations:?}");
    let shared = operations.iter().position(|it| it.starts_with("aggregate")).expect("it is there");
    let readers = nodes(&explained).iter().flat_map(|node| node["inputs"].as_array()).flatten();
    assert_eq!(readers.filter(|input| **input == shared).count(), 2, "{explained:#}");
}

#[test]
fn figures_are_numbers_with_units() {
    let engine = engine();
    let view = json(&engine, "EXPLAIN (ANALYZE, FORMAT json) pairs");
    assert_eq!((&view["kind"], &view["workers"]), (&"view".into(), &1.into()));
    assert!(view["busy_ns"].is_u64() && view.get("watched_ns").is_none(), "{view:#}");
    let scan = nodes(&view).iter().find(|node| {
        node["operation"].as_str().is_some_and(|operation| operation.starts_with("scan t"))
    });
    // Each side of the join is an index, which reads the table.
    let scan = scan.expect("it scans");
    assert_eq!(scan["rows_out"], 200, "{view:#}");
    let reader = nodes(&view)
        .iter()
        .find(|node| node["inputs"].as_array().is_some_and(|inputs| inputs.contains(&scan["id"])));
    assert_eq!(reader.expect("it is read")["rows_in"], 200, "{view:#}");
    assert!(scan.get("rows_in").is_none(), "{view:#}");
    let watched = "EXPLAIN (ANALYZE, FORMAT json) pairs FOR INTERVAL '20' MILLISECOND";
    assert_eq!(json(&engine, watched)["watched_ns"], 20_000_000);
    let state = json(&engine, "EXPLAIN (FORMAT json) STATE pairs");
    let contents = &nodes(&state)[0]["states"][0];
    assert_eq!(contents["contents"], "contents");
    assert!(contents["rows"].is_u64() && contents["memory_bytes"].is_u64(), "{state:#}");
    let sql = "EXPLAIN (ANALYZE, FORMAT json) SELECT v FROM t WHERE v < 5";
    let query = json(&engine, sql);
    assert_eq!((&query["kind"], &query["rows"]), (&"query".into(), &50.into()));
    assert!(query["waited_ns"].is_u64());
    let rows: Vec<&Value> = nodes(&query).iter().map(|node| &node["rows_out"]).collect();
    assert_eq!(rows, [50, 100], "{query:#}");
    let taken: Vec<Option<&Value>> = nodes(&query).iter().map(|node| node.get("rows_in")).collect();
    assert_eq!(taken, [Some(&100.into()), None], "{query:#}");
}

#[test]
fn two_thousand_operators_take_no_second_and_deep_plans_no_stack() {
    let engine = engine();
    let branch = |number| format!("SELECT DISTINCT v + {number} AS v FROM t");
    let branches: Vec<String> = (0..700).map(branch).collect();
    let sql = branches.join(" UNION ALL ");
    engine.execute(&format!("CREATE LOCAL VIEW wide AS {sql}")).expect("it is planned");
    let begun = Instant::now();
    let plain = text(&engine, "EXPLAIN VIEW wide");
    let planned = begun.elapsed();
    assert!(plain.lines().count() > 2_000, "{}", plain.lines().count());
    for format in ["json", "dot", "svg"] {
        let begun = Instant::now();
        let written = text(&engine, &format!("EXPLAIN (FORMAT {format}) VIEW wide"));
        println!("{format}: {:?}, of which the text {planned:?}", begun.elapsed());
        assert!(begun.elapsed() < planned + Duration::from_secs(1), "{:?}", begun.elapsed());
        assert!(written.len() > 100_000);
    }
    let nested = |levels| {
        let (open, close) = ("SELECT k FROM (".repeat(levels), ") AS s LIMIT 5".repeat(levels));
        format!("{open}SELECT k FROM t{close}")
    };
    for format in ["text", "json", "dot", "svg"] {
        for analyze in ["", "ANALYZE, "] {
            let explain = format!("EXPLAIN ({analyze}FORMAT {format}) ");
            text(&engine, &(explain.clone() + &nested(15)));
            let error = engine.execute(&(explain + &nested(10_000))).expect_err("it is too deep");
            assert!(error.to_string().contains("at most 1000 SELECTs"), "{error}");
        }
    }
}

/// What is said of the operators of a query that take the most time, and the text.
fn said(engine: &Engine, sql: &str) -> (Vec<String>, String) {
    let explained = json(engine, &format!("EXPLAIN (ANALYZE, FORMAT json) {sql}"));
    let sentences = nodes(&explained).iter().flat_map(|node| node["sentences"].as_array());
    let sentences = sentences.flatten().filter_map(Value::as_str).map(str::to_owned);
    (sentences.collect(), format!("{explained:#}"))
}

#[test]
fn what_would_help_a_query_is_said() {
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine starts");
    let rows = "CREATE TABLE big (k BIGINT PRIMARY KEY, v BIGINT, w BIGINT);
        INSERT INTO big SELECT k, k % 1000, k FROM generate_series(0, 99999) AS s(k)";
    engine.execute(rows).expect("it is right");
    let sought = "SELECT COUNT(*) AS n FROM big WHERE v = 7";
    let (sentences, text) = said(&engine, sought);
    let advice = "it reads 100000 rows, of which the condition leaves 100: CREATE INDEX big_by_v ON big (v) makes it a seek";
    assert!(sentences.iter().any(|sentence| sentence == advice), "{text}");
    engine.execute("CREATE INDEX big_by_v ON big (v)").expect("it is right");
    let (sentences, text) = said(&engine, sought);
    assert!(!sentences.iter().any(|sentence| sentence.contains("CREATE INDEX")), "{text}");
    let crossed = "SELECT COUNT(*) AS n FROM big a, big b WHERE a.k < 2000 AND b.k < 1000 AND (a.w + b.w) % 7 = 1";
    let (sentences, text) = said(&engine, crossed);
    assert!(sentences.iter().any(|it| it.starts_with("it has no equality")), "{text}");
}

#[test]
fn an_index_is_not_proposed_where_there_can_be_none() {
    let engine = Engine::builder().workers(1).open_in_memory().expect("an engine starts");
    let mut session = engine.session();
    let rows = "CREATE TEMPORARY TABLE own AS SELECT k, k % 1000 AS v FROM generate_series(0, 99999) AS s(k)";
    session.execute(rows).expect("it is right");
    let answer = session.execute("EXPLAIN ANALYZE SELECT COUNT(*) AS n FROM own WHERE v = 7");
    let Outcome::Text(text) = answer.expect("it is right").remove(0) else { panic!("no text") };
    assert!(text.contains("relation=pg_temp.own, columns=[v]"), "{text}");
    assert!(!text.contains("CREATE INDEX"), "{text}");
}

#[test]
fn building_a_relation_of_the_system_is_no_waiting() {
    let engine = engine();
    // The reasons for the state of each view take longer than the query.
    let view = |number| {
        format!(
            "CREATE MATERIALIZED VIEW v{number} AS SELECT v, MAX(k + {number}) AS k FROM t GROUP BY v;"
        )
    };
    engine.execute(&(0..100).map(view).collect::<String>()).expect("they are right");
    let sql = "EXPLAIN ANALYZE SELECT COUNT(*) AS n FROM alluvium.arrangements";
    let answer = text(&engine, sql);
    assert!(!answer.contains("it waited"), "{answer}");
}

#[test]
fn a_sort_that_moves_rows_to_files_says_so() {
    let engine = Engine::builder().workers(1).memory(8 << 20).open_in_memory().expect("it starts");
    let sorted = "SELECT repeat('x', 200) || (k * 7919 % 100000)::VARCHAR AS a FROM generate_series(0, 99999) AS s(k) ORDER BY a";
    let (sentences, text) = said(&engine, sorted);
    assert!(
        sentences.iter().any(|it| it.starts_with("there was no memory for its rows")),
        "{text}"
    );
    assert!(text.contains("\"spill_files\": "), "{text}");
}
