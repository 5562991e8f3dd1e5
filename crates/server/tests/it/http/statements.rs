//! `POST /v1/sql`.

use std::io::Cursor;

use arrow::ipc::reader::StreamReader;
use serde_json::json;

use super::door::Door;

#[test]
fn rows_come_in_the_format_that_is_accepted() {
    let door = Door::open();
    let body =
        json!({ "sql": "SELECT 1 AS a, 'x,\"y' AS \"b c\" UNION ALL SELECT 2, NULL ORDER BY a" });
    let ask = |accept: &str| {
        let headers = [("Content-Type", "application/json"), ("Accept", accept)];
        door.ask("POST", "/v1/sql", &headers, body.to_string().as_bytes())
    };
    let answer = door.post(&body);
    assert_eq!(answer.header("content-type"), "application/json");
    let expected = json!({
        "columns": [{ "name": "a", "type": "BIGINT" }, { "name": "b c", "type": "VARCHAR" }],
        "rows": [{ "a": 1, "b c": "x,\"y" }, { "a": 2, "b c": null }],
    });
    assert_eq!(answer.json()["rows"], expected["rows"]);
    assert_eq!(answer.json()["columns"][1], expected["columns"][1]);
    let lines = ask("application/x-ndjson");
    assert_eq!(lines.text(), "{\"a\":1,\"b c\":\"x,\\\"y\"}\n{\"a\":2,\"b c\":null}\n");
    let csv = ask("text/csv");
    assert_eq!(csv.text(), "a,b c\r\n1,\"x,\"\"y\"\r\n2,\r\n");
    let arrow = ask("application/vnd.apache.arrow.stream");
    let batches = StreamReader::try_new(Cursor::new(arrow.body), None).expect("a stream");
    assert_eq!(batches.map(|batch| batch.expect("rows").num_rows()).sum::<usize>(), 2);
    assert_eq!(ask("image/png").status, 406);
    let none = door.sql("SELECT 1 AS a WHERE false").json();
    assert_eq!(none["rows"], json!([]));
}

#[test]
fn columns_of_one_name_are_told_apart_in_json() {
    let door = Door::open();
    let sql = "SELECT 1 AS n, 2 AS n, 3 AS n_2, 4 AS n, 5 AS m";
    let answer = door.sql(sql).json();
    let names = answer["columns"].as_array().expect("a list").iter().map(|it| &it["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["n", "n_3", "n_2", "n_4", "m"]);
    assert_eq!(answer["rows"], json!([{ "n": 1, "n_3": 2, "n_2": 3, "n_4": 4, "m": 5 }]));
    let ask = |accept: &str| {
        let headers = [("Content-Type", "application/json"), ("Accept", accept)];
        door.ask("POST", "/v1/sql", &headers, json!({ "sql": sql }).to_string().as_bytes()).text()
    };
    assert_eq!(ask("application/x-ndjson"), "{\"n\":1,\"n_3\":2,\"n_2\":3,\"n_4\":4,\"m\":5}\n");
    assert_eq!(ask("text/csv"), "n,n,n_2,n,m\r\n1,2,3,4,5\r\n");
}

#[test]
fn statements_have_parameters_and_settings() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT PRIMARY KEY, name VARCHAR, at DATE, price DECIMAL(10, 2))");
    let sql = "INSERT INTO t VALUES ($1, $2, $3, $4)";
    let parameters = json!([1, "'); DROP TABLE t; --", "2024-01-31", "1.50"]);
    let done = door.post(&json!({ "sql": sql, "parameters": parameters }));
    assert_eq!(done.json(), json!({ "command": "INSERT", "rows": 1, "epoch": 1 }));
    let body =
        json!({ "sql": "SELECT * FROM t WHERE k = $1 AND price > $2", "parameters": [1, 1.25] });
    let rows = door.post(&body).json();
    assert_eq!(rows["rows"][0]["name"], "'); DROP TABLE t; --");
    assert_eq!(rows["rows"][0]["at"], "2024-01-31");
    let body = json!({ "sql": "SHOW timezone", "settings": { "TimeZone": "Europe/Berlin" } });
    assert!(door.post(&body).text().contains("Europe/Berlin"));
    let slow = "SELECT COUNT(*) FROM generate_series(1, 10000000000) AS s(n) WHERE n % 7 = 3";
    let late = door.post(&json!({ "sql": slow, "settings": { "statement_timeout": "50ms" } }));
    assert_eq!((late.status, late.json()["sqlstate"].as_str()), (504, Some("57014")));
    let unknown = door.post(&json!({ "sql": "SELECT 1", "settings": { "no_such_setting": 1 } }));
    assert_eq!(unknown.status, 400, "{}", unknown.text());
}

#[test]
fn errors_are_problems_with_a_place() {
    let door = Door::open();
    let answer = door.sql("SELECT 1,\n  nothing FROM nowhere");
    let problem = answer.json();
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!((answer.status, problem["status"].as_u64()), (400, Some(400)));
    assert_eq!(problem["sqlstate"], "42P01");
    assert_eq!(problem["position"]["line"], 2);
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("nowhere")));
    door.run("CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)");
    let taken = door.sql("INSERT INTO t VALUES (1)");
    assert_eq!((taken.status, taken.json()["sqlstate"].as_str()), (409, Some("23505")));
    let divided = door.sql("SELECT 1 / (k - 1) FROM t");
    assert!(divided.status == 200 || divided.status == 400, "{}", divided.text());
    for sql in ["", " ; -- nothing", "SELEKT", "SELECT $1", "COPY t FROM STDIN", "SUBSCRIBE t"] {
        assert_eq!(door.sql(sql).status, 400, "{sql}");
    }
    assert_eq!(door.sql("COPY t TO '/tmp/never'").status, 403);
}

#[test]
fn several_statements_have_one_session_and_one_answer() {
    let door = Door::open();
    let done = door
        .run("CREATE TABLE t (k BIGINT); INSERT INTO t VALUES (1), (2); SELECT SUM(k) AS s FROM t");
    assert_eq!(done["rows"][0]["s"], 3);
    door.run("BEGIN; INSERT INTO t VALUES (3); COMMIT");
    let open = door.sql("BEGIN; INSERT INTO t VALUES (4)");
    assert_eq!((open.status, open.json()["sqlstate"].as_str()), (400, Some("25000")));
    // The first error ends them; those before have had their effect.
    assert_eq!(
        door.sql("INSERT INTO t VALUES (5); SELECT x; INSERT INTO t VALUES (6)").status,
        400
    );
    let rows = door.run("SELECT SUM(k) AS s FROM t");
    assert_eq!(rows["rows"][0]["s"], 11);
    let body = json!({ "sql": "SELECT 1; SELECT $1", "parameters": [1] });
    assert_eq!(door.post(&body).status, 400);
}

#[test]
fn an_error_after_rows_is_seen() {
    let door = Door::open();
    // It fails at the last row.
    let sql = "SELECT CAST(CASE WHEN n = 300000 THEN 'x' ELSE '1' END AS BIGINT) AS a FROM generate_series(1, 300000) AS s(n)";
    let json = door.sql(sql);
    assert!(json.is_whole && json.status == 200, "{}", json.status);
    let parsed = json.json();
    assert!(parsed["rows"].as_array().is_some_and(|rows| rows.len() > 100_000));
    assert_eq!(parsed["error"]["status"], 400);
    for accept in ["application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"] {
        let headers = [("Content-Type", "application/json"), ("Accept", accept)];
        let body = json!({ "sql": sql }).to_string();
        let answer = door.ask("POST", "/v1/sql", &headers, body.as_bytes());
        assert!(!answer.is_whole && answer.status == 200, "{accept}");
    }
}

#[test]
fn rows_of_a_megabyte_come_whole() {
    let door = Door::open();
    let rows = door.run("SELECT repeat('x', 1000000) AS x FROM generate_series(1, 20) AS s(n)");
    let rows = rows["rows"].as_array().expect("rows").clone();
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| row["x"].as_str().is_some_and(|x| x.len() == 1_000_000)));
}
