//! The answers of DuckDB and Postgres, asked for or read from a file.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::duckdb;
use super::postgres::Postgres;

/// Where the other databases are.
pub struct Others {
    /// The Python that has the module `duckdb`.
    pub python: PathBuf,
    /// The folder of `initdb`, `postgres` and `psql`.
    pub postgres: PathBuf,
}

/// The answers by the engine's expression; `null` where a database has no such expression.
pub(super) type Recorded = HashMap<String, [Json; 2]>;

/// An expression in the engine's dialect, and in those of the others that have it.
pub(super) struct Asked {
    pub(super) own: String,
    pub(super) duckdb: Option<String>,
    pub(super) postgres: Option<String>,
}

/// Asks both databases for expressions.
pub(super) fn ask(others: &Others, expressions: &[Asked]) -> Result<Recorded, String> {
    let in_duckdb: Vec<_> = expressions.iter().filter_map(|asked| asked.duckdb.clone()).collect();
    let in_postgres: Vec<_> =
        expressions.iter().filter_map(|asked| asked.postgres.clone()).collect();
    let mut duckdb = duckdb::answers(&others.python, &in_duckdb)?.into_iter();
    let mut postgres = Postgres::start(&others.postgres)?.answers(&in_postgres)?.into_iter();
    let take = |is_asked: bool, answers: &mut dyn Iterator<Item = Json>| {
        is_asked.then(|| answers.next()).flatten().unwrap_or(Json::Null)
    };
    Ok(expressions
        .iter()
        .map(|asked| {
            let one = take(asked.duckdb.is_some(), &mut duckdb);
            let two = take(asked.postgres.is_some(), &mut postgres);
            (asked.own.clone(), [one, two])
        })
        .collect())
}

/// Writes answers as lines in order: the expression as a text of JSON, DuckDB's answer and Postgres's.
pub(super) fn write(path: &Path, recorded: &Recorded) -> Result<(), String> {
    let mut lines: Vec<_> = recorded.iter().collect();
    lines.sort_unstable_by_key(|(expression, _)| expression.as_str());
    let mut text = String::new();
    for (expression, [duckdb, postgres]) in lines {
        let (duckdb, postgres) = (short(duckdb), short(postgres));
        writeln!(text, "{}\t{duckdb}\t{postgres}", Json::from(expression.as_str()))
            .map_err(|error| error.to_string())?;
    }
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// An answer without the text of an error, which differs from version to version.
fn short(json: &Json) -> Json {
    let mut json = json.clone();
    if let Some(object) = json.as_object_mut() {
        object.values_mut().for_each(|why| *why = Json::from(""));
    }
    json
}

/// Reads what [`write`] has written.
pub(super) fn read(text: &str) -> Result<Recorded, String> {
    text.lines()
        .map(|line| {
            let mut fields = line.split('\t');
            let mut field = || {
                let field = fields.next().ok_or_else(|| format!("too short: {line}"))?;
                serde_json::from_str::<Json>(field).map_err(|error| format!("{error}: {line}"))
            };
            let expression = field()?.as_str().unwrap_or_default().to_owned();
            Ok((expression, [field()?, field()?]))
        })
        .collect()
}
