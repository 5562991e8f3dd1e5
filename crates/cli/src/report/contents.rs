//! What a report says: answers of the server, redacted.

use std::collections::HashMap;

use alluvium::arrow::array::{AsArray, RecordBatch};
use alluvium::arrow::datatypes::Int64Type;
use alluvium::arrow::util::display::{ArrayFormatter, FormatOptions};
use alluvium::name::written;
use alluvium_client::{Client, Error, Result};
use serde_json::Value;

use super::flame::Frame;
use super::page::Page;
use super::redacted;

/// The system relations whose columns are shown as they are: names of relations and columns, and numbers.
const TABLES: [(&str, &str); 8] = [
    ("Relations", "SELECT name, kind, state, rows, columns, indexes FROM alluvium.relations ORDER BY name"),
    (
        "Epochs",
        "SELECT relation, committed, durable, complete, durable_p50_us, durable_p99_us, complete_p50_us, complete_p99_us
         FROM alluvium.epochs ORDER BY relation NULLS FIRST",
    ),
    ("Memory", "SELECT kind, view, bytes, budget FROM alluvium.memory ORDER BY bytes DESC"),
    (
        "State",
        "SELECT worker, view, operator, key, id, rows, memory_bytes, disk_bytes, rows_below, batches, merges, merges_for_reads,
             merges_for_churn, seeks, running_merges, debt_bytes, merged_bytes
         FROM alluvium.arrangements ORDER BY memory_bytes + disk_bytes DESC",
    ),
    (
        "Merges and moves to files",
        "SELECT worker, view, operator, id, kind, state, rows, bytes, done_bytes, written_bytes, time_ms, age_ms
         FROM alluvium.compactions ORDER BY age_ms",
    ),
    (
        "Sources",
        "SELECT relation, number, state, rows, bytes, refused, minute_rows, minute_bytes, lag_bytes, lag_rows, last_rows
         FROM alluvium.sources ORDER BY relation, number",
    ),
    (
        "Outputs",
        "SELECT relation, mode, state, epoch, rows, minute_rows, lag_epochs, lag_rows, lag_bytes, lag_ms FROM alluvium.outputs
         ORDER BY relation",
    ),
    (
        "Sessions",
        "SELECT protocol, state, command, COUNT(*) AS sessions, SUM(statements) AS statements FROM alluvium.sessions
         GROUP BY protocol, state, command ORDER BY protocol, state, command",
    ),
];

/// The fields of lines of the log that are shown; the others may have messages of errors, names of roles and addresses.
const FIELDS: [&str; 16] = [
    "blobs",
    "bytes",
    "clients",
    "command",
    "door",
    "epoch",
    "kind",
    "milliseconds",
    "number",
    "operator",
    "relation",
    "rows",
    "source",
    "table",
    "workers",
    "written",
];

/// The report on a view that is watched for some seconds.
pub(super) async fn page(client: &Client, view: &str, seconds: u32) -> Result<String> {
    let mut page = Page::new(&format!("Alluvium: {view}"));
    let version = read(client, "SELECT version()").await?;
    let version = texts(&version, 0).into_iter().next().unwrap_or_default();
    page.paragraph(&format!(
        "{version}; written by alluvium {} on {} {}.",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    ));
    let before = operators(client).await?;
    let name = written(view);
    let sql = format!("EXPLAIN (ANALYZE, FORMAT json) {name} FOR INTERVAL '{seconds}' SECOND");
    let explained = read(client, &sql).await?;
    let after = operators(client).await?;
    let explained: Value =
        serde_json::from_str(&texts(&explained, 0).join("\n")).unwrap_or_default();

    page.heading("Definitions");
    for statement in definitions(client, view).await? {
        page.lines(&redacted::statement(&statement));
    }
    page.heading(&format!("Plan, measured for {seconds} s"));
    page.lines(&plan(&explained));
    page.heading("Time of operators");
    let watched = frame(&after, |operator| before.get(operator).copied().unwrap_or(0)).svg();
    match watched.is_empty() {
        false => page.picture(&watched),
        true => {
            page.paragraph("None ran meanwhile; this is their time since they were made.");
            page.picture(&frame(&after, |_| 0).svg());
        }
    }
    for (heading, sql) in TABLES {
        page.heading(heading);
        table(&mut page, &read(client, sql).await?)?;
    }
    page.heading("Settings");
    let sql = "SELECT name, setting FROM alluvium.settings WHERE setting ~ '^(on|off|[0-9]+[a-z]*)$' ORDER BY name";
    table(&mut page, &read(client, sql).await?)?;
    page.heading("Log");
    let log =
        read(client, "SELECT time, level, target, message, fields FROM alluvium.log ORDER BY time")
            .await?;
    page.lines(&lines(&log)?);
    Ok(page.end())
}

async fn read(client: &Client, sql: &str) -> Result<RecordBatch> {
    client.query(sql, &[]).await?.collect().await
}

/// A column as texts.
fn texts(rows: &RecordBatch, column: usize) -> Vec<String> {
    let texts = rows.column(column).as_string_opt::<i32>();
    texts
        .into_iter()
        .flat_map(|texts| texts.iter().map(|text| text.unwrap_or_default().to_owned()))
        .collect()
}

/// Adds all rows.
fn table(page: &mut Page, rows: &RecordBatch) -> Result<()> {
    let cells = cells(rows)?;
    let schema = rows.schema();
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    page.table(&columns, &cells);
    Ok(())
}

/// The values of rows as texts.
fn cells(rows: &RecordBatch) -> Result<Vec<Vec<String>>> {
    let options = FormatOptions::default();
    let columns = rows.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>().map_err(Error::from)?;
    let cell =
        |row: usize| columns.iter().map(move |column| column.value(row).to_string()).collect();
    Ok((0..rows.num_rows()).map(cell).collect())
}

/// An operator of one worker.
#[derive(PartialEq, Eq, Hash)]
struct Operator {
    worker: i64,
    view: String,
    name: String,
}

/// The time that each has taken.
async fn operators(client: &Client) -> Result<HashMap<Operator, u64>> {
    let sql = "SELECT CAST(worker AS BIGINT), COALESCE(view, 'outside of operators'), name, CAST(busy_ns AS BIGINT) FROM alluvium.operators";
    let rows = read(client, sql).await?;
    let (views, names) = (texts(&rows, 1), texts(&rows, 2));
    let numbers = |column: usize| rows.column(column).as_primitive_opt::<Int64Type>();
    let mut times = HashMap::new();
    if let (Some(workers), Some(busy)) = (numbers(0), numbers(3)) {
        for (row, (view, name)) in views.into_iter().zip(names).enumerate() {
            let operator = Operator { worker: workers.value(row), view, name };
            *times.entry(operator).or_default() += busy.value(row).unsigned_abs();
        }
    }
    Ok(times)
}

/// The time of operators beyond what they had taken before.
fn frame(times: &HashMap<Operator, u64>, before: impl Fn(&Operator) -> u64) -> Frame {
    let mut frame = Frame::default();
    for (operator, nanoseconds) in times {
        let nanoseconds = nanoseconds.saturating_sub(before(operator));
        let Operator { worker, view, name } = operator;
        frame.add(&[view, &redacted::operation(name), &format!("worker {worker}")], nanoseconds);
    }
    frame
}

/// The statements that define a view, and what it reads.
async fn definitions(client: &Client, view: &str) -> Result<Vec<String>> {
    let sql = "WITH RECURSIVE needed (schema, relation) AS (
            SELECT schema, relation FROM alluvium.relations WHERE name = $1
            UNION
            SELECT d.read_schema, d.read_relation FROM alluvium.dependencies d
                JOIN needed n ON d.schema = n.schema AND d.relation = n.relation
        )
        SELECT r.definition FROM alluvium.relations r JOIN needed n ON r.schema = n.schema AND r.relation = n.relation
        ORDER BY r.name";
    let rows = client.query(sql, &[&view]).await?.collect().await?;
    Ok(texts(&rows, 0))
}

/// The operators, each with those that it reads below it.
fn plan(explained: &Value) -> String {
    let mut text = String::new();
    for sentence in array(&explained["sentences"]) {
        text += &format!("{}\n", redacted::sentence(sentence.as_str().unwrap_or_default()));
    }
    for node in array(&explained["nodes"]) {
        let number = |name: &str| node[name].as_u64().unwrap_or(0);
        let rank = node["rank"].as_u64().map_or_else(String::new, |rank| format!("  <- {rank}."));
        let inputs: Vec<String> = array(&node["inputs"]).map(ToString::to_string).collect();
        text += &format!(
            "{}: {} [{}] {:.3} ms ({} %), {} rows, {} bytes, keeps {} rows in {} bytes{rank}\n",
            number("id"),
            redacted::operation(node["operation"].as_str().unwrap_or_default()),
            inputs.join(", "),
            number("busy_ns") as f64 / 1e6,
            number("busy_percent"),
            number("rows_out"),
            number("bytes_out"),
            number("kept_rows"),
            number("kept_bytes"),
        );
        for sentence in array(&node["sentences"]) {
            let sentence = redacted::sentence(sentence.as_str().unwrap_or_default());
            text += &format!("    {sentence}\n");
        }
    }
    text
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The lines of the log.
fn lines(log: &RecordBatch) -> Result<String> {
    let mut text = String::new();
    for row in cells(log)? {
        let [time, level, target, message, fields] = &row[..] else { continue };
        let fields: Value = serde_json::from_str(fields).unwrap_or_default();
        let shown = FIELDS.iter().filter_map(|name| Some(format!(" {name}={}", fields.get(name)?)));
        let shown: String = shown.collect();
        text += &format!("{time} {level} {target}: {message}{shown}\n");
    }
    Ok(text)
}
