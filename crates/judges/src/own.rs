//! Functions that a program registers: DataFusion's, under names of their own. And functions that SQL defines, by what the other
//! databases are given in the place of a call.
//!
//! Views call them where the other databases call their built-in ones, or are given an operator. So they are judged like the rest.

use std::sync::Arc;

use alluvium::arrow::datatypes::{DataType, FieldRef};
use alluvium::functions::{
    Accumulator, AccumulatorArgs, AggregateUDF, AggregateUDFImpl, ColumnarValue, Result,
    ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, StateFieldsArgs,
};
use alluvium::{Builder, Engine};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::scalar::ScalarValue;

use crate::query::Op;

/// The prefix of the program's own function for a function of SQL.
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

/// The prefix of functions that SQL defines.
pub(crate) const DEFINED: &str = "defined_";

/// The functions that SQL defines by one operator, some with types and some without.
const DEFINITIONS: [(Op, &str); 9] = [
    (Op::Add, "MACRO defined_sum(a, b) AS a + b"),
    (Op::Subtract, "FUNCTION defined_difference(a, b) RETURN a - b"),
    (Op::Multiply, "MACRO defined_product(b, a) AS b * a"),
    (
        Op::Concat,
        "FUNCTION defined_both(a TEXT, b TEXT) RETURNS TEXT LANGUAGE SQL IMMUTABLE AS a || b",
    ),
    (Op::Less, "FUNCTION defined_less(a, b) RETURNS BOOLEAN AS a < b"),
    (Op::Greater, "FUNCTION defined_greater(a, b) RETURNS BOOLEAN AS defined_less(b, a)"),
    (Op::Equal, "MACRO defined_equal(a, b) AS a = b"),
    (Op::Unequal, "MACRO defined_unequal(a, b) AS NOT defined_equal(a, b)"),
    (Op::Same, "FUNCTION defined_same(a, b) RETURNS BOOLEAN RETURN a IS NOT DISTINCT FROM b"),
];

/// The function that SQL defines by an operator, if there is one.
pub(crate) fn defined(op: Op) -> Option<&'static str> {
    let (_, definition) = DEFINITIONS.iter().find(|(other, _)| *other == op)?;
    definition.split([' ', '(']).nth(1)
}

/// Defines the functions, unless the engine resumes what one with them did.
pub(crate) fn define(engine: &Engine) -> alluvium::Result<()> {
    DEFINITIONS.iter().try_for_each(|(_, definition)| {
        let (kind, definition) = definition.split_once(' ').unwrap_or_default();
        engine.execute(&format!("CREATE {kind} IF NOT EXISTS {definition}")).map(drop)
    })
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
