//! Aggregates of the elements of a list: `list_median(l)` is `median` of them.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray, new_empty_array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::{
    AggregateUDF, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion_physical_expr::aggregate::AggregateExprBuilder;
use datafusion_physical_expr::expressions::Column;

/// These functions, and their aggregates.
const FUNCTIONS: [(&str, &str); 20] = [
    ("list_approx_count_distinct", "approx_distinct"),
    ("list_bit_and", "bit_and"),
    ("list_bit_or", "bit_or"),
    ("list_bit_xor", "bit_xor"),
    ("list_bool_and", "bool_and"),
    ("list_bool_or", "bool_or"),
    ("list_entropy", "entropy"),
    ("list_histogram", "histogram"),
    ("list_kurtosis", "kurtosis"),
    ("list_kurtosis_pop", "kurtosis_pop"),
    ("list_mad", "mad"),
    ("list_median", "median"),
    ("list_mode", "mode"),
    ("list_sem", "sem"),
    ("list_skewness", "skewness"),
    ("list_stddev", "stddev"),
    ("list_stddev_pop", "stddev_pop"),
    ("list_stddev_samp", "stddev"),
    ("list_var_pop", "var_pop"),
    ("list_var_samp", "var"),
];

/// The functions whose aggregates are among these.
pub(crate) fn functions(
    aggregates: &HashMap<String, Arc<AggregateUDF>>,
) -> impl Iterator<Item = Arc<ScalarUDF>> {
    FUNCTIONS.iter().filter_map(|(name, aggregate)| {
        let aggregate = Arc::clone(aggregates.get(*aggregate)?);
        let signature = Signature::user_defined(Volatility::Immutable);
        Some(Arc::new(ScalarUDF::from(OfList { name, aggregate, signature })))
    })
}

#[derive(Debug)]
struct OfList {
    name: &'static str,
    aggregate: Arc<AggregateUDF>,
    signature: Signature,
}

impl PartialEq for OfList {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for OfList {}

impl Hash for OfList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for OfList {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// A list of the aggregate's arguments.
    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let element = match arguments {
            [
                DataType::List(element)
                | DataType::LargeList(element)
                | DataType::FixedSizeList(element, _),
            ] => element,
            [DataType::Null] => return Ok(vec![DataType::new_list(DataType::Float64, true)]),
            [other] => return plan_err!("a list is expected, not {other}"),
            _ => return plan_err!("it has 1 argument, not {}", arguments.len()),
        };
        let taken = fields_with_udf(&[Arc::clone(element)], self.aggregate.as_ref())?;
        Ok(taken.iter().map(|of| DataType::new_list(of.data_type().clone(), true)).collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type is that of the aggregate's field")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let DataType::List(element) = arguments.arg_fields[0].data_type() else {
            return plan_err!("a list is expected");
        };
        let result = self.aggregate.return_field(&[Arc::clone(element)])?;
        Ok(Arc::new(Field::new(self.name, result.data_type().clone(), true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = matches!(arguments.args[0], ColumnarValue::Scalar(_));
        let lists =
            arguments.args[0].to_array(if is_scalar { 1 } else { arguments.number_rows })?;
        let lists = lists.as_list::<i32>();
        let element = Field::new("element", lists.value_type(), true);
        let schema = Arc::new(Schema::new(vec![element]));
        let aggregate = AggregateExprBuilder::new(
            Arc::clone(&self.aggregate),
            vec![Arc::new(Column::new("element", 0))],
        )
        .schema(schema)
        .alias(self.name)
        .build()?;
        let kind = arguments.return_field.data_type();
        let results = lists.iter().map(|list| {
            let Some(list) = list else { return ScalarValue::try_from(kind) };
            let mut accumulator = aggregate.create_accumulator()?;
            accumulator.update_batch(&[list])?;
            accumulator.evaluate()
        });
        let results = results.collect::<Result<Vec<_>>>()?;
        let results = match results.is_empty() {
            true => new_empty_array(kind),
            false => ScalarValue::iter_to_array(results)?,
        };
        match is_scalar {
            true => ScalarValue::try_from_array(&results, 0).map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(results)),
        }
    }
}
