//! Hostile arguments for calls of the library.

use std::ops::Bound;
use std::time::{Duration, SystemTime};

use alluvium::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use alluvium::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use alluvium::{Engine, RelationInfo, Result, Transaction, Value};
use datafusion::scalar::ScalarValue;

use super::case::{Case, random};
use super::corpus::scripts;

/// The number of cases of a round.
const ROUND: u64 = 60;

/// Tables and views of every kind.
const RELATIONS: [&str; 10] = [
    "CREATE TABLE t (a INT, b BIGINT, s TEXT, d DOUBLE, n DECIMAL(12, 2), x TIMESTAMP, l INT[], o BOOLEAN)",
    "CREATE TABLE k (a INT, s TEXT NOT NULL DEFAULT 'none', d DOUBLE, PRIMARY KEY (a, s))",
    "CREATE TABLE days (day DATE PRIMARY KEY, span INTERVAL, bits BYTEA, point STRUCT<x INT, y TEXT[]>)",
    "CREATE TABLE passed (a BIGINT, s TEXT) WITH ('materialized' = 'false')",
    "CREATE TABLE logged (a BIGINT, x TIMESTAMP) WITH ('append_only' = 'true')",
    "CREATE MATERIALIZED VIEW sums AS SELECT s, COUNT(*) AS rows, SUM(b) AS total, MAX(d) AS d FROM t GROUP BY s",
    "CREATE MATERIALIZED VIEW pairs AS SELECT t.a, t.l, k.s, k.d FROM t JOIN k ON t.a = k.a",
    "CREATE MATERIALIZED VIEW ranks AS SELECT day, span, ROW_NUMBER() OVER (ORDER BY day) AS r FROM days",
    "CREATE VIEW plain AS SELECT a, SUM(a) AS total FROM passed GROUP BY a",
    "CREATE LOCAL VIEW local AS SELECT * FROM pairs WHERE d > 0",
];

/// Types that no column has, or hardly one.
const TYPES: [DataType; 18] = [
    DataType::Null,
    DataType::Int8,
    DataType::UInt64,
    DataType::Float16,
    DataType::Float32,
    DataType::LargeUtf8,
    DataType::Utf8View,
    DataType::BinaryView,
    DataType::FixedSizeBinary(3),
    DataType::Date64,
    DataType::Decimal128(38, 38),
    DataType::Decimal256(76, -3),
    DataType::Duration(TimeUnit::Second),
    DataType::Time64(TimeUnit::Nanosecond),
    DataType::Timestamp(TimeUnit::Nanosecond, None),
    DataType::Timestamp(TimeUnit::Second, None),
    DataType::Interval(IntervalUnit::DayTime),
    DataType::Boolean,
];

/// The hostile calls for a seed.
pub(crate) struct Calls {
    seed: u64,
    scripts: Vec<Vec<String>>,
}

impl Calls {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, scripts: scripts() }
    }

    pub(crate) fn case(&self, number: u64) -> Case {
        let round = number / ROUND;
        let mut rng = random(self.seed, number);
        // Every other round has the relations of an SQL file.
        let setup = match round % 2 {
            0 => RELATIONS.map(str::to_owned).to_vec(),
            _ => {
                let script = random(self.seed, round).usize(..self.scripts.len());
                self.scripts[script].clone()
            }
        };
        Case { round, setup, calls: Some(rng.u64(..)), ..Case::default() }
    }
}

/// Makes some call. Returns its description, too.
pub(super) fn call(rng: &mut fastrand::Rng, engine: &Engine) -> (Result<()>, String) {
    let relations = match engine.relations() {
        Ok(relations) => relations,
        Err(error) => return (Err(error), "relations()".to_owned()),
    };
    let relations: Vec<RelationInfo> =
        relations.into_iter().filter(|relation| !relation.name.starts_with("known_")).collect();
    if relations.is_empty() {
        return (Ok(()), "nothing to call".to_owned());
    }
    let relation = &relations[rng.usize(..relations.len())];
    let (called, what) = match rng.u32(..10) {
        0..4 => (write(rng, engine, relation), "write to"),
        4..6 => (read(rng, engine, relation), "read by key from"),
        6 => (subscribe(rng, engine, relation), "subscribe to"),
        7 => (query(rng, engine, relation), "query"),
        8 => (begin_at(rng, engine, relation), "write at some time to"),
        _ => (other(rng, engine), "call beside"),
    };
    (called, format!("{what} \"{}\"", relation.name))
}

fn write(rng: &mut fastrand::Rng, engine: &Engine, relation: &RelationInfo) -> Result<()> {
    stage(rng, engine.begin()?, relation)
}

fn begin_at(rng: &mut fastrand::Rng, engine: &Engine, relation: &RelationInfo) -> Result<()> {
    let seconds = [0, 1, 1 << 31, 1 << 33, 1 << 40, 1 << 43, i64::MAX as u64][rng.usize(..7)];
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    stage(rng, engine.begin_at(time.unwrap_or(SystemTime::UNIX_EPOCH))?, relation)
}

/// Some changes, right and wrong. One that is refused does not end the transaction.
fn stage(
    rng: &mut fastrand::Rng,
    mut transaction: Transaction,
    relation: &RelationInfo,
) -> Result<()> {
    let name = relation.name.as_str();
    let mut staged = Ok(());
    for _ in 0..1 + rng.usize(..3) {
        let rows = batch(rng, relation);
        let changed = match rng.u32(..6) {
            0..2 => transaction.insert(name, rows),
            2 => transaction.delete(name, rows),
            3 => {
                let schema = rows.schema();
                let mut names: Vec<&str> =
                    schema.fields().iter().map(|field| field.name().as_str()).collect();
                match rng.u32(..6) {
                    0 => names.push("no column"),
                    1 => names.truncate(1),
                    2 => names.reverse(),
                    3 => names.extend(names.first().copied()),
                    _ => {}
                }
                transaction.insert_columns(name, &names, rows)
            }
            _ => {
                let count = if rng.u32(..4) > 0 { rows.num_rows() } else { rng.usize(..5) };
                let weights = [-1, 0, 1, 1, 2, i64::from(i32::MAX), i64::MIN, i64::MAX];
                let weights: Vec<i64> =
                    (0..count).map(|_| weights[rng.usize(..weights.len())]).collect();
                transaction.change(name, rows, &weights)
            }
        };
        staged = staged.and(changed);
    }
    if rng.u32(..4) == 0 {
        transaction.set_key(["", "key", "other\0key"][rng.usize(..3)]);
    }
    match rng.u32(..4) {
        0 => drop(transaction),
        1 => {
            transaction.submit()?;
        }
        _ => {
            transaction.commit()?;
        }
    }
    staged
}

/// Rows for a table, or nearly.
fn batch(rng: &mut fastrand::Rng, relation: &RelationInfo) -> RecordBatch {
    let rows = [0, 1, 1, 3, 100, 1_000][rng.usize(..6)];
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for field in relation.schema.fields() {
        let column = values(rng, field.data_type(), rows);
        columns.push((field.name().clone(), column));
    }
    let at = rng.usize(..columns.len().max(1));
    match rng.u32(..8) {
        0 => columns.truncate(at),
        1 => columns.push(("more".to_owned(), values(rng, &DataType::Int64, rows))),
        2 if !columns.is_empty() => {
            let other = some_type(rng);
            columns[at].1 = values(rng, &other, rows);
        }
        3 => columns.reverse(),
        _ => {}
    }
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Schema::new(fields).into(), columns, &options)
        .unwrap_or_else(|error| panic!("columns of equal length are rows: {error}"));
    // A part of a larger one.
    let from = rng.usize(..=rows);
    if rng.u32(..4) == 0 { batch.slice(from, rows - from) } else { batch }
}

fn some_type(rng: &mut fastrand::Rng) -> DataType {
    let data_type = TYPES[rng.usize(..TYPES.len())].clone();
    match rng.u32(..4) {
        0 => DataType::new_list(data_type, true),
        1 => DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()),
        _ => data_type,
    }
}

/// Values of a type: NULL, the least and the greatest among them.
fn values(rng: &mut fastrand::Rng, data_type: &DataType, count: usize) -> ArrayRef {
    // DataFusion makes no maps of such values.
    if matches!(data_type, DataType::Map(_, _)) {
        return new_null_array(data_type, count);
    }
    let nulls = rng.u32(..3) == 0;
    let values = (0..count).map(|_| value(rng, data_type, nulls));
    match ScalarValue::iter_to_array(values) {
        Ok(values) if values.data_type() == data_type => values,
        _ => new_null_array(data_type, count),
    }
}

fn value(rng: &mut fastrand::Rng, data_type: &DataType, nulls: bool) -> ScalarValue {
    let null = || ScalarValue::try_from(data_type).unwrap_or(ScalarValue::Null);
    let usual = || ScalarValue::new_default(data_type).unwrap_or_else(|_| null());
    let number = ScalarValue::from(rng.i64(-3..1_000)).cast_to(data_type).ok();
    match rng.u32(..6) {
        0 if nulls => null(),
        1 => ScalarValue::min(data_type).unwrap_or_else(usual),
        2 => ScalarValue::max(data_type).unwrap_or_else(usual),
        3 => usual(),
        _ => number.filter(|number| !number.is_null()).unwrap_or_else(usual),
    }
}

/// A value for a parameter or a key.
fn given(rng: &mut fastrand::Rng, data_type: &DataType) -> Result<Value> {
    let array = value(rng, data_type, true).to_array();
    let array = array.unwrap_or_else(|_| new_null_array(data_type, 1));
    Value::from_array(&array, 0)
}

fn read(rng: &mut fastrand::Rng, engine: &Engine, relation: &RelationInfo) -> Result<()> {
    let view = engine.view(&relation.name)?;
    let key: Vec<DataType> =
        view.key().iter().map(|column| view.schema().field(*column).data_type().clone()).collect();
    let values = |rng: &mut fastrand::Rng| -> Result<Vec<Value>> {
        let count = if rng.bool() { key.len() } else { rng.usize(..key.len() + 2) };
        let data_type = |rng: &mut fastrand::Rng, place: usize| match key.get(place) {
            Some(data_type) if rng.u32(..5) > 0 => data_type.clone(),
            _ => some_type(rng),
        };
        (0..count)
            .map(|place| {
                let data_type = data_type(rng, place);
                given(rng, &data_type)
            })
            .collect()
    };
    let (low, high) = (values(rng)?, values(rng)?);
    let bound = |rng: &mut fastrand::Rng, values| match rng.u32(..3) {
        0 => Bound::Included(values),
        1 => Bound::Excluded(values),
        _ => Bound::Unbounded,
    };
    let view = if rng.bool() { view.stale() } else { view };
    match rng.bool() {
        true => view.get(&low).map(drop),
        false => {
            let (low, high) = (bound(rng, &low[..]), bound(rng, &high[..]));
            view.range(low, high)?.take(10).try_for_each(|rows| rows.map(drop))
        }
    }
}

fn subscribe(rng: &mut fastrand::Rng, engine: &Engine, relation: &RelationInfo) -> Result<()> {
    let mut subscription = match rng.u32(..4) {
        0 => engine.subscribe(&relation.name)?,
        1 => engine.subscribe_from(&relation.name, 0)?,
        2 => engine.subscribe_from(&relation.name, rng.u64(..1_000))?,
        _ => engine.subscribe_from(&relation.name, u64::MAX - rng.u64(..2))?,
    };
    for _ in 0..rng.usize(..5) {
        subscription.try_next()?;
    }
    Ok(())
}

fn query(rng: &mut fastrand::Rng, engine: &Engine, relation: &RelationInfo) -> Result<()> {
    let name = relation.name.replace('"', "\"\"");
    let column = relation.schema.fields().first().map_or("a", |field| field.name());
    let column = column.replace('"', "\"\"");
    let text = [
        format!("SELECT * FROM \"{name}\" WHERE \"{column}\" = $1"),
        format!("SELECT $1, $2 FROM \"{name}\""),
        format!("SELECT \"{column}\" + $1 FROM \"{name}\" LIMIT $2"),
        format!("INSERT INTO \"{name}\" (\"{column}\") VALUES ($1)"),
        format!("DELETE FROM \"{name}\" WHERE \"{column}\" = $1"),
        format!("SELECT \"{column}\" LIKE $1 FROM \"{name}\" ORDER BY $2"),
    ];
    let text = &text[rng.usize(..text.len())];
    let parameters = (0..rng.usize(..4)).map(|_| {
        let data_type = some_type(rng);
        given(rng, &data_type)
    });
    let parameters: Vec<Value> = parameters.collect::<Result<_>>()?;
    match rng.bool() {
        true => engine.query_with(text, &parameters).map(drop),
        false => engine.execute_with(text, &parameters).map(drop),
    }
}

fn other(rng: &mut fastrand::Rng, engine: &Engine) -> Result<()> {
    let name = ["", "\0", "no such view", "Ünïcode", "\"", "a.b.c"][rng.usize(..6)];
    match rng.u32(..8) {
        0 => engine.committed(name).map(drop),
        1 => engine.checkpoint(),
        2 => engine.finish(),
        3 => engine.view(name).map(drop),
        4 => engine.subscribe(name).map(drop),
        5 => engine.begin()?.insert(name, RecordBatch::new_empty(Schema::empty().into())),
        6 => engine.wait(0).and_then(|()| engine.error_updates().map(drop)),
        _ => {
            let (_, _) = (engine.state(), engine.progress());
            Ok(())
        }
    }
}
