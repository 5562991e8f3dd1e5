//! The engine's own answers: each expression as a constant, over columns in a query, and in a view whose rows come, go and
//! come again.

use std::collections::HashMap;
use std::fmt::Write as _;

use alluvium::Engine;
use alluvium::arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use alluvium::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::answer::{Answer, Value, exact, float, nested, time};
use super::form::Form;
use super::kind::{Dialect, Kind};

/// How many constants one query has, as long as none fails.
const TOGETHER: usize = 100;

/// The engine's answers to a form, row by row.
pub(super) struct Own {
    pub(super) answers: Vec<Answer>,
    /// Where the three ways differ: the row and both answers.
    pub(super) contradictions: Vec<(usize, String)>,
}

/// The answers of the engine to some forms over the same kinds and rows.
///
/// Fails if the rows cannot be inserted.
pub(super) fn answers(
    engine: &Engine,
    kinds: &[&'static Kind],
    rows: &[Vec<&'static str>],
    forms: &[&Form],
) -> Result<Vec<Own>, String> {
    let table = Table::create(engine, kinds, rows)?;
    let mut views: Vec<_> =
        forms.iter().enumerate().map(|(number, form)| View::create(&table, number, form)).collect();
    let first: Vec<_> = views.iter().map(|view| view.read(&table)).collect();
    table.run("DELETE FROM s WHERE id % 2 = 0")?;
    let rest: Vec<_> = views.iter().map(|view| view.read(&table)).collect();
    table.run("DELETE FROM s")?;
    let none: Vec<_> = views.iter().map(|view| view.read(&table)).collect();
    table.insert(kinds, rows)?;
    let again: Vec<_> = views.iter().map(|view| view.read(&table)).collect();
    let mut all = Vec::new();
    for (number, (form, view)) in forms.iter().zip(&mut views).enumerate() {
        let mut own = match (&view.refusal, &first[number]) {
            (Some(why), _) => table.refused(form, rows, why),
            (None, Err(why)) => {
                Own { answers: Vec::new(), contradictions: vec![(0, format!("a view: {why}"))] }
            }
            (None, Ok(values)) => table.compare(form, rows, values),
        };
        let odd = |id: usize| id % 2 == 1;
        for (what, found, stays) in [
            ("a view whose rows went by half", &rest[number], Some(true)),
            ("a view whose rows went", &none[number], None),
            ("a view whose rows came again", &again[number], Some(false)),
        ] {
            let (Ok(first), Ok(found)) = (&first[number], found) else { continue };
            for id in 0..rows.len() {
                let expected = match stays {
                    None => None,
                    Some(by_half) if by_half && !odd(id) => None,
                    Some(_) => first.get(&id),
                };
                if expected.map(ToString::to_string) != found.get(&id).map(ToString::to_string) {
                    own.contradictions
                        .push((id, format!("{what} has {:?}, not {expected:?}", found.get(&id))));
                }
            }
        }
        all.push(own);
        if view.refusal.is_none() {
            table.run(&format!("DROP MATERIALIZED VIEW v{number}"))?;
        }
    }
    table.run("DROP TABLE s")?;
    Ok(all)
}

/// The rows of arguments.
struct Table<'a> {
    engine: &'a Engine,
    /// How an expression reads its arguments.
    columns: Vec<String>,
}

impl<'a> Table<'a> {
    fn create(
        engine: &'a Engine,
        kinds: &[&'static Kind],
        rows: &[Vec<&'static str>],
    ) -> Result<Self, String> {
        let columns: Vec<_> = kinds
            .iter()
            .enumerate()
            .map(|(number, kind)| (number, kind.column(&format!("a{number}"))))
            .collect();
        let mut create = "CREATE TABLE s (id BIGINT".to_owned();
        for (number, (sql, _)) in &columns {
            write!(create, ", a{number} {sql}").map_err(|error| error.to_string())?;
        }
        let columns = columns.into_iter().map(|(_, (_, read))| read).collect();
        let table = Self { engine, columns };
        table.run(&(create + ")"))?;
        table.insert(kinds, rows)?;
        Ok(table)
    }

    fn insert(&self, kinds: &[&'static Kind], rows: &[Vec<&'static str>]) -> Result<(), String> {
        let mut values = Vec::new();
        for (id, row) in rows.iter().enumerate() {
            let mut written = vec![id.to_string()];
            for (kind, value) in kinds.iter().zip(row) {
                let stored = kind.stored(value);
                written.push(stored.ok_or_else(|| format!("no literal of {}", kind.name))?);
            }
            values.push(format!("({})", written.join(", ")));
        }
        self.run(&format!("INSERT INTO s VALUES {}", values.join(", ")))
    }

    fn run(&self, sql: &str) -> Result<(), String> {
        match self.engine.execute(sql) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{error}: {}", sql.chars().take(200).collect::<String>())),
        }
    }

    /// The expression over the columns.
    fn expression(&self, form: &Form) -> String {
        form.expression(Dialect::Own, &self.columns).unwrap_or_default()
    }

    /// The values of a query of an id and a value.
    fn values(&self, sql: &str) -> Result<HashMap<usize, Value>, String> {
        let batches = self.engine.query(sql).map_err(|error| error.to_string())?;
        let mut values = HashMap::new();
        for batch in &batches {
            let ids = cast(batch.column(0), &DataType::Int64).map_err(|error| error.to_string())?;
            let ids = ids.as_primitive::<Int64Type>().clone();
            for (row, value) in column(batch.column(1))?.into_iter().enumerate() {
                let id = usize::try_from(ids.value(row)).map_err(|error| error.to_string())?;
                values.insert(id, value);
            }
        }
        Ok(values)
    }

    /// The rows of a query over these ids, each of which is asked for by itself where some fail.
    fn query(&self, expression: &str, ids: &[usize], answers: &mut HashMap<usize, Answer>) {
        if ids.is_empty() {
            return;
        }
        let list: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let sql = format!("SELECT id, {expression} AS x FROM s WHERE id IN ({})", list.join(", "));
        match self.values(&sql) {
            Ok(values) => {
                answers.extend(values.into_iter().map(|(id, value)| (id, Answer::Value(value))));
            }
            Err(why) if ids.len() == 1 => {
                answers.insert(ids[0], Answer::Failed(why));
            }
            Err(_) => {
                let (one, two) = ids.split_at(ids.len() / 2);
                self.query(expression, one, answers);
                self.query(expression, two, answers);
            }
        }
    }

    /// Compares the values of a view with those of a query and of constants.
    fn compare(
        &self,
        form: &Form,
        rows: &[Vec<&'static str>],
        values: &HashMap<usize, Value>,
    ) -> Own {
        let expression = self.expression(form);
        let (good, bad): (Vec<usize>, Vec<usize>) =
            (0..rows.len()).partition(|id| values.contains_key(id));
        let mut queried = HashMap::new();
        self.query(&expression, &good, &mut queried);
        for id in &bad {
            self.query(&expression, &[*id], &mut queried);
        }
        let texts: Vec<_> =
            rows.iter().map(|row| form.constant(Dialect::Own, row).unwrap_or_default()).collect();
        let mut constants = HashMap::new();
        for ids in good.chunks(TOGETHER) {
            constant(self.engine, &texts, ids, &mut constants);
        }
        for id in &bad {
            constant(self.engine, &texts, &[*id], &mut constants);
        }
        let mut own = Own { answers: Vec::new(), contradictions: Vec::new() };
        for id in 0..rows.len() {
            let view = match values.get(&id) {
                Some(value) => Answer::Value(value.clone()),
                None => Answer::Failed("an error row".to_owned()),
            };
            for (what, other) in
                [("query", queried.remove(&id)), ("constant", constants.remove(&id))]
            {
                let Some(other) = other else { continue };
                if !is_equal(&view, &other) {
                    own.contradictions.push((id, format!("view: {view}, {what}: {other}")));
                }
            }
            own.answers.push(view);
        }
        own
    }

    /// The answers to a form that cannot be a view: of constants alone, which should be refused as well.
    fn refused(&self, form: &Form, rows: &[Vec<&'static str>], why: &str) -> Own {
        let mut own = Own { answers: Vec::new(), contradictions: Vec::new() };
        let texts: Vec<_> =
            rows.iter().map(|row| form.constant(Dialect::Own, row).unwrap_or_default()).collect();
        for (id, row) in rows.iter().enumerate() {
            let mut answer = HashMap::new();
            constant(self.engine, &texts, &[id], &mut answer);
            if let Some(Answer::Value(value)) = answer.remove(&id)
                && row.iter().all(|value| *value != "NULL")
                && own.contradictions.is_empty()
            {
                own.contradictions.push((id, format!("view: refused ({why}), constant: {value}")));
            }
            own.answers.push(Answer::Refused(why.to_owned()));
        }
        own
    }
}

/// Evaluates constants together, or one by one where some fail.
fn constant(
    engine: &Engine,
    texts: &[String],
    ids: &[usize],
    answers: &mut HashMap<usize, Answer>,
) {
    let list: Vec<_> = ids.iter().map(|id| format!("{} AS c{id}", texts[*id])).collect();
    let sql = format!("SELECT {}", list.join(", "));
    let found = engine.query(&sql).map_err(|error| error.to_string()).and_then(|batches| {
        let batch: &RecordBatch = batches.first().ok_or("no row")?;
        batch
            .columns()
            .iter()
            .map(|values| Ok(column(values)?.remove(0)))
            .collect::<Result<Vec<_>, String>>()
    });
    match found {
        Ok(values) => {
            answers.extend(ids.iter().zip(values).map(|(id, value)| (*id, Answer::Value(value))));
        }
        Err(why) if ids.len() == 1 => {
            answers.insert(ids[0], Answer::Failed(why));
        }
        Err(_) => ids.iter().for_each(|id| constant(engine, texts, &[*id], answers)),
    }
}

/// Whether two answers of the engine itself are the same, to the last digit.
fn is_equal(one: &Answer, two: &Answer) -> bool {
    match (one, two) {
        (Answer::Value(one), Answer::Value(two)) => one.to_string() == two.to_string(),
        (Answer::Value(_), _) | (_, Answer::Value(_)) => false,
        _ => true,
    }
}

/// A view of one expression over the table.
struct View {
    number: usize,
    /// Why there is none.
    refusal: Option<String>,
    /// Intervals are no columns of a view, so it has their texts.
    is_text_of_interval: bool,
}

impl View {
    fn create(table: &Table<'_>, number: usize, form: &Form) -> Self {
        let expression = table.expression(form);
        let create = |expression: &str| {
            let sql = format!(
                "CREATE MATERIALIZED VIEW v{number} AS SELECT id, {expression} AS x FROM s"
            );
            table.engine.execute(&sql).map_err(|error| error.to_string())
        };
        match create(&expression) {
            Ok(_) => Self { number, refusal: None, is_text_of_interval: false },
            Err(why) if why.contains("of type INTERVAL") => {
                let refusal = create(&format!("CAST({expression} AS VARCHAR)")).err();
                Self { number, refusal, is_text_of_interval: true }
            }
            Err(why) => Self { number, refusal: Some(why), is_text_of_interval: false },
        }
    }

    fn read(&self, table: &Table<'_>) -> Result<HashMap<usize, Value>, String> {
        if let Some(why) = &self.refusal {
            return Err(why.clone());
        }
        let mut values = table.values(&format!("SELECT id, x FROM v{}", self.number))?;
        if self.is_text_of_interval {
            for value in values.values_mut() {
                if let Value::Text(text) = value
                    && let Some(interval) = super::answer::interval(text)
                {
                    *value = interval;
                }
            }
        }
        Ok(values)
    }
}

/// The values of a column.
fn column(values: &ArrayRef) -> Result<Vec<Value>, String> {
    let plain = match values.data_type() {
        DataType::Timestamp(_, Some(_)) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))
        }
        DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
        DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Utf8View | DataType::LargeUtf8 | DataType::Dictionary(..) => DataType::Utf8,
        other => other.clone(),
    };
    let values = &cast(values, &plain).map_err(|error| error.to_string())?;
    let options = FormatOptions::new().with_null("NULL");
    let formatter = ArrayFormatter::try_new(values, &options).map_err(|error| error.to_string())?;
    let durations = match plain {
        DataType::Duration(_) => {
            Some(cast(values, &DataType::Int64).map_err(|error| error.to_string())?)
        }
        _ => None,
    };
    let value = |row: usize| {
        let text = formatter.value(row).to_string();
        match &plain {
            DataType::Boolean => Value::Boolean(text == "true"),
            kind if kind.is_integer() || kind.is_decimal() => Value::Exact(exact(&text)),
            DataType::Float64 => Value::Float(float(&text)),
            DataType::Float16 | DataType::Float32 => Value::Single(float(&text)),
            DataType::Utf8 => Value::Text(text),
            DataType::Binary
            | DataType::BinaryView
            | DataType::LargeBinary
            | DataType::FixedSizeBinary(_) => Value::Bytes(text),
            DataType::Date32 | DataType::Date64 => Value::Date(super::answer::calendar(&text)),
            DataType::Time32(_) | DataType::Time64(_) => Value::Time(time(&text)),
            DataType::Timestamp(_, Some(_)) => Value::Instant(time(text.trim_end_matches('Z'))),
            DataType::Timestamp(_, None) => Value::Timestamp(time(&text)),
            DataType::Interval(_) => {
                let value = values.as_primitive::<IntervalMonthDayNanoType>().value(row);
                Value::Interval(value.months.into(), value.days.into(), value.nanoseconds / 1_000)
            }
            DataType::Duration(_) => {
                let micros =
                    durations.as_ref().map_or(0, |all| all.as_primitive::<Int64Type>().value(row));
                let day = 86_400_000_000;
                Value::Interval(0, micros / day, micros % day)
            }
            DataType::Null => Value::Null,
            _ => Value::Nested(nested(&text)),
        }
    };
    Ok((0..values.len())
        .map(|row| if values.is_null(row) { Value::Null } else { value(row) })
        .collect())
}
