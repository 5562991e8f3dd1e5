//! Tables and views that changes do not reach: an epoch is complete in them all the same.

use std::time::Duration;

use alluvium::Engine;

use crate::support::{batch_lines, engine, engine_with, query, without_hanging};

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// A query over one table, two tables, or a table and a view.
fn select(random: &mut Random, views: &[String]) -> String {
    let (one, other) = (random.below(5), random.below(5));
    let view = views.get(random.below(views.len().max(1) as u64) as usize);
    match (random.below(6), view) {
        (0, _) => format!("SELECT k, v FROM t{one} WHERE v > 3"),
        (1, _) => format!("SELECT k, SUM(v) AS v FROM t{one} GROUP BY k"),
        (2, _) => format!("SELECT a.k, b.v FROM t{one} a JOIN t{other} b ON a.k = b.k"),
        (3, _) => format!("SELECT a.k, b.v FROM t{one} a LEFT JOIN t{other} b ON a.k = b.k"),
        (4, Some(view)) => format!(
            "SELECT a.k, MAX(b.v) AS v FROM {view} a JOIN t{one} b ON a.k = b.k GROUP BY a.k"
        ),
        _ => format!("SELECT k, v FROM t{one} UNION ALL SELECT k, v FROM t{other}"),
    }
}

/// Inserts into one table after the other, without waiting: several epochs are in flight.
fn insert(engine: &Engine, random: &mut Random) {
    for _ in 0..12 {
        let (table, k, v) = (random.below(5), random.below(6), random.below(9));
        engine.execute(&format!("INSERT INTO t{table} VALUES ({k}, {v})")).expect("a row");
    }
}

/// Changes a few rows of a few of the tables, in one transaction.
fn change(engine: &Engine, random: &mut Random) {
    let mut session = engine.session();
    session.execute("BEGIN").expect("none is open");
    for _ in 0..1 + random.below(2) {
        let (table, k, v) = (random.below(5), random.below(6), random.below(9));
        let sql = match random.below(4) {
            0 => format!("DELETE FROM t{table} WHERE k = {k}"),
            1 => format!("UPDATE t{table} SET v = {v} WHERE k = {k}"),
            _ => format!("INSERT INTO t{table} VALUES ({k}, {v}), ({v}, {k})"),
        };
        session.execute(&sql).expect("the statement is right");
    }
    session.execute("COMMIT").expect("the engine is well");
}

#[test]
fn views_come_and_go_while_some_tables_change_and_others_do_not() {
    for workers in 1..=3 {
        let engine = engine(workers);
        let mut random = Random(workers as u64);
        for table in 0..5 {
            let (key, options) = match table % 2 {
                0 => (" PRIMARY KEY", " WITH ('on_conflict' = 'replace')"),
                _ => ("", ""),
            };
            engine
                .execute(&format!("CREATE TABLE t{table} (k BIGINT{key}, v BIGINT){options}"))
                .expect("a table");
        }
        let mut views: Vec<(String, String)> = Vec::new();
        for step in 0..60 {
            match random.below(5) {
                0 => {
                    let names: Vec<_> = views.iter().map(|(name, _)| name.clone()).collect();
                    let (name, select) = (format!("v{step}"), select(&mut random, &names));
                    let sql = format!("CREATE MATERIALIZED VIEW {name} AS {select}");
                    engine.execute(&sql).expect("a view");
                    views.push((name, select));
                }
                1 if !views.is_empty() => {
                    let at = random.below(views.len() as u64) as usize;
                    let sql = format!("DROP VIEW {}", views[at].0);
                    if engine.execute(&sql).is_ok() {
                        views.remove(at);
                    }
                }
                2 => insert(&engine, &mut random),
                _ => change(&engine, &mut random),
            }
            for (name, select) in &views {
                let view = query(&engine, &format!("SELECT * FROM {name}"));
                assert_eq!(view, query(&engine, select), "{name}, {workers} workers, step {step}");
            }
        }
    }
}

#[test]
fn a_subscription_to_what_rests_gets_its_next_change() {
    for workers in 1..=3 {
        without_hanging(move || {
            let engine = engine_with(
                workers,
                "CREATE TABLE busy (k BIGINT); CREATE TABLE quiet (k BIGINT);
                 CREATE MATERIALIZED VIEW v AS SELECT k FROM quiet;
                 INSERT INTO quiet VALUES (1)",
            );
            for k in 0..20 {
                engine.execute(&format!("INSERT INTO busy VALUES ({k})")).expect("a row");
            }
            let mut changes = engine.subscribe("v").expect("a view");
            let first = changes.next().expect("a snapshot").expect("no error");
            assert_eq!((first.epoch, batch_lines(&first.rows)), (21, vec!["1".to_owned()]));
            for k in 20..40 {
                engine.execute(&format!("INSERT INTO busy VALUES ({k})")).expect("a row");
            }
            engine.wait(41).expect("it is complete");
            assert!(changes.try_next().expect("no error").is_none());
            engine.execute("INSERT INTO quiet VALUES (2)").expect("a row");
            let second = changes.next().expect("a change").expect("no error");
            assert_eq!((second.epoch, batch_lines(&second.rows)), (42, vec!["2".to_owned()]));
        });
    }
}

#[test]
fn an_epoch_without_changes_is_complete() {
    for workers in 1..=3 {
        without_hanging(move || {
            let engine = engine_with(
                workers,
                "CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW v AS SELECT k FROM t",
            );
            let later = std::time::SystemTime::now() + Duration::from_secs(60);
            let epoch = engine.begin_at(later).and_then(|tx| tx.commit()).expect("time goes on");
            engine.wait(epoch).expect("it is complete");
            assert!(query(&engine, "SELECT * FROM v").is_empty());
        });
    }
}
