//! Functions that SQL defines, through restarts, and in places where they are large or deep.

use alluvium::{Engine, Error};
use tempfile::TempDir;

use crate::support::{query, settled};

/// The error of a statement, after its position.
fn position(engine: &Engine, sql: &str) -> String {
    match engine.execute(sql) {
        Err(Error::Sql { message, position, .. }) => {
            let at = position.map_or(String::new(), |at| format!("{}:{} ", at.line, at.column));
            format!("{at}{message}")
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn functions_and_the_views_that_call_them_go_on_after_a_restart() {
    for checkpoint in ["", "CHECKPOINT;"] {
        let folder = TempDir::new().unwrap();
        let state = format!("file:{}", folder.path().display());
        let open = || Engine::builder().workers(2).state(state.clone()).open().unwrap();
        let engine = open();
        engine
            .execute(&format!(
                "CREATE FUNCTION z(n INT) RETURNS INT AS n + 1; CREATE FUNCTION a(n INT) RETURNS INT AS z(z(n));
                 CREATE FUNCTION gone() AS 1; CREATE TABLE t (n INT);
                 CREATE MATERIALIZED VIEW v AS SELECT SUM(a(n)) AS s FROM t; INSERT INTO t VALUES (1), (2); {checkpoint}
                 INSERT INTO t VALUES (10); DROP FUNCTION gone",
            ))
            .unwrap();
        drop(engine);
        let engine = open();
        assert_eq!(settled(&engine, "SELECT s FROM v"), ["19"]);
        let names: Vec<String> = engine.functions().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["z", "a"], "each is behind those that it calls");
        assert_eq!(engine.functions()[1].calls, ["z"]);
        let view = engine.relations().unwrap().into_iter().find(|it| it.name == "v").unwrap();
        assert_eq!((view.calls, view.reads), (vec!["a".to_owned()], vec!["t".to_owned()]));
        assert!(position(&engine, "DROP FUNCTION a").contains("a() is called by \"v\""));
        engine.execute("ALTER VIEW v RENAME TO w; INSERT INTO t VALUES (100)").unwrap();
        drop(engine);
        let engine = open();
        assert_eq!(settled(&engine, "SELECT s FROM w"), ["121"]);
        assert_eq!(query(&engine, "SELECT a(1)"), ["3"]);
        engine.execute("DROP VIEW w; DROP FUNCTION a; DROP FUNCTION z").unwrap();
        drop(engine);
        assert!(open().functions().is_empty());
    }
}

#[test]
fn an_error_of_a_definition_is_in_it_and_later_at_the_call() {
    let engine = Engine::builder().open().unwrap();
    let error = position(&engine, "CREATE FUNCTION f(x INT)\nRETURNS INT\nAS x + y");
    assert!(error.starts_with("3:8 f() has no parameter \"y\""), "{error}");
    let error = position(&engine, "CREATE FUNCTION f(x INT) RETURNS INT\nAS 1 + length(x, 3)");
    assert!(error.starts_with("2:8 "), "{error}");
    engine
        .execute("CREATE MACRO f(x) AS upper(x) + 1; CREATE TABLE t (s VARCHAR, l INT[])")
        .unwrap();
    let error = position(&engine, "SELECT\n s, f(l)\nFROM t");
    assert!(error.starts_with("2:5 "), "{error}");
    let error = position(&engine, "CREATE VIEW v AS SELECT\n 1, f()\nFROM t");
    assert!(error.starts_with("2:5 f() takes 1 argument, and not 0"), "{error}");
}

#[test]
fn what_calls_stand_for_is_limited() {
    let engine = Engine::builder().open().unwrap();
    engine.execute("CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT AS x + x").unwrap();
    let nested = |times: usize| format!("SELECT {}1{}", "twice(".repeat(times), ")".repeat(times));
    assert_eq!(query(&engine, &nested(8)), ["256"]);
    let error = position(&engine, &nested(30));
    assert!(error.contains("stand for more than 40000"), "{error}");
    let body = format!("{}x{}", "abs(".repeat(40), ")".repeat(40));
    engine.execute(&format!("CREATE FUNCTION deep(x INT) RETURNS INT AS {body}")).unwrap();
    let nested = |times: usize| format!("SELECT {}1{}", "deep(".repeat(times), ")".repeat(times));
    assert_eq!(query(&engine, &nested(4)), ["1"]);
    let error = position(&engine, &nested(40));
    assert!(error.contains("levels deep"), "{error}");
    // A chain of functions each of which calls the one before twice.
    let mut refused = None;
    for number in 0..40 {
        let before = if number == 0 { "x".to_owned() } else { format!("g{}(x)", number - 1) };
        let sql =
            format!("CREATE FUNCTION g{number}(x BIGINT) RETURNS BIGINT AS {before} + {before}");
        if let Err(error) = engine.execute(&sql) {
            refused = Some(error.to_string());
            break;
        }
    }
    assert!(refused.unwrap().contains("stand for more than 40000"));
}
