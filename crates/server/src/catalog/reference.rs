//! References to objects, which are OIDs and are shown as names: `'t'::regclass` is an OID, and `oid::regclass` a name.

use std::sync::Arc;

use alluvium::arrow::array::{Array, AsArray, ListArray, StringArray, UInt32Array};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{DataType, Field, FieldRef};
use alluvium::functions::{
    ColumnarValue, DataFusionError, NAME_OF_NONE, REFERENCE, Result, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::functions::quoted;
use super::lookup::Entries;

/// The objects that are referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Any whose entries are passed as the second argument. An unknown name is an error if it is `strict`, or NULL.
    Listed {
        /// The name of the function.
        name: &'static str,
        /// The kind of object, for messages.
        noun: &'static str,
        /// Whether it has to exist.
        strict: bool,
    },
    /// Functions of Postgres, which only have names.
    Function,
}

/// A function that takes a name to its OID, and an OID to the name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Reference {
    kind: Kind,
    signature: Signature,
}

impl Reference {
    pub(super) fn new(kind: Kind) -> Self {
        let count = match kind {
            Kind::Listed { .. } => 2,
            Kind::Function => 1,
        };
        Self { kind, signature: Signature::any(count, Volatility::Immutable) }
    }
}

/// Whether values of a type are names. So are parameters that are not known yet.
pub(super) fn is_name(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
}

impl ScalarUDFImpl for Reference {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Listed { name, .. } => name,
            Kind::Function => "function_reference",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match (&arguments[0], self.kind) {
            (DataType::List(_), _) => {
                DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))
            }
            (given, Kind::Listed { .. }) if is_name(given) => DataType::UInt32,
            _ => DataType::Utf8,
        })
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> =
            arguments.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        Ok(Arc::new(match self.kind {
            Kind::Listed { .. } => {
                field.with_metadata([(REFERENCE.to_owned(), String::new())].into())
            }
            // `typreceive <> 0`
            Kind::Function => {
                field.with_metadata([(NAME_OF_NONE.to_owned(), "-".to_owned())].into())
            }
        }))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let objects = &columns[0];
        let Kind::Listed { noun, strict, .. } = self.kind else {
            let names = cast(objects, &DataType::Utf8)?;
            let names = names.as_string::<i32>().iter().map(|name| name.map(known_as));
            return Ok(ColumnarValue::Array(Arc::new(names.collect::<StringArray>())));
        };
        let mut entries = Entries::new(&columns[1]);
        if let DataType::List(_) = objects.data_type() {
            let lists = objects.as_list::<i32>();
            let keys = cast(lists.values(), &DataType::Utf8)?;
            let names = keys.as_string::<i32>().iter();
            let names = names.map(|key| Some(entries.text(0, key?).unwrap_or(key?).to_owned()));
            let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
            let names = Arc::new(names.collect::<StringArray>());
            let nulls = lists.nulls().cloned();
            let lists = ListArray::try_new(field, lists.offsets().clone(), names, nulls)?;
            return Ok(ColumnarValue::Array(Arc::new(lists)));
        }
        let texts = cast(objects, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>().iter().enumerate();
        if !is_name(objects.data_type()) {
            let name = |(row, oid): (usize, Option<&str>)| {
                let oid = oid?;
                Some(entries.text(row, oid).map_or_else(|| number(oid), str::to_owned))
            };
            let names = texts.map(name).collect::<StringArray>();
            return Ok(ColumnarValue::Array(Arc::new(names)));
        }
        let oid = |(row, name): (usize, Option<&str>)| {
            let Some(name) = name else { return Ok(None) };
            if let Ok(oid) = name.parse::<u32>() {
                return Ok(Some(oid));
            }
            let known = entries.key(row, &known_as(name)).and_then(|oid| oid.parse().ok());
            match known {
                None if strict => {
                    let message = format!("there is no {noun} \"{name}\"");
                    Err(DataFusionError::Execution(message))
                }
                known => Ok(known),
            }
        };
        let oids: UInt32Array = texts.map(oid).collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(Arc::new(oids)))
    }
}

/// An OID without a name, as Postgres shows it.
fn number(oid: &str) -> String {
    if oid == "0" { "-".to_owned() } else { oid.to_owned() }
}

/// A name as the entries have it: without the schema that is searched anyway, without blanks around its dot, in lower case where it is
/// not in quotes, and in quotes where it has to be.
pub(super) fn known_as(name: &str) -> String {
    match parts(name).as_deref() {
        Some([name]) => quoted(name),
        Some([schema, name]) if matches!(schema.as_str(), "pg_catalog" | "public") => quoted(name),
        Some([schema, name]) => format!("{}.{}", quoted(schema), quoted(name)),
        // The spelling of a type, as `character varying`.
        _ => name.trim().to_owned(),
    }
}

/// The parts of a name, folded; `None` if it is no name.
fn parts(name: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let mut part = String::new();
                let mut rest = quoted;
                loop {
                    let (text, after) = rest.split_once('"')?;
                    part.push_str(text);
                    match after.strip_prefix('"') {
                        Some(next) => {
                            part.push('"');
                            rest = next;
                        }
                        None => break (part, after),
                    }
                }
            }
            None => {
                let is_of_name = |letter: char| letter.is_alphanumeric() || "_$".contains(letter);
                let end = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
                let (part, after) = rest.split_at(end);
                (part.to_lowercase(), after)
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        let after = after.trim_start();
        match after.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None => return after.is_empty().then_some(parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_and_quoted() {
        for (written, known) in [
            ("t", "t"),
            (" T ", "t"),
            ("\"T\"", "\"T\""),
            ("\"t\"", "t"),
            ("public . t", "t"),
            ("public.\"a.b\"", "\"a.b\""),
            ("S.\"a\"\"b\"", "s.\"a\"\"b\""),
            ("character varying", "character varying"),
            ("int4[]", "int4[]"),
            ("-", "-"),
            ("a.", "a."),
        ] {
            assert_eq!(known_as(written), known, "{written}");
        }
    }
}
