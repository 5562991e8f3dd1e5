//! System relations that tell what the engine does: state, operators, epochs, memory, compactions, sources, outputs, sessions, locks,
//! the log and standbys.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::objects::{some_text, text};

/// All state.
pub(crate) const ARRANGEMENTS: &str = "alluvium.arrangements";
/// The work of operators.
pub(crate) const OPERATORS: &str = "alluvium.operators";
/// How far the engine and its relations are.
pub(crate) const EPOCHS: &str = "alluvium.epochs";
/// The memory and files that are used.
pub(crate) const MEMORY: &str = "alluvium.memory";
/// The larger merges and moves to files.
pub(crate) const COMPACTIONS: &str = "alluvium.compactions";
/// The inputs of tables.
pub(crate) const SOURCES: &str = "alluvium.sources";
/// The outputs of relations.
pub(crate) const OUTPUTS: &str = "alluvium.outputs";
/// The sessions.
pub(crate) const SESSIONS: &str = "alluvium.sessions";
/// The locks that transactions hold and wait for.
pub(crate) const LOCKS: &str = "alluvium.locks";
/// The last lines of the log.
pub(crate) const LOG: &str = "alluvium.log";

/// How far a standby is behind.
pub(crate) const STANDBY: &str = "alluvium.standby";

/// The names of all of them.
pub(super) const METRICS: [&str; 11] = [
    ARRANGEMENTS,
    OPERATORS,
    EPOCHS,
    MEMORY,
    COMPACTIONS,
    SOURCES,
    OUTPUTS,
    SESSIONS,
    LOCKS,
    LOG,
    STANDBY,
];

fn number(name: &str) -> Field {
    Field::new(name, DataType::UInt64, false)
}

fn some_number(name: &str) -> Field {
    Field::new(name, DataType::UInt64, true)
}

fn some_moment(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())), true)
}

fn counts(name: &str) -> Field {
    let element = Field::new_list_field(DataType::UInt64, true);
    Field::new(name, DataType::List(Arc::new(element)), true)
}

static ARRANGEMENTS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        number("worker"),
        text("view"),
        text("operator"),
        text("key"),
        text("id"),
        text("fingerprint"),
        number("rows"),
        number("memory_bytes"),
        number("disk_bytes"),
        some_text("bound"),
        some_number("rows_below"),
        some_text("reason"),
        number("batches"),
        number("merges"),
        number("merges_for_reads"),
        number("merges_for_churn"),
        number("seeks"),
        number("running_merges"),
        number("debt_bytes"),
        number("merged_bytes"),
        Field::new("write_amplification", DataType::Float64, true),
    ]))
});

static OPERATORS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        number("worker"),
        some_number("dataflow"),
        some_text("view"),
        number("operator"),
        text("name"),
        some_text("fingerprint"),
        number("busy_ns"),
        number("runs"),
        number("rows_out"),
        number("bytes_out"),
        number("minute_busy_ns"),
        number("minute_runs"),
        number("minute_rows_out"),
        number("minute_bytes_out"),
        some_number("rows_in"),
        some_number("bytes_in"),
    ]))
});

static EPOCHS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        some_text("relation"),
        some_number("committed"),
        some_number("durable"),
        some_number("complete"),
        some_number("durable_p50_us"),
        some_number("durable_p99_us"),
        some_number("complete_p50_us"),
        some_number("complete_p99_us"),
        counts("durable_delays"),
        counts("complete_delays"),
    ]))
});

static MEMORY_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("kind"),
        some_text("view"),
        number("bytes"),
        some_number("budget"),
    ]))
});

static COMPACTIONS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        number("worker"),
        text("view"),
        text("operator"),
        text("id"),
        text("kind"),
        text("state"),
        number("rows"),
        number("bytes"),
        number("done_bytes"),
        some_number("written_bytes"),
        number("time_ms"),
        number("age_ms"),
    ]))
});

static SOURCES_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("relation"),
        number("number"),
        text("name"),
        text("path"),
        text("state"),
        some_text("error"),
        some_text("position"),
        number("rows"),
        number("bytes"),
        number("refused"),
        number("minute_rows"),
        number("minute_bytes"),
        some_number("lag_bytes"),
        some_number("lag_rows"),
        some_moment("last_rows"),
        some_number("lag_ms"),
    ]))
});

static OUTPUTS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        text("relation"),
        text("path"),
        text("mode"),
        text("state"),
        some_text("error"),
        some_number("epoch"),
        number("rows"),
        number("minute_rows"),
        some_number("lag_epochs"),
        some_number("lag_rows"),
        some_number("lag_bytes"),
        some_number("lag_ms"),
        some_moment("last_rows"),
        Field::new("holds_commits", DataType::Boolean, true),
        Field::new("exactly_once", DataType::Boolean, true),
    ]))
});

static SESSIONS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        number("session"),
        Field::new("client", DataType::Int32, true),
        some_text("protocol"),
        some_text("address"),
        some_text("role"),
        some_text("application_name"),
        text("state"),
        some_text("command"),
        number("statements"),
        some_moment("opened"),
        some_moment("last_call"),
        some_number("transaction"),
        some_moment("transaction_begun"),
    ]))
});

static LOCKS_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        number("transaction"),
        some_number("session"),
        some_text("relation"),
        text("kind"),
        some_text("key"),
        text("mode"),
        Field::new("granted", DataType::Boolean, false),
    ]))
});

static LOG_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        some_moment("time"),
        text("level"),
        text("target"),
        text("message"),
        text("fields"),
    ]))
});

static STANDBY_SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        number("epoch"),
        number("records_behind"),
        number("milliseconds_behind"),
        number("silent_milliseconds"),
    ]))
});

/// The columns of one of them.
pub(super) fn schema(name: &str) -> Option<&'static SchemaRef> {
    Some(match name {
        ARRANGEMENTS => &ARRANGEMENTS_SCHEMA,
        OPERATORS => &OPERATORS_SCHEMA,
        EPOCHS => &EPOCHS_SCHEMA,
        MEMORY => &MEMORY_SCHEMA,
        COMPACTIONS => &COMPACTIONS_SCHEMA,
        SOURCES => &SOURCES_SCHEMA,
        OUTPUTS => &OUTPUTS_SCHEMA,
        SESSIONS => &SESSIONS_SCHEMA,
        LOCKS => &LOCKS_SCHEMA,
        LOG => &LOG_SCHEMA,
        STANDBY => &STANDBY_SCHEMA,
        _ => return None,
    })
}
