//! Functions that a program registers: DataFusion's, under names of their own.
//!
//! Views call them where the other databases call their built-in ones. So what is registered is judged like the rest.

use std::sync::Arc;

use alluvium::Builder;
use alluvium::arrow::datatypes::{DataType, FieldRef};
use alluvium::functions::{
    Accumulator, AccumulatorArgs, AggregateUDF, AggregateUDFImpl, ColumnarValue, Result,
    ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, StateFieldsArgs,
};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::scalar::ScalarValue;

/// What stands before the name of the function that one of a program is.
pub(crate) const PREFIX: &str = "own_";

/// The scalar functions.
const SCALARS: [&str; 6] = ["abs", "upper", "lower", "length", "substr", "replace"];

/// The aggregates.
const AGGREGATES: [&str; 8] = [
    "median",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_xor",
    "array_agg",
    "regr_count",
    "string_agg",
];

/// Whether a function, in lower case, is registered under another name, too.
pub(crate) fn is_own(name: &str) -> bool {
    SCALARS.contains(&name) || AGGREGATES.contains(&name)
}

/// The engine with these functions.
pub(crate) fn registered(mut builder: Builder) -> Builder {
    let state = SessionStateBuilder::new().with_default_features().build();
    let own = |name: &str| format!("{PREFIX}{name}");
    for name in SCALARS {
        let function = state.scalar_functions()[name].clone();
        builder = builder.function(OwnScalar { name: own(name), function });
    }
    for name in AGGREGATES {
        let function = state.aggregate_functions()[name].clone();
        builder = builder.aggregate(OwnAggregate { name: own(name), function });
    }
    builder
}

/// A scalar function of another name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OwnScalar {
    name: String,
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for OwnScalar {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.function.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function.return_field_from_args(arguments)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.function.invoke_with_args(arguments)
    }
}

/// An aggregate of another name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OwnAggregate {
    name: String,
    function: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for OwnAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.function.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        self.function.return_field(arguments)
    }

    fn is_nullable(&self) -> bool {
        self.function.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.function.default_value(data_type)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.function.state_fields(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(arguments)
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.function.create_sliding_accumulator(arguments)
    }
}
