//! Aggregates of distinct values.
//!
//! Each input of which every value counts once is a stream of its own, of the distinct pairs of group and value. A FILTER is a
//! [mark](crate::reductions::distinct) of these pairs, so that one stream serves any number of filters. All streams
//! are put into one, with a column for each aggregate that is NULL in the rows of other streams, so that one state per group
//! accumulates all of them:
//!
//! ```text
//! keys | marks a row, for COUNT(*) | input of rows | input of distinct values | another
//!    k |                      true |             5 |                     NULL |    NULL
//!    k |                      NULL |          NULL |                        7 |    NULL
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{not, nullif};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{Aggregate, Function};
use crate::movement::delta::{DeltaStream, concatenated, each_delta};
use crate::reductions::distinct::{self, distinct};
use crate::rows::codec::CodecError;
use crate::rows::columns::Columns;
use crate::rows::layout::assemble;

/// The inputs of accumulated aggregates, some of them once per distinct value.
#[derive(Clone, Debug)]
pub(super) struct DistinctInputs {
    /// The keys, then a column for each of `aggregates`, in order.
    schema: SchemaRef,
    aggregates: Vec<Aggregate>,
    /// The inputs of aggregates over all rows; `None` if there are none.
    rows: Option<(Columns, Widening)>,
    /// The inputs of aggregates over distinct values.
    values: Vec<DistinctInput>,
}

/// An input of which each value counts once.
#[derive(Clone, Debug)]
struct DistinctInput {
    distinct: distinct::Spec,
    widening: Widening,
}

/// Where the columns of the common schema come from.
#[derive(Clone, Debug)]
enum Source {
    /// The value of a column, where the column of its mark is true if it has one, and NULL elsewhere.
    Value {
        column: usize,
        mark: Option<usize>,
    },
    /// True where that is not NULL, and NULL elsewhere: COUNT reads nothing else.
    Presence {
        column: usize,
        mark: Option<usize>,
    },
    /// True: the row counts for `COUNT(*)`.
    Mark,
    Null,
}

/// Turns rows that start with the keys into rows of the common schema.
#[derive(Clone, Debug)]
struct Widening {
    schema: SchemaRef,
    sources: Vec<Source>,
}

impl DistinctInputs {
    /// The inputs of the aggregates of a GROUP BY `keys` over rows of the schema `input`.
    pub(super) fn compile(
        input: &SchemaRef,
        keys: &[usize],
        aggregates: &[Aggregate],
    ) -> Result<Self, CodecError> {
        let width = keys.len();
        let mut fields: Vec<Field> = keys.iter().map(|&key| input.field(key).clone()).collect();
        let mut marks = Vec::new();
        // A column of the input and its place in the schema.
        let mut of_rows: Vec<(usize, usize)> = Vec::new();
        // A column of the input and the places of its aggregates.
        let mut of_values: Vec<(usize, Vec<usize>)> = Vec::new();
        for aggregate in aggregates {
            let place = fields.len();
            let Some(column) = aggregate.input else {
                fields.push(Field::new("row", DataType::Boolean, true));
                marks.push(place);
                continue;
            };
            let field = input.field(column).clone().with_nullable(true);
            fields.push(match aggregate.function {
                Function::Count => field.with_data_type(DataType::Boolean),
                _ => field,
            });
            if !aggregate.distinct {
                of_rows.push((column, place));
                continue;
            }
            match of_values.iter_mut().find(|(other, _)| *other == column) {
                Some((_, places)) => places.push(place),
                None => of_values.push((column, vec![place])),
            }
        }
        let schema: SchemaRef = Arc::new(Schema::new(fields));

        // Every group has distinct values, if only NULL: its rows are needed only by aggregates over rows.
        let needs_rows = !(of_rows.is_empty() && marks.is_empty());
        let rows = needs_rows.then(|| {
            let inputs = of_rows.iter().map(|&(column, _)| column);
            let columns = Columns::new(input, keys.iter().copied().chain(inputs).collect());
            let mut widening = Widening::new(&schema, width);
            for (number, &(_, place)) in of_rows.iter().enumerate() {
                let function = aggregates[place - width].function;
                widening.sources[place] = Source::input(function, width + number, None);
            }
            for &place in &marks {
                widening.sources[place] = Source::Mark;
            }
            (columns, widening)
        });
        let mut values = Vec::with_capacity(of_values.len());
        for (column, places) in of_values {
            let of = |place: &usize| &aggregates[place - width];
            let filters: BTreeSet<usize> =
                places.iter().filter_map(|place| of(place).filter).collect();
            let filters: Vec<usize> = filters.into_iter().collect();
            let used = keys.iter().copied().chain([column]).chain(filters.iter().copied());
            let columns = Columns::new(input, used.collect());
            let distinct = distinct::Spec::marked(columns, filters.len())?;
            let mut widening = Widening::new(&schema, width);
            for place in places {
                let Aggregate { function, filter, .. } = *of(&place);
                let mark = filter.and_then(|filter| filters.binary_search(&filter).ok());
                let mark = mark.map(|mark| width + 1 + mark);
                widening.sources[place] = Source::input(function, width, mark);
            }
            values.push(DistinctInput { distinct, widening });
        }
        let aggregates = aggregates.iter().enumerate().map(|(number, aggregate)| Aggregate {
            input: Some(width + number),
            ..aggregate.clone()
        });
        Ok(Self { schema, aggregates: aggregates.collect(), rows, values })
    }

    /// The columns of the common stream.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The aggregates, over the common stream.
    pub(super) fn aggregates(&self) -> &[Aggregate] {
        &self.aggregates
    }

    /// The common stream for the rows of `stream`, on any workers.
    pub(super) fn of<'scope>(
        &self,
        stream: &DeltaStream<'scope, Epoch>,
        context: &StateContext,
    ) -> DeltaStream<'scope, Epoch> {
        let mut streams = Vec::with_capacity(1 + self.values.len());
        for DistinctInput { distinct: spec, widening } in &self.values {
            // Partitioned by group and value: the values of a large group are on many workers.
            streams.push(widening.of(distinct(spec, stream.clone(), context)));
        }
        if let Some((columns, widening)) = &self.rows {
            streams.push(widening.of(columns.of(stream)));
        }
        concatenated(streams).expect("there are aggregates over distinct values")
    }
}

impl Source {
    /// The input of a function, which is in a column.
    fn input(function: Function, column: usize, mark: Option<usize>) -> Self {
        match function {
            Function::Count => Self::Presence { column, mark },
            _ => Self::Value { column, mark },
        }
    }
}

/// The values of a column, NULL where they do not have the mark.
fn marked(rows: &RecordBatch, column: usize, mark: Option<usize>) -> ArrayRef {
    let values = rows.column(column);
    let Some(mark) = mark else { return Arc::clone(values) };
    let without = not(rows.column(mark).as_boolean()).expect("a mark is not NULL");
    nullif(values, &without).expect("each row has a mark")
}

/// True where a value is not NULL, and NULL elsewhere.
fn presence(values: &ArrayRef) -> ArrayRef {
    let marks = BooleanBuffer::new_set(values.len());
    Arc::new(BooleanArray::new(marks, values.logical_nulls()))
}

impl Widening {
    /// Rows of `schema` with the first `keys` columns, and NULLs after them.
    fn new(schema: &SchemaRef, keys: usize) -> Self {
        let source = |column| match column < keys {
            true => Source::Value { column, mark: None },
            false => Source::Null,
        };
        Self { schema: schema.clone(), sources: (0..schema.fields().len()).map(source).collect() }
    }

    fn rows(&self, rows: &RecordBatch) -> RecordBatch {
        let count = rows.num_rows();
        let column = |(place, source): (usize, &Source)| -> ArrayRef {
            match source {
                Source::Value { column, mark } => marked(rows, *column, *mark),
                Source::Presence { column, mark } => presence(&marked(rows, *column, *mark)),
                Source::Mark => Arc::new(BooleanArray::from(vec![true; count])),
                Source::Null => new_null_array(self.schema.field(place).data_type(), count),
            }
        };
        let columns = self.sources.iter().enumerate().map(column).collect();
        assemble(self.schema.clone(), columns, count)
    }

    fn of<'scope>(&self, stream: DeltaStream<'scope, Epoch>) -> DeltaStream<'scope, Epoch> {
        let widening = self.clone();
        each_delta(stream, "DistinctInputs", move |delta| delta.rows = widening.rows(&delta.rows))
    }
}
