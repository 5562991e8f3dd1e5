//! `/v1/relations`, and one row of a table.

use serde_json::{Value, json};

use super::door::Door;

fn door() -> Door {
    let door = Door::open();
    door.run(
        "CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'b'); \
         CREATE MATERIALIZED VIEW totals AS SELECT v, COUNT(*) AS n FROM t GROUP BY v",
    );
    door
}

#[test]
fn relations_are_listed() {
    let list = door().get("/v1/relations").json();
    let names: Vec<_> =
        list["rows"].as_array().expect("rows").iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["t", "totals"]);
    assert_eq!(list["rows"][1]["kind"], "materialized view");
}

#[test]
fn rows_are_found_by_their_columns() {
    let door = door();
    let rows = |path: &str| {
        let answer = door.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()["rows"].as_array().expect("rows").clone()
    };
    assert_eq!(rows("/v1/relations/t").len(), 3);
    assert_eq!(rows("/v1/relations/t?v=b").len(), 2);
    assert_eq!(rows("/v1/relations/t?v=b&k=3"), [json!({ "k": 3, "v": "b" })]);
    assert_eq!(rows("/v1/relations/t?limit=1").len(), 1);
    assert_eq!(rows("/v1/relations/t?limit=0").len(), 0);
    assert_eq!(rows("/v1/relations/totals?v=b"), [json!({ "v": "b", "n": 2 })]);
    assert_eq!(rows("/v1/relations/public.t?v=%27%20OR%201%3D1%20--").len(), 0);
    for path in [
        "/v1/relations/t?x=1",
        "/v1/relations/t?k=x",
        "/v1/relations/t?limit=x",
        "/v1/relations/t?k%22=1",
    ] {
        assert_eq!(door.get(path).status, 400, "{path}");
    }
}

#[test]
fn a_relation_that_is_not_there_is_not_found() {
    let door = door();
    for path in [
        "/v1/relations/none",
        "/v1/relations/s.t",
        "/v1/relations/T",
        "/v1/relations/t%22%3B%20DROP%20TABLE%20t%3B%20--",
        "/v1/relations/%22",
        "/v1/relations/%00",
        "/v1/relations/none/changes",
        "/v1/relations/..",
    ] {
        let answer = door.get(path);
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    assert_eq!(door.get("/v1/relations/none").json()["sqlstate"], "42P01");
    assert_eq!(door.get("/v1/relations/%FF").status, 400);
    assert_eq!(door.insert("/v1/relations/none", "{\"a\":1}\n", None).status, 404);
    assert_eq!(door.ask("DELETE", "/v1/relations/none/1", &[], b"").status, 404);
    assert_eq!(door.get("/v1/relations/t").json()["rows"].as_array().map(Vec::len), Some(3));
}

#[test]
fn any_name_is_found() {
    let door = Door::open();
    door.run("CREATE SCHEMA \"my.schema\"");
    for (sql, path) in [
        ("\"a.b\"", "%22a.b%22"),
        ("\"with \"\"quotes\"\"\"", "%22with%20%22%22quotes%22%22%22"),
        ("\"Größe\"", "Gr%C3%B6%C3%9Fe"),
        ("\"a/b\"", "a%2Fb"),
        ("\"my.schema\".\"T\"", "%22my.schema%22.T"),
        ("\"select\"", "select"),
    ] {
        door.run(&format!("CREATE TABLE {sql} (k BIGINT PRIMARY KEY, \"v w\" VARCHAR)"));
        let path = format!("/v1/relations/{path}");
        let inserted = door.insert(&path, "{\"k\": 1, \"v w\": \"ä\"}\n", None);
        assert_eq!(inserted.status, 200, "{sql}: {}", inserted.text());
        let rows = door.get(&format!("{path}?v+w=%C3%A4")).json();
        assert_eq!(rows["rows"], json!([{ "k": 1, "v w": "ä" }]), "{sql}");
        assert_eq!(door.ask("DELETE", &format!("{path}/1"), &[], b"").json()["rows"], 1);
    }
}

fn put(door: &Door, path: &str, row: &Value) -> super::door::Answer {
    door.ask("PUT", path, &[("Content-Type", "application/json")], row.to_string().as_bytes())
}

#[test]
fn rows_are_put_and_deleted_by_key() {
    let door = Door::open();
    door.run("CREATE TABLE t (a VARCHAR, b BIGINT, v VARCHAR DEFAULT 'none', PRIMARY KEY (a, b))");
    let changed = put(&door, "/v1/relations/t/x%2Fy/1", &json!({ "v": "one" }));
    assert_eq!(changed.json(), json!({ "rows": 1, "epoch": 1 }));
    put(&door, "/v1/relations/t/x%2Fy/1", &json!({ "a": "x/y", "b": 1, "v": "two" }));
    put(&door, "/v1/relations/public.t/changes/2", &json!({}));
    let rows = door.run("SELECT * FROM t ORDER BY b")["rows"].clone();
    assert_eq!(
        rows,
        json!([{ "a": "x/y", "b": 1, "v": "two" }, { "a": "changes", "b": 2, "v": "none" }])
    );
    for (path, row) in [
        ("/v1/relations/t/x", json!({})),
        ("/v1/relations/t/x/1/2", json!({})),
        ("/v1/relations/t/x/y", json!({})),
        ("/v1/relations/t/x/1", json!({ "b": 2 })),
        ("/v1/relations/t/x/1", json!({ "no": 2 })),
        ("/v1/relations/t/x/1", json!([])),
    ] {
        let answer = put(&door, path, &row);
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
    }
    assert_eq!(door.ask("PUT", "/v1/relations/t/x/1", &[], b"{}").status, 415);
    let delete = |path: &str| door.ask("DELETE", path, &[], b"").json()["rows"].clone();
    assert_eq!(delete("/v1/relations/t/x%2Fy/1"), 1);
    assert_eq!(delete("/v1/relations/t/x%2Fy/1"), 0);
    door.run("CREATE TABLE keyless (a BIGINT)");
    assert_eq!(put(&door, "/v1/relations/keyless/1", &json!({})).status, 400);
    door.run("CREATE TABLE one (k VARCHAR PRIMARY KEY)");
    assert_eq!(put(&door, "/v1/relations/one/changes", &json!({})).status, 200);
    assert_eq!(delete("/v1/relations/one/changes"), 1);
}
