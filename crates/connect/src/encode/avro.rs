//! Rows and changes as records of Avro.
//!
//! A registry has the schemas of a topic's keys and values by the names that others give them: `TOPIC-key` and `TOPIC-value`. A
//! message begins with the identifier of its schema. Records are encoded one after the other without anything between, so that a
//! change is its members before the row's, or around it.

use std::sync::Arc;

use alluvium::{Error, Live, Result};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use arrow_avro::schema::{AvroSchema, CONFLUENT_MAGIC, SCHEMA_METADATA_KEY};
use arrow_avro::writer::WriterBuilder;
use arrow_avro::writer::format::AvroBinaryFormat;
use serde_json::{Value, json};

use super::rows::Lines;
use super::{Change, Envelope};
use crate::systems::registry::Registry;

/// How rows and their keys are written.
pub struct Avro {
    value: Identifier,
    key: Identifier,
    rows: Record,
    keys: Record,
}

/// What a message begins with.
type Identifier = [u8; 5];

/// Records of some columns.
struct Record {
    /// The columns as they are written, with the schema of their record.
    schema: SchemaRef,
    json: Value,
}

impl Avro {
    /// For a topic whose schemas a registry has from now on. Waits for the registry until it answers.
    ///
    /// # Errors
    /// If a column has no name or type in Avro, the registry does not take a schema, or `live` is over.
    pub fn new(
        (topic, registry): (&str, &Registry),
        (columns, key): (&SchemaRef, &[usize]),
        envelope: Envelope,
        live: Option<&Live>,
    ) -> Result<Self> {
        let rows = Record::new(columns, "Row")?;
        let keys = Record::new(&Arc::new(columns.project(key)?), "Key")?;
        let register = |part: &str, schema: &Value| {
            let id = registry.register(&format!("{topic}-{part}"), &schema.to_string(), live)?;
            let [a, b, c, d] = id.to_be_bytes();
            Ok::<_, Error>([CONFLUENT_MAGIC[0], a, b, c, d])
        };
        let value = register("value", &message(&rows.json, envelope))?;
        // Messages without keys have no schema of them.
        let key = if key.is_empty() { value } else { register("key", &keys.json)? };
        Ok(Self { value, key, rows, keys })
    }

    /// The rows, as [`row`](Self::row) and [`change`](Self::change) take them.
    pub(super) fn rows(&self, rows: &RecordBatch) -> Result<Lines> {
        self.rows.encode(rows, &[])
    }

    /// The keys of messages, given their columns.
    pub(super) fn keys(&self, keys: &RecordBatch) -> Result<Lines> {
        self.keys.encode(keys, &self.key)
    }

    /// A message that is a row.
    pub(super) fn row<'a>(&self, row: &[u8], to: &'a mut Vec<u8>) -> &'a [u8] {
        to.clear();
        to.extend_from_slice(&self.value);
        to.extend_from_slice(row);
        to
    }

    /// A message that is a change.
    pub(super) fn change(&self, change: Change<'_>, to: &mut Vec<u8>) {
        to.clear();
        to.extend_from_slice(&self.value);
        match change {
            Change::Weighted { epoch, weight, row } => {
                put_long(to, epoch.cast_signed());
                put_long(to, weight);
                to.extend_from_slice(row);
            }
            Change::Debezium { epoch, before, after, operation } => {
                for row in [before, after] {
                    // The branch of the union.
                    put_long(to, i64::from(row.is_some()));
                    to.extend_from_slice(row.unwrap_or_default());
                }
                put_long(to, operation.len() as i64);
                to.extend_from_slice(operation.as_bytes());
                put_long(to, epoch.cast_signed());
            }
        }
    }
}

impl Record {
    fn new(columns: &SchemaRef, name: &str) -> Result<Self> {
        let fields = columns.fields().iter().map(|field| {
            check_name(field.name())?;
            Ok(Field::new(field.name(), written(field), field.is_nullable()))
        });
        let schema = Schema::new(fields.collect::<Result<Vec<_>>>()?);
        let text = AvroSchema::try_from(&schema)?.json_string;
        let mut json: Value = serde_json::from_str(&text)
            .map_err(|error| Error::source(format!("a schema of Avro is no JSON: {error}")))?;
        json["name"] = name.into();
        let metadata = [(SCHEMA_METADATA_KEY.to_owned(), json.to_string())].into();
        Ok(Self { schema: Arc::new(schema.with_metadata(metadata)), json })
    }

    /// The records, each after `head`.
    fn encode(&self, rows: &RecordBatch, head: &[u8]) -> Result<Lines> {
        let columns = rows.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| values(column, field));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let rows = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        let builder = WriterBuilder::new(self.schema.as_ref().clone());
        let failed = |error: arrow_avro::errors::AvroError| Error::source(error.to_string());
        let mut encoder = builder.build_encoder::<AvroBinaryFormat>().map_err(failed)?;
        encoder.encode(&rows).map_err(failed)?;
        Ok(Lines::of_parts(head, encoder.flush().iter()))
    }
}

/// The schema of messages that have rows.
fn message(row: &Value, envelope: Envelope) -> Value {
    let member = |name: &str| json!({ "name": name, "type": "long" });
    match envelope {
        Envelope::Upsert => row.clone(),
        Envelope::Changes => {
            let mut change = row.clone();
            change["name"] = "Change".into();
            let columns = change["fields"].as_array().cloned().unwrap_or_default();
            let members = ["epoch", "weight"].map(member).into_iter();
            change["fields"] = members.chain(columns).collect();
            change
        }
        Envelope::Debezium => json!({ "type": "record", "name": "Envelope", "fields": [
            { "name": "before", "type": ["null", row], "default": null },
            { "name": "after", "type": ["null", row["name"]], "default": null },
            { "name": "op", "type": "string" },
            { "name": "source", "type": { "type": "record", "name": "Source", "fields": [member("epoch")] } },
        ] }),
    }
}

/// Fails if a column's name is none in Avro.
fn check_name(name: &str) -> Result<()> {
    let is_letter = |char: char| char.is_ascii_alphabetic() || char == '_';
    let is_name = name.starts_with(is_letter)
        && name.chars().all(|char| is_letter(char) || char.is_ascii_digit());
    match is_name {
        true => Ok(()),
        false => Err(Error::source(format!(
            "\"{name}\" is no name in Avro, which has letters, digits and underscores; name the view's column otherwise"
        ))),
    }
}

/// The type that a column is written as: numbers without a sign of 64 bits are decimals, and intervals are texts.
fn written(field: &Field) -> DataType {
    match field.data_type() {
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Interval(IntervalUnit::MonthDayNano) => DataType::Utf8,
        DataType::Time64(TimeUnit::Nanosecond) => DataType::Time64(TimeUnit::Microsecond),
        kind => kind.clone(),
    }
}

/// Values as they are written.
fn values(given: &ArrayRef, to: &Field) -> Result<ArrayRef> {
    if given.data_type() == to.data_type() {
        return Ok(given.clone());
    }
    let values = cast(given, to.data_type())?;
    let is_cut = matches!(to.data_type(), DataType::Time64(_))
        && &cast(&values, given.data_type())? != given;
    if is_cut {
        return Err(Error::source(format!(
            "a time in the column \"{}\" has nanoseconds, which Avro does not have; round it, or cast it to TEXT",
            to.name()
        )));
    }
    Ok(values)
}

/// A number as Avro has it: seven bits a byte, the lowest first, with the sign as the lowest of all.
fn put_long(to: &mut Vec<u8>, value: i64) {
    let mut left = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while left > 0x7F {
        to.push((left & 0x7F) as u8 | 0x80);
        left >>= 7;
    }
    to.push(left as u8);
}
