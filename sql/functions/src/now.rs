//! `NOW()` and similar functions, which the planner replaces.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// The type of the time.
pub fn moment() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))
}

/// The functions that return the time of the epoch.
pub(super) fn functions() -> impl Iterator<Item = Arc<ScalarUDF>> {
    let function = |name, aliases: &[&str], result| {
        Arc::new(ScalarUDF::from(Now {
            name,
            aliases: aliases.iter().map(ToString::to_string).collect(),
            result,
            signature: Signature::nullary(Volatility::Stable),
        }))
    };
    [
        function("now", &["current_timestamp"], moment()),
        function("localtimestamp", &[], DataType::Timestamp(TimeUnit::Microsecond, None)),
        function("current_date", &["today"], DataType::Date32),
        function("current_time", &["localtime"], DataType::Time64(TimeUnit::Nanosecond)),
    ]
    .into_iter()
}

/// The time of the epoch, or a part of it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Now {
    name: &'static str,
    aliases: Vec<String>,
    result: DataType,
    signature: Signature,
}

impl Now {
    /// The type of its result.
    pub fn result(&self) -> &DataType {
        &self.result
    }

    /// The function in a plan that is optimised once and runs often: no optimiser takes it for a constant.
    pub fn kept(&self) -> Self {
        let signature = Signature::nullary(Volatility::Volatile);
        Self {
            name: self.name,
            aliases: self.aliases.clone(),
            result: self.result.clone(),
            signature,
        }
    }
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name, self.result.clone(), false)))
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{}() is replaced before a plan runs", self.name)
    }
}
