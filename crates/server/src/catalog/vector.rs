//! The type of columns that are `int2vector` or `oidvector` in Postgres: lists, which remember it.

use std::sync::Arc;

use alluvium::arrow::datatypes::{DataType, Field, FieldRef};
use alluvium::functions::{
    ColumnarValue, Result, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
    Volatility,
};

/// The key of the metadata of columns whose types are those of `pg_catalog` alone.
pub(crate) const OF_CATALOG: &str = "alluvium.pg_catalog";
/// Its value for vectors.
pub(crate) const VECTOR: &str = "vector";

/// `as_vector(list)`: the same list.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct AsVector {
    signature: Signature,
}

impl AsVector {
    pub(super) fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for AsVector {
    fn name(&self) -> &str {
        "as_vector"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let list = arguments.arg_fields[0].data_type().clone();
        let metadata = [(OF_CATALOG.to_owned(), VECTOR.to_owned())];
        Ok(Arc::new(Field::new(self.name(), list, true).with_metadata(metadata.into())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(arguments.args[0].clone())
    }
}
