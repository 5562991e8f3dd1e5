//! The last lines of the log, as `alluvium.log` shows them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use alluvium::unstable::LogLine;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// How many are kept.
const MOST: usize = 1_000;

/// A layer that keeps the last events.
#[derive(Clone, Default)]
pub(super) struct Recent(Arc<Mutex<VecDeque<LogLine>>>);

impl Recent {
    /// The last events, the oldest first.
    pub(super) fn lines(&self) -> Vec<LogLine> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

impl<S: Subscriber> Layer<S> for Recent {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let (mut fields, metadata) = (Fields::default(), event.metadata());
        event.record(&mut fields);
        let line = LogLine {
            at: SystemTime::now(),
            level: metadata.level().as_str(),
            target: metadata.target().to_owned(),
            message: fields.message,
            fields: Value::Object(fields.others).to_string(),
        };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MOST {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// The fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        self.others.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.add(field, format!("{value:?}").into()),
        }
    }
}
