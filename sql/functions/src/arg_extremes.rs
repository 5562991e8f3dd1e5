//! `arg_max(value, rank)` and `arg_min(value, rank)`: the value of the row with the largest or smallest rank.
//!
//! Rows in which either is NULL do not count. Of rows of equal rank, `arg_max` returns the largest value and `arg_min` the
//! smallest, so that the result depends on the rows alone. Views have an operator for both
//! ([`alluvium_dataflow::reductions::aggregate::Function`]); what is here evaluates them in queries and window functions.

use std::sync::Arc;

use alluvium_dataflow::rows::codec::{Encoded, KeyCodec};
use arrow::array::{Array, ArrayRef};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue, exec_err, plan_datafusion_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// Both functions.
pub(super) fn functions() -> [Arc<AggregateUDF>; 2] {
    let function = |name: &'static str, other_names: [&str; 2], descending| {
        Arc::new(AggregateUDF::from(ArgExtreme {
            name,
            aliases: other_names.map(str::to_owned).to_vec(),
            descending,
            signature: Signature::any(2, Volatility::Immutable),
        }))
    };
    [
        function("arg_max", ["argmax", "max_by"], true),
        function("arg_min", ["argmin", "min_by"], false),
    ]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArgExtreme {
    name: &'static str,
    aliases: Vec<String>,
    descending: bool,
    signature: Signature,
}

impl AggregateUDFImpl for ArgExtreme {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |(field, name): (&FieldRef, &str)| {
            let name = format_state_name(args.name, name);
            Arc::new(Field::new(name, field.data_type().clone(), true))
        };
        Ok(args.input_fields.iter().zip(["value", "rank"]).map(field).collect())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let [value, rank] = args.expr_fields else {
            return exec_err!("{} takes two arguments", self.name);
        };
        let first = First::new(self.name, value.data_type(), rank.data_type(), self.descending)?;
        Ok(Box::new(first))
    }
}

/// The first row in the order of rank and value.
#[derive(Debug)]
pub(super) struct First {
    codec: KeyCodec,
    /// The bytes of its rank and value, if there is a row.
    key: Option<Vec<u8>>,
    value: ScalarValue,
    rank: ScalarValue,
}

impl First {
    /// For values and ranks of these types; `name` is that of the function.
    pub(super) fn new(
        name: &str,
        value: &DataType,
        rank: &DataType,
        descending: bool,
    ) -> Result<Self> {
        let options = SortOptions { descending, nulls_first: false };
        let types = [rank, value].map(|kind| (kind.clone(), options));
        let codec = KeyCodec::with_order(types.to_vec())
            .map_err(|error| plan_datafusion_err!("{name}: {error}"))?;
        Ok(Self {
            codec,
            key: None,
            value: ScalarValue::try_from(value)?,
            rank: ScalarValue::try_from(rank)?,
        })
    }
}

impl Accumulator for First {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let [value, rank] = columns else { return exec_err!("two columns are expected") };
        let mut keys = Encoded::new();
        self.codec
            .encode(&[Arc::clone(rank), Arc::clone(value)], value.len(), &mut keys)
            .map_err(|error| plan_datafusion_err!("{error}"))?;
        let (value_nulls, rank_nulls) = (value.logical_nulls(), rank.logical_nulls());
        let is_null = |row: usize| {
            [&value_nulls, &rank_nulls].into_iter().flatten().any(|nulls| nulls.is_null(row))
        };
        let first = (0..value.len()).filter(|&row| !is_null(row)).min_by_key(|&row| keys.get(row));
        if let Some(row) = first
            && self.key.as_deref().is_none_or(|key| keys.get(row) < key)
        {
            self.key = Some(keys.get(row).to_vec());
            self.value = ScalarValue::try_from_array(value, row)?;
            self.rank = ScalarValue::try_from_array(rank, row)?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        let key = self.key.as_ref().map_or(0, Vec::capacity);
        size_of_val(self) + key + self.value.size() + self.rank.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), self.rank.clone()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
