//! Stale reads answer while a commit is in flight.

use std::sync::mpsc;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::{Engine, Outcome, Session};

/// Whether the workers are held.
static HELD: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

fn hold(held: bool) {
    *HELD.0.lock().expect("no thread panics with it") = held;
    HELD.1.notify_all();
}

fn wait_while_held() {
    let held = HELD.0.lock().expect("no thread panics with it");
    drop(HELD.1.wait_while(held, |held| *held).expect("no thread panics with it"));
}

fn count(session: &mut Session) -> usize {
    match session.execute("SELECT * FROM v").expect("the query is right").pop() {
        Some(Outcome::Rows(rows)) => rows.map(|rows| rows.unwrap().num_rows()).sum(),
        other => panic!("a query has rows, not {other:?}"),
    }
}

#[test]
fn a_stale_read_does_not_wait_for_a_commit_in_flight() {
    let engine = Engine::builder().workers(2).open_in_memory().expect("an engine starts");
    engine
        .execute(
            "CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW v AS SELECT k FROM t;
             INSERT INTO t VALUES (1)",
        )
        .expect("the statements are right");
    let (mut stale, mut fresh) = (engine.session(), engine.session());
    stale.set_reads_stale(true);
    assert_eq!(count(&mut fresh), 1);
    hold(true);
    engine.instance.definitions.run_on_workers(wait_while_held);
    engine.execute("INSERT INTO t VALUES (2)").expect("a commit does not wait");
    assert_eq!(count(&mut stale), 1);
    let (send, counted) = mpsc::channel();
    let reader = std::thread::spawn(move || send.send(count(&mut fresh)));
    let early = counted.recv_timeout(Duration::from_millis(50));
    hold(false);
    assert!(early.is_err(), "a fresh read waits for the commit");
    assert_eq!(counted.recv().expect("it answers"), 2);
    reader.join().expect("no panic").expect("somebody receives");
    assert_eq!(count(&mut stale), 2);
}
