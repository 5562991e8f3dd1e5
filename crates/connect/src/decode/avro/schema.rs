//! Schemas of Avro, as the library takes them.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// The member of a schema that names what it is to Kafka Connect.
const CONNECT_NAME: &str = "connect.name";

/// Types of Debezium's that are numbers by Avro, and what they are.
const DEBEZIUM: &[(&str, &str)] = &[
    ("io.debezium.time.Date", "date"),
    ("io.debezium.time.MicroTime", "time-micros"),
    ("io.debezium.time.MicroTimestamp", "local-timestamp-micros"),
    ("io.debezium.time.NanoTimestamp", "local-timestamp-nanos"),
    ("io.debezium.time.Time", "time-millis"),
    ("io.debezium.time.Timestamp", "local-timestamp-millis"),
];

/// The member of the record that a schema becomes which is none.
pub(super) const VALUE: &str = "value";

/// A schema of a record.
#[derive(Debug, PartialEq)]
pub(super) struct Record {
    /// The schema, whole.
    pub text: String,
    /// The names of its fields.
    pub fields: Vec<String>,
    /// Whether it was none, and is the only [field](VALUE) of this.
    pub is_value: bool,
}

impl Record {
    /// Reads a schema that may name others, given with their full names.
    ///
    /// What is no record becomes the only field of one, which is encoded in the same bytes. Dates and times of Debezium's become
    /// those of Avro.
    pub(super) fn read(
        text: &str,
        others: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, String> {
        let parse = |text: &str| {
            // The language also has the name of a type without quotation marks.
            let is_name = text.chars().all(|char| char.is_ascii_alphanumeric());
            match is_name {
                true => Ok(Value::String(text.to_owned())),
                false => serde_json::from_str(text)
                    .map_err(|error| format!("the schema is not one of Avro: {error}")),
            }
        };
        let others = others.into_iter().map(|(name, text)| Ok((name, parse(text.trim())?)));
        let mut others: HashMap<String, Value> = others.collect::<Result<_, String>>()?;
        let mut schema = parse(text.trim())?;
        complete(&mut schema, "", &mut others);
        let is_value = schema.get("type").is_none_or(|kind| kind != "record");
        if is_value {
            schema = json!({ "type": "record", "name": "alluvium", "fields": [{ "name": VALUE, "type": schema }] });
        }
        let fields = schema.get("fields").and_then(Value::as_array).into_iter().flatten();
        let name = |field: &Value| Some(field.get("name")?.as_str()?.to_owned());
        let fields = fields.map(name).collect::<Option<_>>();
        let fields = fields.ok_or("the schema is not one of Avro: a field has no name")?;
        Ok(Self { text: schema.to_string(), fields, is_value })
    }
}

/// Puts other schemas in the place where they are first named, and the types of Avro in place of Debezium's.
fn complete(schema: &mut Value, namespace: &str, others: &mut HashMap<String, Value>) {
    match schema {
        Value::String(name) => {
            let full = if name.contains('.') { name.clone() } else { full_name(namespace, name) };
            if let Some(other) = others.remove(&full).or_else(|| others.remove(name.as_str())) {
                *schema = other;
                if let (Some(schema), Some((space, name))) =
                    (schema.as_object_mut(), full.rsplit_once('.'))
                {
                    schema.insert("name".to_owned(), name.into());
                    schema.insert("namespace".to_owned(), space.into());
                }
                complete(schema, namespace, others);
            }
        }
        Value::Array(branches) => {
            branches.iter_mut().for_each(|branch| complete(branch, namespace, others));
        }
        Value::Object(schema) => complete_object(schema, namespace, others),
        _ => {}
    }
}

fn complete_object(
    schema: &mut Map<String, Value>,
    namespace: &str,
    others: &mut HashMap<String, Value>,
) {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let own = match (text("namespace"), text("name").and_then(|name| name.rsplit_once('.'))) {
        (_, Some((namespace, _))) => namespace,
        (Some(namespace), None) => namespace,
        (None, None) => namespace,
    };
    let own = own.to_owned();
    let known = DEBEZIUM.iter().find(|(name, _)| text(CONNECT_NAME) == Some(name));
    if let Some((_, logical)) = known {
        schema.entry("logicalType").or_insert_with(|| (*logical).into());
    }
    if let Some(fields) = schema.get_mut("fields").and_then(Value::as_array_mut) {
        let types = fields.iter_mut().filter_map(|field| field.get_mut("type"));
        types.for_each(|kind| complete(kind, &own, others));
    }
    for member in ["type", "items", "values"] {
        if let Some(kind) = schema.get_mut(member) {
            complete(kind, &own, others);
        }
    }
}

fn full_name(namespace: &str, name: &str) -> String {
    match namespace {
        "" => name.to_owned(),
        namespace => format!("{namespace}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Record {
        Record::read(text, []).unwrap()
    }

    #[test]
    fn a_record_has_its_fields_and_what_is_none_becomes_one() {
        let record = read(
            r#"{"type": "record", "name": "r", "fields": [
                {"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}]}"#,
        );
        assert_eq!((record.fields, record.is_value), (vec!["a".to_owned(), "b".to_owned()], false));
        for text in ["\"long\"", " long ", r#"{"type": "long"}"#, r#"["null", "string"]"#] {
            let record = read(text);
            assert_eq!((record.fields, record.is_value), (vec![VALUE.to_owned()], true), "{text}");
        }
        let deep = format!("{}\"int\"{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(Record::read(&deep, []).unwrap_err().contains("not one of Avro"));
        assert!(Record::read("{\"type\": \"record\", \"fields\": [{}]}", []).is_err());
    }

    #[test]
    fn debeziums_times_are_avros() {
        let record = read(
            r#"{"type": "record", "name": "r", "fields": [
                {"name": "a", "type": ["null", {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}]},
                {"name": "b", "type": {"type": "int", "connect.name": "io.debezium.time.Date"}}]}"#,
        );
        assert!(record.text.contains("local-timestamp-micros"), "{}", record.text);
        assert!(record.text.contains("\"logicalType\":\"date\""), "{}", record.text);
    }

    #[test]
    fn others_stand_where_they_are_first_named() {
        let other = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let record = Record::read(
            r#"{"type": "record", "name": "r", "namespace": "shop", "fields": [
                {"name": "a", "type": "Money"}, {"name": "b", "type": ["null", "shop.Money"]}]}"#,
            [
                other(
                    "shop.Money",
                    r#"{"type": "record", "name": "Money", "fields": [{"name": "of", "type": "iso.Currency"}]}"#,
                ),
                other(
                    "iso.Currency",
                    r#"{"type": "enum", "name": "Currency", "namespace": "iso", "symbols": ["EUR"]}"#,
                ),
            ],
        );
        let text = record.unwrap().text;
        assert_eq!(text.matches("\"symbols\"").count(), 1, "{text}");
        assert_eq!(text.matches("\"name\":\"Money\"").count(), 1, "{text}");
        assert!(text.contains("\"namespace\":\"shop\""), "{text}");
    }
}
