//! Functions whose answers are compared with those of DuckDB.
//!
//! `sql/tests/duckdb/answers.txt` lists expressions over the table of `table.sql`, with DuckDB's answers, which
//! `answers.py` fills in. The mark in front of each says what holds here: `=` for the same answers in queries and views,
//! `q` in queries only, `!` for other answers, `-` for none.
//!
//! `functions.txt` calls each function that `duckdb_functions()` lists: without what `docs/internals/judging.md` leaves out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt::Write as _;

use alluvium::Engine;
use alluvium::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use alluvium::arrow::compute::{cast, concat_batches};
use alluvium::arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit, TimeUnit};
use alluvium::arrow::util::display::{ArrayFormatter, FormatOptions};

const TABLE: &str = include_str!("../../../../sql/tests/duckdb/table.sql");
const ANSWERS: &str = include_str!("../../../../sql/tests/duckdb/answers.txt");
const FUNCTIONS: &str = include_str!("../../../../sql/tests/duckdb/functions.txt");

/// How many expressions a view has at first.
const TOGETHER: usize = 25;

struct Case {
    section: &'static str,
    mark: &'static str,
    expression: &'static str,
    answers: Vec<Option<&'static str>>,
}

fn cases(list: &'static str) -> Vec<Case> {
    let mut section = "";
    let mut cases = Vec::new();
    for line in list.lines() {
        if let Some(name) = line.strip_prefix("# ") {
            section = name;
            continue;
        }
        let mut parts = line.split('\t');
        let (mark, expression) = (parts.next().unwrap(), parts.next().unwrap());
        let answers = parts.map(|answer| answer.strip_prefix('\'')?.strip_suffix('\'')).collect();
        cases.push(Case { section, mark, expression, answers });
    }
    cases
}

/// The SELECT of some expressions of one section, without an order.
fn select(cases: &[&Case]) -> String {
    let (key, group) = match cases[0].section {
        "aggregates" => ("g", " GROUP BY g"),
        _ => ("id", ""),
    };
    let mut select = format!("SELECT {key} AS the_key");
    for (number, case) in cases.iter().enumerate() {
        write!(select, ", {} AS c{number}", case.expression).unwrap();
    }
    select + " FROM t" + group
}

/// The values of each column of a query, as texts.
fn run(engine: &Engine, query: &str) -> Result<Vec<Vec<Option<String>>>, String> {
    let batches = engine.query(query).map_err(|error| error.to_string())?;
    let Some(first) = batches.first() else { return Err("no rows".to_owned()) };
    let all: RecordBatch = concat_batches(&first.schema(), &batches).unwrap();
    Ok(all.columns()[1..].iter().map(texts).collect())
}

fn texts(column: &ArrayRef) -> Vec<Option<String>> {
    let column = match column.data_type() {
        DataType::Duration(_) => cast(column, &DataType::Duration(TimeUnit::Microsecond)).unwrap(),
        DataType::Interval(_) => {
            cast(column, &DataType::Interval(IntervalUnit::MonthDayNano)).unwrap()
        }
        _ => column.clone(),
    };
    let options = FormatOptions::new().with_null("NULL");
    let formatter = ArrayFormatter::try_new(&column, &options).unwrap();
    let text = |row: usize| match column.data_type() {
        DataType::Interval(_) => {
            let value = column.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let (months, days, nanos) = (value.months, value.days, value.nanoseconds);
            format!("{months} months {days} days {} us", nanos / 1_000)
        }
        DataType::Duration(_) => {
            let micros = cast(&column, &DataType::Int64).unwrap();
            let micros = micros.as_primitive::<alluvium::arrow::datatypes::Int64Type>().value(row);
            let day = 86_400_000_000;
            format!("0 months {} days {} us", micros / day, micros % day)
        }
        _ => formatter.value(row).to_string(),
    };
    (0..column.len()).map(|row| column.is_valid(row).then(|| text(row))).collect()
}

/// Whether two values are the same: as numbers, if DuckDB's has a fraction, else as texts up to how lists, structs and
/// times are written.
fn is_same(found: &Option<String>, expected: Option<&str>) -> bool {
    let (Some(found), Some(expected)) = (found, expected) else {
        return found.is_none() && expected.is_none();
    };
    let plain = |text: &str| {
        let text = text.replace('\'', "").replace(['=', '"'], ":").replace(": ", ":");
        let text = text.replace(", ", ",").replace("\\n", "\n").to_lowercase();
        // The time zone is UTC.
        let text = text.trim_end_matches("+00").trim_end_matches('z').to_owned();
        let text = match text.split_once('t') {
            Some((date, time)) if date.len() == 10 && date.starts_with(char::is_numeric) => {
                format!("{date} {time}")
            }
            _ => text,
        };
        // Fractions of seconds have as many digits as they need.
        let is_time = text.rsplit(':').next().is_some_and(|seconds| seconds.contains('.'));
        let text = if is_time { text.trim_end_matches('0').to_owned() } else { text };
        text.trim_end_matches(" 00:00:00").to_owned()
    };
    if plain(found) == plain(expected) {
        return true;
    }
    match (found.parse::<f64>(), expected.parse::<f64>()) {
        (Ok(found), Ok(expected)) if found.is_finite() => {
            (found - expected).abs() <= 1e-9 * expected.abs().max(1e-9)
        }
        _ => false,
    }
}

fn check(case: &Case, found: &[Option<String>]) -> Result<(), String> {
    let same = found.len() == case.answers.len()
        && found.iter().zip(&case.answers).all(|(found, expected)| is_same(found, *expected));
    match same {
        true => Ok(()),
        false => Err(format!("{found:?} instead of {:?}", case.answers)),
    }
}

fn in_query(engine: &Engine, case: &Case) -> Result<(), String> {
    let found = run(engine, &format!("{} ORDER BY 1", select(&[case])))?;
    check(case, &found[0])
}

/// The answers of a view of these expressions; each by itself if they do not go together.
fn in_view(engine: &Engine, cases: &[&Case]) -> Vec<Result<(), String>> {
    let create = format!("CREATE MATERIALIZED VIEW v AS {}", select(cases));
    let found = engine.execute(&create).map_err(|error| error.to_string()).and_then(|_| {
        let found = run(engine, "SELECT * FROM v ORDER BY 1");
        engine.execute("DROP MATERIALIZED VIEW v").unwrap();
        found
    });
    match found {
        Ok(found) if found[0].len() == cases[0].answers.len() || cases.len() == 1 => {
            cases.iter().zip(&found).map(|(case, found)| check(case, found)).collect()
        }
        Err(error) if cases.len() == 1 => vec![Err(error)],
        _ => cases.iter().flat_map(|case| in_view(engine, &[case])).collect(),
    }
}

/// How many of the expressions of a list have DuckDB's answer in queries and views, and how many there are, if the marks
/// in the list are right.
fn agreeing(list: &'static str) -> (usize, usize) {
    let engine = Engine::builder().workers(1).open_in_memory().unwrap();
    engine.execute(TABLE).unwrap();
    let cases = cases(list);
    let mut in_views = Vec::new();
    for section in cases.chunk_by(|one, next| one.section == next.section) {
        let section: Vec<&Case> = section.iter().collect();
        for together in section.chunks(TOGETHER) {
            in_views.extend(in_view(&engine, together));
        }
    }
    let mut faults = Vec::new();
    let mut equal = 0;
    for (case, in_view) in cases.iter().zip(in_views) {
        let in_query = in_query(&engine, case);
        let mark = match (&in_query, &in_view) {
            (Ok(()), Ok(())) => "=",
            (Ok(()), Err(_)) => "q",
            (Err(why), _) if why.contains("instead of") => "!",
            (Err(_), _) => "-",
        };
        equal += usize::from(mark == "=");
        if mark != case.mark {
            let why = in_query.and(in_view).err().unwrap_or_default();
            faults.push(format!("{mark}\t{}\twas {}: {why}", case.expression, case.mark));
        }
    }
    assert!(faults.is_empty(), "{} other marks:\n{}", faults.len(), faults.join("\n"));
    (equal, cases.len())
}

#[test]
fn functions_answer_as_duckdb_in_queries_and_views() {
    let (equal, all) = agreeing(ANSWERS);
    println!("{equal} of {all} expressions answer as in DuckDB");
    assert!(equal * 100 >= all * 95, "{equal} of {all}");
}

#[test]
fn functions_of_duckdb_are_there() {
    let (equal, all) = agreeing(FUNCTIONS);
    println!("{equal} of DuckDB's {all} functions answer as there");
}
