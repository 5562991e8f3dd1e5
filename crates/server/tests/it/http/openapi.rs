//! `/openapi.json`, which is true.

use serde_json::{Value, json};

use super::door::{Answer, Door};

/// A request of an operation, with what it takes to succeed.
fn succeed(door: &Door, operation: &str) -> Answer {
    let json = [("Content-Type", "application/json")];
    match operation {
        "sql" => door.sql("SELECT 1"),
        "relations" => door.get("/v1/relations"),
        "rows" => door.get("/v1/relations/t?k=1&limit=1"),
        "insert" => door.insert("/v1/relations/t", "{\"k\": 5}\n", Some("key")),
        "put" => door.ask("PUT", "/v1/relations/t/1", &json, b"{}"),
        "delete" => door.ask("DELETE", "/v1/relations/t/1", &[], b""),
        // The stream ends with its client.
        "changes" => {
            let lines = super::changes::Lines::open(door, "/v1/relations/t/changes", "*/*");
            assert!(lines.is_ok());
            door.get("/healthz")
        }
        "createToken" => door.ask("POST", "/v1/tokens", &[], b""),
        "revokeTokens" => door.ask("DELETE", "/v1/tokens", &[], b""),
        "metrics" => door.get("/metrics"),
        "openapi" => door.get("/openapi.json"),
        "healthz" => door.get("/healthz"),
        "readyz" => door.get("/readyz"),
        "login" => door.get(&format!("/login?token={}", door.token())),
        other => panic!("the operation {other} is not known to this test"),
    }
}

/// An answer of the document, which may be a reference.
fn found<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
        Some(path) => document.pointer(path).unwrap_or_else(|| panic!("nothing at {path}")),
        None => value,
    }
}

/// Fails unless all references of a document lead somewhere.
fn check_references(document: &Value, value: &Value) {
    found(document, value);
    match value {
        Value::Object(members) => {
            members.values().for_each(|value| check_references(document, value))
        }
        Value::Array(items) => items.iter().for_each(|value| check_references(document, value)),
        _ => (),
    }
}

/// Fails unless an answer is one of those that an operation has.
fn check_answer(document: &Value, operation: &Value, answer: &Answer) {
    let name = operation["operationId"].as_str().unwrap_or_default();
    let described = &operation["responses"][answer.status.to_string()];
    assert!(!described.is_null(), "{name} answers {}: {}", answer.status, answer.text());
    let media_type = answer.header("content-type").split(';').next().unwrap_or_default();
    let content = &found(document, described)["content"];
    assert!(!content[media_type].is_null(), "{name}, {}: {media_type}", answer.status);
    let schema = found(document, &content[media_type]["schema"]);
    for required in schema["required"].as_array().into_iter().flatten() {
        let required = required.as_str().expect("a name");
        assert!(
            !answer.json()[required].is_null() || required == "epoch" || required == "rows",
            "{name}: {required}"
        );
    }
}

#[test]
fn every_operation_is_as_it_is_described() {
    let door = Door::open();
    door.run("CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)");
    let document = door.get("/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    check_references(&document, &document);
    let mut count = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            if method == "parameters" {
                continue;
            }
            count += 1;
            let name = operation["operationId"].as_str().expect("a name");
            let answer = succeed(&door, name);
            // There are no roles that could have tokens.
            let status = if path == "/v1/tokens" { 409 } else { 200 };
            assert_eq!(answer.status, status, "{name}: {}", answer.text());
            if name != "changes" {
                check_answer(&document, operation, &answer);
            }
            // What nobody can answer is described as well.
            let path = path.replace("{name}", "none").replace("{key}", "1");
            let method = method.to_ascii_uppercase();
            let json = [("Content-Type", "application/json"), ("Accept", "image/png")];
            for headers in [&[][..], &json[..1], &json] {
                check_answer(&document, operation, &door.ask(&method, &path, headers, b"{}"));
            }
            let other = door.ask(&method, &path, &[("Origin", "http://evil.example")], b"");
            check_answer(&document, operation, &other);
        }
    }
    assert_eq!(count, 14);
}

#[test]
fn what_is_not_described_is_not_there() {
    let door = Door::open();
    for path in
        ["/x", "/v1", "/v1/", "/v1/nothing", "/v1/relations/", "/metrics/", "/openapi.json/x"]
    {
        let answer = door.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.json()["title"], json!("Not Found"));
    }
    for (method, path) in
        [("DELETE", "/v1/sql"), ("PATCH", "/v1/relations/t"), ("TRACE", "/healthz")]
    {
        assert_eq!(door.ask(method, path, &[], b"").status, 405, "{method} {path}");
    }
}
