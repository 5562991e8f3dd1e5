//! The functions of the catalog that SQL cannot write.

use std::sync::Arc;

use alluvium::arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, ListArray, StringArray, StructArray,
};
use alluvium::arrow::datatypes::{DataType, Field, Fields};
use alluvium::functions::{
    ColumnarValue, Result, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    create_udf,
};

use super::acl;
use super::lookup::lookup;
use super::object_id::object_id;
use super::privilege::HasPrivilege;
use super::reference::{Kind, Reference};
use super::types;
use super::vector::AsVector;

/// Makes a function of fixed types.
macro_rules! function {
    ($name:literal, [$($argument:expr),*], $result:expr, $body:path) => {
        create_udf($name, vec![$($argument),*], $result, Volatility::Immutable, Arc::new($body))
    };
}

/// All of them.
pub(super) fn all() -> Vec<ScalarUDF> {
    let text = || DataType::Utf8;
    let list_of = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
    let texts = || list_of(DataType::Utf8);
    let listed =
        |name, noun, strict| ScalarUDF::from(Reference::new(Kind::Listed { name, noun, strict }));
    vec![
        function!("object_id", [text(), text(), text()], DataType::UInt32, object_id),
        function!("lookup", [texts(), text()], text(), lookup),
        function!("column_type_id", [text()], DataType::UInt32, types::column_type_id),
        function!("column_type_modifier", [text()], DataType::Int32, types::column_type_modifier),
        function!("shown_type", [DataType::Int64, DataType::Int64], text(), types::shown_type),
        function!("owner_of", [list_of(texts())], text(), acl::owner_of),
        function!("acl_of", [text(), list_of(texts())], texts(), acl::acl_of),
        function!("acl_of_owner", [text(), text()], texts(), acl::acl_of_owner),
        function!("quoted_names", [texts()], text(), quoted_names),
        function!("quoted_name", [text()], text(), quoted_name),
        listed("relation_reference", "relation", true),
        listed("relation_or_null", "relation", false),
        listed("type_reference", "type", true),
        listed("type_or_null", "type", false),
        listed("schema_reference", "schema", true),
        listed("role_reference", "role", true),
        ScalarUDF::from(Reference::new(Kind::Function)),
        ScalarUDF::from(AsVector::new()),
        ScalarUDF::from(HasPrivilege::new()),
        ScalarUDF::from(Numbered { signature: Signature::any(1, Volatility::Immutable) }),
    ]
}

/// A name as SQL spells it.
pub(super) fn quoted(name: &str) -> String {
    let is_word = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    if is_word { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// `quoted_name(name)`
fn quoted_name(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let names = columns[0].as_string::<i32>().iter().map(|name| name.map(quoted));
    Ok(ColumnarValue::Array(Arc::new(names.collect::<StringArray>())))
}

/// `quoted_names(list)`, with commas between them.
fn quoted_names(arguments: &[ColumnarValue]) -> Result<ColumnarValue> {
    let columns = ColumnarValue::values_to_arrays(arguments)?;
    let lists = columns[0].as_list::<i32>().iter().map(|list| {
        let list = list?;
        let names: Vec<String> = list.as_string::<i32>().iter().flatten().map(quoted).collect();
        Some(names.join(", "))
    });
    Ok(ColumnarValue::Array(Arc::new(lists.collect::<StringArray>())))
}

/// `numbered_elements(list)`: structs of each element `x` and its place `n`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Numbered {
    signature: Signature,
}

impl Numbered {
    fn fields(element: &DataType) -> Fields {
        let fields =
            vec![Field::new("x", element.clone(), true), Field::new("n", DataType::Int32, true)];
        fields.into()
    }
}

impl ScalarUDFImpl for Numbered {
    fn name(&self) -> &str {
        "numbered_elements"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let element = match &arguments[0] {
            DataType::List(element) => element.data_type().clone(),
            other => other.clone(),
        };
        let numbered = DataType::Struct(Self::fields(&element));
        Ok(DataType::List(Arc::new(Field::new_list_field(numbered, true))))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let Some(lists) = columns[0].as_list_opt::<i32>() else {
            return failed("_pg_expandarray() takes a list");
        };
        let offsets = lists.offsets();
        let start = usize::try_from(offsets[0]).unwrap_or_default();
        let end = usize::try_from(offsets[offsets.len() - 1]).unwrap_or_default();
        let lengths: Vec<usize> = offsets.lengths().collect();
        let places = lengths.iter().flat_map(|length| 1..=*length);
        let places: Int32Array = places.map(|place| i32::try_from(place).ok()).collect();
        let elements: ArrayRef = lists.values().slice(start, end - start);
        let fields = Self::fields(elements.data_type());
        let values = StructArray::try_new(fields.clone(), vec![elements, Arc::new(places)], None)?;
        let field = Arc::new(Field::new_list_field(DataType::Struct(fields), true));
        let offsets = alluvium::arrow::buffer::OffsetBuffer::from_lengths(lengths);
        let lists = ListArray::try_new(field, offsets, Arc::new(values), lists.nulls().cloned())?;
        Ok(ColumnarValue::Array(Arc::new(lists)))
    }
}

fn failed<T>(message: &str) -> Result<T> {
    Err(alluvium::functions::DataFusionError::Execution(message.to_owned()))
}
