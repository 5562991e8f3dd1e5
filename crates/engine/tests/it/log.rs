//! The log of an engine, as the subscriber of a program gets it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium::Engine;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Notes what the engine logs on this thread, in order.
#[derive(Clone, Default)]
struct Notes(Arc<Inner>);

#[derive(Default)]
struct Inner {
    spans: AtomicU64,
    notes: Mutex<Vec<String>>,
}

impl Notes {
    fn add(&self, note: String) {
        self.0.notes.lock().push(note);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.notes.lock())
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() != "milliseconds" {
            self.0 += &format!(" {}={value:?}", field.name());
        }
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("alluvium")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        self.add(fields.0);
        Id::from_u64(self.0.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _span: &Id, values: &Record<'_>) {
        let mut fields = Fields("..".to_owned());
        values.record(&mut fields);
        self.add(fields.0);
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.add(fields.0);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[test]
fn calls_are_spans_and_slow_statements_are_events() {
    let notes = Notes::default();
    let (sql, key) = ("INSERT INTO t VALUES (1, 'secret')", [1_i64.into()]);
    tracing::subscriber::with_default(notes.clone(), || {
        let db = Engine::builder().workers(1).open_in_memory().unwrap();
        assert_eq!(notes.take(), ["INFO message=engine opened workers=1 epoch=0"]);
        db.execute("CREATE TABLE t (a BIGINT PRIMARY KEY, b VARCHAR)").unwrap();
        assert!(notes.take().contains(&".. command=\"CREATE TABLE\"".to_owned()));
        db.execute(sql).unwrap();
        let inserted = notes.take();
        assert!(inserted.contains(&".. command=\"INSERT\"".to_owned()), "{inserted:?}");
        assert!(!inserted.iter().any(|note| note.contains("secret")), "{inserted:?}");
        let mut transaction = db.begin().unwrap();
        transaction.set_key("k");
        transaction.commit().unwrap();
        assert_eq!(notes.take(), ["commit"]);
        db.view("t").unwrap().get(&key).unwrap();
        assert!(notes.take().contains(&"get".to_owned()));
        let _subscription = db.subscribe("t").unwrap();
        assert_eq!(notes.take()[0], "subscribe view=\"t\"");
    });
}

#[test]
fn statements_are_slow_that_take_as_long_as_the_program_says() {
    let slow = |time: Duration| {
        let notes = Notes::default();
        tracing::subscriber::with_default(notes.clone(), || {
            let db = Engine::builder().workers(1).slow_statement(time).open_in_memory().unwrap();
            db.execute("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)").unwrap();
        });
        let notes = notes.take();
        notes.into_iter().filter(|note| note.starts_with("WARN")).collect::<Vec<_>>()
    };
    let of = |command: &str| format!("WARN message=slow statement command=\"{command}\"");
    assert_eq!(slow(Duration::from_nanos(1)), [of("CREATE TABLE"), of("INSERT")]);
    assert_eq!(slow(Duration::ZERO), [""; 0]);
    assert_eq!(slow(Duration::MAX), [""; 0]);
}
