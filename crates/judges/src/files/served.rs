//! The files through a server, as clients of Postgres run them.
//!
//! Each statement is sent as text by the simple protocol, whose answers are texts as Postgres writes them; the types of columns come
//! from preparing the statement by the extended protocol, which the texts are then read by.

use std::iter::Peekable;
use std::str::Chars;
use std::time::Duration;

use alluvium::Engine;
use alluvium_connect::formats;
use alluvium_server::{Running, Server, with_catalog};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Record, Runner, parse_with_name};
use tokio::runtime::Runtime;
use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::shipped::{nested, same};
use super::suite;

/// Files whose transactions go on after an error. Those of a server are aborted, as Postgres's are.
const CONTINUED: [&str; 4] = [
    "tables/taken_keys.slt",
    "transactions/definitions.slt",
    "transactions/failed_statements.slt",
    "transactions/rollback.slt",
];

/// Files that refuse what the functions of a server's catalog can do: a view takes `generate_series` over columns there.
const TAKEN: [&str; 1] = ["refusals/views.slt"];

/// Files with structs and maps, which Postgres does not have: they come as texts, as casts to VARCHAR write them.
const NESTED: [&str; 2] = ["nested/structs.slt", "nested/texts.slt"];

/// Runs every file through a server of its own. Panics with all records that fail.
pub fn run() {
    let (mut faults, mut queries) = (Vec::new(), 0);
    for (name, text) in suite::texts() {
        let mut left_out = CONTINUED.iter().chain(&TAKEN).chain(&NESTED);
        if left_out.any(|left_out| **left_out == *name) {
            continue;
        }
        let records: Vec<Record<DefaultColumnType>> = parse_with_name(&text, &*name)
            .unwrap_or_else(|error| panic!("not a file of records: {error}"));
        let served = Served::start();
        let address = served.running.pg_addresses()[0];
        let mut runner = Runner::new(move || std::future::ready(Connected::to(address)));
        runner.with_validator(same);
        for record in records {
            let line = match &record {
                Record::Statement { loc, .. } => loc.line(),
                Record::Query { loc, .. } => {
                    queries += 1;
                    loc.line()
                }
                _ => continue,
            };
            if let Err(error) = runner.run(record) {
                faults.push(format!("{name}:{line}: {}", error.kind()));
                break;
            }
        }
        drop(runner);
        served.running.stop(Duration::from_secs(1));
    }
    let summary = format!("{queries} queries through a server");
    println!("{summary}");
    assert!(faults.is_empty(), "{summary}, {} files fail\n{}", faults.len(), faults.join("\n"));
    if suite::is_whole() {
        assert!(queries >= 500, "{summary}");
    }
}

struct Served {
    running: Running,
}

impl Served {
    fn start() -> Self {
        let builder = with_catalog(formats(Engine::builder().workers(2)));
        let engine = builder.open_in_memory().unwrap_or_else(|error| panic!("no engine: {error}"));
        let server = Server::new(engine).file_access(alluvium::FileAccess::Everything).pg((
            [127, 0, 0, 1],
            0,
        )
            .into());
        let running = server.start().unwrap_or_else(|error| panic!("no server: {error}"));
        Self { running }
    }
}

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(String);

/// A client of the server.
struct Connected {
    runtime: Runtime,
    client: Client,
}

impl Connected {
    fn to(address: std::net::SocketAddr) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| Failure(error.to_string()))?;
        let settings = format!("host={} port={} user=alluvium", address.ip(), address.port());
        let connected = runtime.block_on(tokio_postgres::connect(&settings, NoTls));
        let (client, connection) = connected.map_err(|error| failure(&error))?;
        runtime.spawn(connection);
        Ok(Self { runtime, client })
    }
}

/// The message of the server, as sessions give it.
fn failure(error: &tokio_postgres::Error) -> Failure {
    Failure(match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => error.to_string(),
    })
}

impl DB for Connected {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        // What cannot be prepared has no rows, or fails again.
        let prepared = self.runtime.block_on(self.client.prepare(sql));
        // Its answer does not end.
        if sql.trim_start().starts_with("SUBSCRIBE") {
            let complete = |_| DBOutput::StatementComplete(0);
            return prepared.map(complete).map_err(|error| failure(&error));
        }
        let types: Vec<Type> = match &prepared {
            Ok(statement) => statement.columns().iter().map(|it| it.type_().clone()).collect(),
            Err(_) => Vec::new(),
        };
        let answered = self.runtime.block_on(self.client.simple_query(sql));
        let mut output = DBOutput::StatementComplete(0);
        let mut rows = Vec::new();
        let mut is_rows = false;
        for message in answered.map_err(|error| failure(&error))? {
            match message {
                SimpleQueryMessage::RowDescription(_) => is_rows = true,
                SimpleQueryMessage::Row(row) => {
                    let values = (0..row.len()).map(|number| match row.get(number) {
                        None => "NULL".to_owned(),
                        Some(text) => value(text, types.get(number)),
                    });
                    rows.push(values.collect::<Vec<_>>());
                }
                SimpleQueryMessage::CommandComplete(count) if !is_rows => {
                    output = DBOutput::StatementComplete(count);
                }
                _ => {}
            }
        }
        if is_rows {
            let types = vec![DefaultColumnType::Any; types.len().max(1)];
            output = DBOutput::Rows { types, rows };
        }
        Ok(output)
    }

    fn engine_name(&self) -> &str {
        "alluvium"
    }
}

/// A text of Postgres as the files write the value.
fn value(text: &str, data_type: Option<&Type>) -> String {
    let Some(data_type) = data_type else { return text.to_owned() };
    match data_type.kind() {
        Kind::Array(element) => return list(&mut text.chars().peekable(), element),
        _ if text.is_empty() => return "(empty)".to_owned(),
        _ => {}
    }
    match *data_type {
        Type::BOOL if text == "t" => "true".to_owned(),
        Type::BOOL => "false".to_owned(),
        Type::BYTEA => text.trim_start_matches('\\').to_owned(),
        Type::FLOAT4 | Type::FLOAT8 => float(text),
        Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::TIME => moment(text),
        Type::JSON | Type::JSONB if text.starts_with(['[', '{']) => nested(text),
        _ => text.to_owned(),
    }
}

fn float(text: &str) -> String {
    match text {
        "Infinity" => "inf".to_owned(),
        "-Infinity" => "-inf".to_owned(),
        // A whole number has no point.
        _ if text.bytes().all(|it| it.is_ascii_digit() || it == b'-') => format!("{text}.0"),
        _ => text.replace("e+", "e"),
    }
}

/// A time, whose fraction has three, six or no digits, and whose zone is UTC.
fn moment(text: &str) -> String {
    let (text, is_before) = match text.strip_suffix(" BC") {
        Some(text) => (text.replacen("0001-", "0000-", 1), true),
        None => (text.to_owned(), false),
    };
    let (text, zone) = match text.strip_suffix("+00") {
        Some(text) => (text, "Z"),
        None => (text.as_str(), ""),
    };
    match text.split_once('.') {
        Some((seconds, fraction)) => {
            let digits = if fraction.len() <= 3 { 3 } else { 6 };
            format!("{seconds}.{fraction:0<digits$}{zone}")
        }
        None => {
            debug_assert!(!is_before || text.starts_with("0000-"), "{text}");
            format!("{text}{zone}")
        }
    }
}

/// The text of an array, which is a list.
fn list(text: &mut Peekable<Chars<'_>>, element: &Type) -> String {
    let mut elements = Vec::new();
    // {
    text.next();
    while let Some(first) = text.peek() {
        match first {
            '}' => {
                text.next();
                break;
            }
            ',' => {
                text.next();
            }
            '{' => elements.push(list(text, element)),
            '"' => {
                text.next();
                let mut content = String::new();
                while let Some(letter) = text.next().filter(|letter| *letter != '"') {
                    match letter {
                        '\\' => content.extend(text.next()),
                        letter => content.push(letter),
                    }
                }
                elements.push(value_in_list(&content, element));
            }
            _ => {
                let mut content = String::new();
                while let Some(letter) = text.next_if(|letter| !matches!(letter, ',' | '}')) {
                    content.push(letter);
                }
                elements.push(match &*content {
                    "NULL" => content,
                    _ => value_in_list(&content, element),
                });
            }
        }
    }
    format!("[{}]", elements.join(", "))
}

fn value_in_list(text: &str, element: &Type) -> String {
    match text.is_empty() {
        true => String::new(),
        false => value(text, Some(element)),
    }
}
