//! Aggregates of distinct values: the rows of a group as accumulators are told of them.
//!
//! Each input whose values count once is a stream of its own, of the distinct pairs of group and value. All
//! streams are put into one, with a column for each input and NULL in those of the others, so that one state
//! per group takes in all of them:
//!
//! ```text
//! keys | a row that counts as such | inputs of rows | input of distinct values | another | …
//!    k |                      true |              5 |                     NULL |    NULL
//!    k |                      NULL |           NULL |                        7 |    NULL
//! ```

use std::sync::Arc;

use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, BooleanArray, new_null_array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Concatenate;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

use super::{Aggregate, Columns, select};
use crate::codec::{CodecError, KeyCodec};
use crate::delta::{Delta, DeltaStream};
use crate::distinct::distinct;
use crate::exchange::exchange;
use crate::layout::{all_columns, assemble, types_of};

/// How the inputs of aggregates are told, some of them once per value.
pub(super) struct DistinctInputs {
    keys: Vec<usize>,
    /// Keys, a mark for rows, then the input of each of `aggregates` in order.
    schema: SchemaRef,
    aggregates: Vec<Aggregate>,
    /// The inputs of rows: a column of the input, and its place in `schema`.
    of_rows: Vec<(usize, usize)>,
    /// The inputs of distinct values: a column of the input, and its places in `schema`.
    of_values: Vec<(usize, Vec<usize>)>,
    input: SchemaRef,
}

impl DistinctInputs {
    /// Of the linear aggregates of a GROUP BY `keys` over rows of `input`.
    pub(super) fn new(input: &SchemaRef, keys: &[usize], aggregates: &[Aggregate]) -> Self {
        let nullable = |column: usize| input.field(column).clone().with_nullable(true);
        let mut fields: Vec<Field> = keys.iter().map(|&key| input.field(key).clone()).collect();
        let mut of_rows = Vec::new();
        let mut of_values: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut told = Vec::with_capacity(aggregates.len());
        for aggregate in aggregates {
            let place = fields.len();
            match aggregate.input {
                None => fields.push(Field::new("row", DataType::Boolean, true)),
                Some(column) => {
                    fields.push(nullable(column));
                    if aggregate.distinct {
                        match of_values.iter_mut().find(|(other, _)| *other == column) {
                            Some((_, places)) => places.push(place),
                            None => of_values.push((column, vec![place])),
                        }
                    } else {
                        of_rows.push((column, place));
                    }
                }
            }
            told.push(Aggregate { input: Some(place), ..aggregate.clone() });
        }
        Self {
            keys: keys.to_vec(),
            schema: Arc::new(Schema::new(fields)),
            aggregates: told,
            of_rows,
            of_values,
            input: input.clone(),
        }
    }

    /// The columns of what is told.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The aggregates, over what is told.
    pub(super) fn aggregates(&self) -> &[Aggregate] {
        &self.aggregates
    }

    /// What is told of `rows`, each row on the worker of its group, where `grouped` has the rows already.
    pub(super) fn told<'scope>(
        &self,
        grouped: &DeltaStream<'scope, Epoch>,
        rows: &DeltaStream<'scope, Epoch>,
        codec: &KeyCodec,
    ) -> Result<DeltaStream<'scope, Epoch>, CodecError> {
        let groups: Vec<usize> = (0..self.keys.len()).collect();
        let mut streams = Vec::with_capacity(1 + self.of_values.len());
        for (column, places) in &self.of_values {
            let columns: Vec<usize> = self.keys.iter().copied().chain([*column]).collect();
            let schema = select(&self.input, &columns);
            let all = all_columns(&schema);
            let values = rows.clone().columns(columns, schema.clone());
            // By group and value: the values of a large group are spread over the workers.
            let values = exchange(values, &all, KeyCodec::new(&types_of(&schema, &all))?);
            let values = distinct(values, schema)?;
            let sources = places.iter().map(|&place| (self.keys.len(), place)).collect();
            let values = self.widened(values, sources, false);
            streams.push(exchange(values, &groups, codec.clone()));
        }
        // Every group has distinct values, be it NULL: its rows are told only if they matter as such.
        let rows_matter = !self.of_rows.is_empty()
            || self.schema.fields().len() > self.keys.len() + self.of_values_places();
        if rows_matter {
            let columns: Vec<usize> = self
                .keys
                .iter()
                .copied()
                .chain(self.of_rows.iter().map(|&(from, _)| from))
                .collect();
            let schema = select(&self.input, &columns);
            let narrow = grouped.clone().columns(columns, schema);
            let sources = self
                .of_rows
                .iter()
                .enumerate()
                .map(|(number, &(_, place))| (self.keys.len() + number, place))
                .collect();
            streams.push(self.widened(narrow, sources, true));
        }
        Ok(grouped.scope().concatenate(streams))
    }

    fn of_values_places(&self) -> usize {
        self.of_values.iter().map(|(_, places)| places.len()).sum()
    }

    /// Rows that start with the keys as rows of the schema: `sources` are pairs of a column and its place;
    /// `as_rows`: whether they count as rows.
    fn widened<'scope>(
        &self,
        stream: DeltaStream<'scope, Epoch>,
        sources: Vec<(usize, usize)>,
        as_rows: bool,
    ) -> DeltaStream<'scope, Epoch> {
        let schema = self.schema.clone();
        let keys = self.keys.len();
        let marks: Vec<bool> = (0..schema.fields().len())
            .map(|place| {
                let given = self.of_rows.iter().any(|&(_, of_row)| of_row == place)
                    || self.of_values.iter().any(|(_, places)| places.contains(&place));
                as_rows && !given
            })
            .collect();
        stream.unary(Pipeline, "Told", move |_, _| {
            move |input, output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
                input.for_each(|capability, delta: &mut Delta<Epoch>| {
                    let count = delta.len();
                    let column = |place: usize| -> ArrayRef {
                        let source = sources.iter().find(|&&(_, to)| to == place);
                        match source {
                            _ if place < keys => delta.rows.column(place).clone(),
                            Some(&(from, _)) => delta.rows.column(from).clone(),
                            None if marks[place] => Arc::new(BooleanArray::from(vec![true; count])),
                            None => new_null_array(schema.field(place).data_type(), count),
                        }
                    };
                    let columns = (0..schema.fields().len()).map(column).collect();
                    let rows = assemble(schema.clone(), columns, count);
                    delta.rows = rows;
                    output.session_with_builder(&capability).give_container(delta);
                });
            }
        })
    }
}
