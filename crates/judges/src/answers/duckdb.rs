//! DuckDB, through its Python module, if installed. Optional, because it starts slowly and is not in CI.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::evidence::Answer;
use super::row::{Cell, Row};
use crate::naive::Relation;
use crate::query::{Kind, Value};

/// Runs statements, the last of which is a query, and prints the query's rows as text, one field per line.
const PROGRAM: &str = "
import sys, duckdb
*before, query = sys.stdin.read().split('\\x1e')
c = duckdb.connect()
c.execute(\"SET default_null_order = 'nulls_last'\")
for s in before: c.execute(s)
for row in c.execute(query).fetchall():
    for v in row:
        if v is None: t = 'n'
        elif isinstance(v, bool): t = 'b' + str(v)
        elif isinstance(v, int): t = 'i' + str(v)
        elif isinstance(v, float): t = 'f' + repr(v)
        elif type(v).__name__ == 'Decimal': t = 'd' + str(v)
        elif isinstance(v, str): t = 't' + v
        else: t = 'o' + str(v)
        sys.stdout.write(t + '\\x1f')
    sys.stdout.write('\\x1e')
";

/// DuckDB's answer over these relations; `None` if there is none.
pub(crate) fn ask(relations: &HashMap<String, Relation>, query: &str) -> Option<Answer> {
    let mut text = String::new();
    for (name, relation) in relations {
        let columns: Option<Vec<_>> = relation
            .columns
            .iter()
            .map(|(name, kind)| Some(format!("{name} {}", declared(*kind)?)))
            .collect();
        let (Some(columns), Some(rows)) = (columns, &relation.rows) else {
            // A query that reads this relation has no answer.
            continue;
        };
        text += &format!("CREATE TABLE {name} ({})\u{1e}", columns.join(", "));
        for row in rows {
            let values: Vec<_> = row.iter().map(Value::literal).collect();
            text += &format!("INSERT INTO {name} VALUES ({})\u{1e}", values.join(", "));
        }
    }
    text += query;
    let mut child = Command::new("python3")
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    if !output.status.success() {
        // A query that DuckDB does not support has no answer.
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    let rows = text.split_terminator('\u{1e}');
    Some(Ok(rows.map(|row| row.split_terminator('\u{1f}').map(cell).collect::<Row>()).collect()))
}

fn declared(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Unsigned => Some("UINTEGER"),
        Kind::Bytes | Kind::Struct | Kind::Map | Kind::Zoned | Kind::List => None,
        kind => Some(kind.sql()),
    }
}

fn cell(text: &str) -> Cell {
    let (tag, rest) = text.split_at(1.min(text.len()));
    match tag {
        "b" => Cell::Boolean(rest == "True"),
        "i" => rest.parse().map_or(Cell::Null, Cell::Integer),
        "f" => rest.parse().map_or(Cell::Null, Cell::Float),
        "d" => Cell::Decimal(rest.to_owned()),
        "t" => Cell::Text(rest.to_owned()),
        "o" => Cell::Time(rest.to_owned()),
        _ => Cell::Null,
    }
}
