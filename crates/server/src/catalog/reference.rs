//! References to objects, which are OIDs and are shown as names: `'t'::regclass` is an OID, and `oid::regclass` a name.

use std::sync::Arc;

use alluvium::arrow::array::{Array, AsArray, ListArray, StringArray, UInt32Array};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{DataType, Field, FieldRef};
use alluvium::functions::{
    ColumnarValue, DataFusionError, NAME_OF_NONE, Result, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDFImpl, Signature, Volatility,
};

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
fn is_name(data_type: &DataType) -> bool {
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
            Kind::Listed { .. } => field,
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
            let names = names.as_string::<i32>().iter().map(|name| name.map(short));
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
            let known = entries.key(row, short(name)).and_then(|oid| oid.parse().ok());
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

/// A name without the schema that is searched anyway.
fn short(name: &str) -> &str {
    let name = name.trim();
    let without = ["pg_catalog.", "public."].iter().find_map(|schema| name.strip_prefix(schema));
    let name = without.unwrap_or(name);
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)
}
