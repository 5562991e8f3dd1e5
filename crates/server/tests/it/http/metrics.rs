//! `/metrics`.

use super::door::Door;
use super::roles::{ADA, ask, basic, door as door_with_roles};

#[test]
fn metrics_are_text_of_open_metrics() {
    let door = Door::open();
    door.engine.execute("CREATE TABLE \"a \"\"b\"\"\" (k BIGINT PRIMARY KEY); INSERT INTO \"a \"\"b\"\"\" VALUES (1)").expect("it is right");
    assert_eq!(door.sql("SELECT COUNT(*) FROM \"a \"\"b\"\"\"").status, 200);
    let answer = door.get("/metrics");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let text = answer.text();
    for line in [
        "# TYPE alluvium_epochs_committed counter",
        "# TYPE alluvium_epoch_complete_delay_seconds histogram",
        "# TYPE alluvium_memory_bytes gauge",
        "alluvium_relations{state=\"running\"} 1.0",
        r#"alluvium_state_rows{relation="\"a \"\"b\"\"\""} 1.0"#,
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    let bucket =
        text.lines().find(|line| line.contains("complete_delay_seconds_bucket{le=\"+Inf\"}"));
    let count = text.lines().find(|line| line.contains("complete_delay_seconds_count"));
    let number =
        |line: Option<&str>| line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned);
    assert!(number(bucket).is_some() && number(bucket) == number(count), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn a_role_gets_the_metrics_of_what_it_may_read() {
    let door = door_with_roles();
    door.engine.execute("CREATE TABLE secret (k BIGINT PRIMARY KEY)").expect("it is right");
    let answer = ask(&door, "GET", "/metrics", &basic(ADA));
    let text = answer.text();
    assert_eq!(answer.status, 200, "{text}");
    assert!(text.contains("relation=\"t\"") && !text.contains("secret"), "{text}");
    assert!(!text.contains("alluvium_memory") && !text.contains("alluvium_sessions"), "{text}");
    assert_eq!(ask(&door, "GET", "/metrics", "Bearer none").status, 401);
}
