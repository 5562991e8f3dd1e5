//! Window functions over partitions that are recomputed as a whole.

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Spine};
use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::{cast, concat};
use arrow::datatypes::DataType;
use datafusion_common::Result as DataFusionResult;
use datafusion_physical_expr::window::WindowExpr;

use super::{Definition, Windowed};
use crate::map::message;
use crate::movement::delta::DeltaStream;
use crate::movement::exchange::exchange;
use crate::reductions::ranked::entry::{EntryEncoder, push_entries, split};
use crate::reductions::recompute::{Evaluator, Groups, Results, expanded, recompute};
use crate::rows::codec::{CodecError, Encoded, canonical_floats, has_floats};
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::{Layout, all_columns, assemble};
use crate::state::arrangement::arrange_encoded;

/// Window functions over one partitioning.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The partition of a row.
    key: KeyColumns,
    entries: EntryEncoder,
    expressions: Vec<Arc<dyn WindowExpr>>,
    /// The columns of the order that have floats, whose zeros are equal, though DataFusion tells them apart.
    floats: Vec<usize>,
    /// The types of the results.
    results: Vec<DataType>,
    /// The columns of the input, then the results.
    output: Layout,
}

impl Whole {
    /// As [`super::Spec::compile`].
    pub(super) fn compile(definition: &Definition<'_>) -> Result<Self, CodecError> {
        let &Definition { input, keys, order, functions, output, .. } = definition;
        let expressions = functions
            .iter()
            .map(|function| function.expression(input, order))
            .collect::<DataFusionResult<Vec<_>>>()
            .map_err(|error| CodecError::Evaluation(message(&error)))?;
        let results = functions.iter().map(|function| function.result.data_type().clone());
        Ok(Self {
            key: KeyColumns::new(input, keys)?,
            entries: definition.entries()?,
            expressions,
            floats: order
                .iter()
                .map(|&(column, _)| column)
                .filter(|column| has_floats(input.field(*column).data_type()))
                .collect(),
            results: results.collect(),
            output: Layout::keyed(output.clone(), keys)?,
        })
    }
}

/// The rows of `stream` with the results of window functions. Exchanges rows by partition.
pub(super) fn window<'scope>(
    spec: &Whole,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> Windowed<'scope> {
    let layout = spec.entries.layout();
    let entries = arrange_encoded::<Epoch, Spine<Epoch>>(
        spec.entries.clone().encode(exchange(stream, &spec.key, context), context),
        "ArrangePartitions",
        layout.key_names(),
        context,
        push_entries,
    );
    let width = layout.schema().fields().len();
    let results = &spec.output.schema().fields()[width..];
    let names = results.iter().map(|result| result.name().clone()).collect();
    let evaluator = Windows { spec: spec.clone(), values: Encoded::counted(context) };
    let (rows, errors) = recompute(entries, evaluator, spec.output.clone(), false, names, context);
    Windowed { rows, errors }
}

/// Evaluates window functions over partitions.
struct Windows {
    spec: Whole,
    values: Encoded,
}

impl Evaluator for Windows {
    fn evaluate(&mut self, groups: &Groups, results: &mut Results) {
        let layout = self.spec.entries.layout();
        let schema = layout.schema();
        let values = groups.values().map(|entry| split(entry, 0).1);
        let columns = layout.decode(groups.keys(), values, &all_columns(schema));
        let (rows, ranges) = expanded(&assemble(schema.clone(), columns, groups.rows()), groups);

        let ordered = with_one_zero(&rows, &self.spec.floats);
        let mut pieces: Vec<Vec<ArrayRef>> =
            vec![Vec::with_capacity(groups.len()); self.spec.expressions.len()];
        let mut failures = vec![None; groups.len()];
        for (range, failure) in ranges.iter().zip(&mut failures) {
            let partition = ordered.slice(range.start, range.len());
            for (number, (expression, result)) in
                self.spec.expressions.iter().zip(&self.spec.results).enumerate()
            {
                let piece = evaluate(expression, &partition, result).unwrap_or_else(|error| {
                    // A partition has one error, however many of its functions fail.
                    failure.get_or_insert_with(|| (number, message(&error)));
                    new_null_array(result, range.len())
                });
                pieces[number].push(piece);
            }
        }
        let mut columns = rows.columns().to_vec();
        for pieces in &pieces {
            let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
            columns.push(concat(&pieces).expect("the pieces of a column have one type"));
        }
        let output = &self.spec.output;
        let columns: Vec<ArrayRef> =
            output.value_columns().iter().map(|&column| columns[column].clone()).collect();
        self.values.clear();
        output.encode_values(&columns, rows.num_rows(), &mut self.values);
        for (range, failure) in ranges.into_iter().zip(failures) {
            match failure {
                Some((number, message)) => results.error(number, &message),
                None => range.for_each(|row| results.row(self.values.get(row))),
            }
            results.end();
        }
    }
}

/// The rows with 0.0 for -0.0 in these columns.
fn with_one_zero(rows: &RecordBatch, floats: &[usize]) -> RecordBatch {
    if floats.is_empty() {
        return rows.clone();
    }
    let mut columns = rows.columns().to_vec();
    for &column in floats {
        columns[column] =
            canonical_floats(&columns[column]).expect("floats stay floats, at any depth");
    }
    RecordBatch::try_new(rows.schema(), columns).expect("columns keep their types and lengths")
}

fn evaluate(
    expression: &Arc<dyn WindowExpr>,
    partition: &RecordBatch,
    result: &DataType,
) -> DataFusionResult<ArrayRef> {
    let column = expression.evaluate(partition)?;
    if column.data_type() == result { Ok(column) } else { Ok(cast(&column, result)?) }
}
