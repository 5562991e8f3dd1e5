//! A guard around a scalar function.

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::{check_type, guarded};

/// A scalar function of a program, by one of its names.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct GuardedScalar {
    name: String,
    function: Arc<ScalarUDF>,
}

impl GuardedScalar {
    pub(super) fn new(name: &str, function: Arc<ScalarUDF>) -> Self {
        Self { name: name.to_owned(), function }
    }

    /// Fails unless a result is what the function has announced, for this many rows; `is_constant`: all of its arguments are
    /// the same in all rows, and there are some.
    fn check(
        &self,
        result: &ColumnarValue,
        announced: &FieldRef,
        rows: usize,
        is_constant: bool,
    ) -> Result<()> {
        let name = &self.name;
        check_type(name, &result.data_type(), announced.data_type())?;
        if let ColumnarValue::Array(values) = result
            && values.len() != rows
            && !(values.len() == 1 && is_constant)
        {
            return exec_err!("{name}() returned {} values for {rows} rows", values.len());
        }
        let has_nulls = || match result {
            ColumnarValue::Scalar(value) => value.is_null(),
            ColumnarValue::Array(values) => values.logical_null_count() > 0,
        };
        match !announced.is_nullable() && has_nulls() {
            true => exec_err!("{name}() returned NULL, and had announced that it never does"),
            false => Ok(()),
        }
    }
}

impl ScalarUDFImpl for GuardedScalar {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        guarded(&self.name, || self.function.coerce_types(arguments))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        guarded(&self.name, || self.function.return_type(arguments))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        guarded(&self.name, || self.function.return_field_from_args(arguments))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (announced, rows) = (Arc::clone(&arguments.return_field), arguments.number_rows);
        let is_scalar = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Scalar(_));
        let is_constant = !arguments.args.is_empty() && arguments.args.iter().all(is_scalar);
        let result = guarded(&self.name, || self.function.inner().invoke_with_args(arguments))?;
        self.check(&result, &announced, rows, is_constant)?;
        Ok(result)
    }
}
