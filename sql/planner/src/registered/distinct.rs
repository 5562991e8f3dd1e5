//! DISTINCT, for accumulators that take rows as they come.

use std::collections::HashSet;
use std::sync::Arc;

use alluvium_dataflow::rows::codec::{CodecError, Encoded, KeyCodec};
use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::utils::SingleRowListArrayBuilder;
use datafusion_common::{DataFusionError, Result, ScalarValue, plan_datafusion_err};
use datafusion_expr::Accumulator;
use datafusion_expr::function::StateFieldsArgs;
use datafusion_expr::utils::format_state_name;

/// Gives an accumulator each row once.
#[derive(Debug)]
pub(super) struct Distinct {
    accumulator: Box<dyn Accumulator>,
    codec: KeyCodec,
    /// The rows that it was given.
    seen: HashSet<Box<[u8]>>,
    /// Their bytes.
    bytes: usize,
}

impl Distinct {
    /// For arguments of these fields.
    pub(super) fn new(accumulator: Box<dyn Accumulator>, arguments: &[FieldRef]) -> Result<Self> {
        let types: Vec<DataType> =
            arguments.iter().map(|field| field.data_type().clone()).collect();
        let codec = KeyCodec::new(&types).map_err(failed)?;
        Ok(Self { accumulator, codec, seen: HashSet::new(), bytes: 0 })
    }
}

/// The state of an aggregate of distinct rows: a list of the values of each argument.
pub(super) fn state_fields(arguments: &StateFieldsArgs<'_>) -> Vec<FieldRef> {
    let fields = arguments.input_fields.iter().enumerate();
    let fields = fields.map(|(number, field)| {
        let name = format_state_name(arguments.name, &format!("distinct {number}"));
        let list = Field::new_list_field(field.data_type().clone(), true);
        Arc::new(Field::new(name, DataType::List(Arc::new(list)), true))
    });
    fields.collect()
}

fn failed(error: CodecError) -> DataFusionError {
    plan_datafusion_err!("DISTINCT: {error}")
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut keys = Encoded::new();
        self.codec.encode(columns, rows, &mut keys).map_err(failed)?;
        let mut new: Vec<u32> = Vec::new();
        for row in 0..rows {
            let key = keys.get(row);
            if !self.seen.contains(key) {
                self.seen.insert(key.into());
                self.bytes += size_of::<Box<[u8]>>() + key.len();
                new.push(row as u32);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let new = UInt32Array::from(new);
        let new = columns.iter().map(|column| Ok(take(column, &new, None)?));
        self.accumulator.update_batch(&new.collect::<Result<Vec<_>>>()?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.accumulator.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut keys: Vec<&[u8]> = self.seen.iter().map(AsRef::as_ref).collect();
        keys.sort_unstable();
        let columns = self.codec.decode(keys).map_err(failed)?;
        let list = |values| SingleRowListArrayBuilder::new(values).build_list_scalar();
        Ok(columns.into_iter().map(list).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let count = states.first().map_or(0, |lists| lists.len());
        for state in 0..count {
            let columns = states.iter().map(|lists| lists.as_list::<i32>().value(state));
            self.update_batch(&columns.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.accumulator.size() + self.bytes
    }
}
