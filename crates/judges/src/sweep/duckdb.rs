//! DuckDB through its Python module: all expressions in one process.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value as Json;

/// Reads expressions as lines of JSON, and writes a line for each: its type and its text, or what is wrong.
const PROGRAM: &str = r#"
import sys, json, duckdb
c = duckdb.connect()
c.execute("SET timezone = 'UTC'")
for line in sys.stdin:
    e = json.loads(line)
    try:
        t, v = c.execute("SELECT typeof(x), CAST(x AS VARCHAR) FROM (SELECT (" + e + ") AS x)").fetchone()
        if t == 'BLOB' and v is not None:
            v = c.execute("SELECT hex(" + e + ")").fetchone()[0]
        a = [t, v]
    except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException, duckdb.NotImplementedException) as x:
        a = {'refused': str(x).split('\n')[0]}
    except Exception as x:
        a = {'failed': str(x).split('\n')[0]}
    print(json.dumps(a))
"#;

/// The answers to all expressions, in order.
pub(super) fn answers(python: &Path, expressions: &[String]) -> Result<Vec<Json>, String> {
    let mut child = Command::new(python)
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", python.display()))?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("DuckDB has no pipes".to_owned());
    };
    let lines: String =
        expressions.iter().map(|text| format!("{}\n", Json::from(text.as_str()))).collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let answers = BufReader::new(output)
        .lines()
        .map(|line| {
            let line = line.map_err(|error| error.to_string())?;
            serde_json::from_str(&line).map_err(|error| error.to_string())
        })
        .collect::<Result<Vec<_>, String>>()?;
    child.wait().map_err(|error| error.to_string())?;
    let written = writer.join().map_err(|_| "the writer panicked".to_owned())?;
    match written {
        Ok(()) if answers.len() == expressions.len() => Ok(answers),
        Ok(()) => Err(format!("DuckDB answered {} of {}", answers.len(), expressions.len())),
        Err(error) => Err(format!("DuckDB ended: {error}")),
    }
}
