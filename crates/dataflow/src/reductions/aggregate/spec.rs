//! How a GROUP BY is computed.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema, SchemaRef};

use super::{Aggregate, Fallback, fallback, linear};
use crate::reductions::ranked::{End, Lane, extremes};
use crate::rows::codec::{CodecError, has_floats};
use crate::rows::columns::Columns;
use crate::rows::key_columns::KeyColumns;

/// A GROUP BY with its aggregates.
///
/// Each kind of aggregate computes a *lane*: the keys and some of the results. The lanes come in the order `linear`,
/// `fallback`, `ranked`. Two aggregates that read the two ends of one order share a lane.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The group of a row.
    pub(super) key: KeyColumns,
    /// The accumulated part.
    pub(super) linear: Option<linear::Spec>,
    /// The recomputed part.
    pub(super) fallback: Option<fallback::Spec>,
    /// For each lane whose first or last row in an order is read: the keys, the input, and the rank if there is one.
    pub(super) ranked: Vec<Columns>,
    /// How lanes are put side by side; `None` if there is only one, and that is not ranked.
    pub(super) lanes: Option<extremes::Spec>,
    /// The columns of the output, if these are not those of the lanes.
    pub(super) in_order: Option<Columns>,
}

impl Spec {
    /// Groups rows of the schema `input` by the columns `keys`.
    ///
    /// `append_only`: rows are never deleted. `output` names the keys, the aggregates, and the results of `fallbacks`; the
    /// same names stand in errors.
    ///
    /// Fails if a key column cannot be a key, an input cannot be stored, or an aggregate cannot be computed over its input.
    pub fn compile(
        input: &SchemaRef,
        keys: &[usize],
        aggregates: &[Aggregate],
        fallbacks: &[Fallback],
        append_only: bool,
        output: &SchemaRef,
    ) -> Result<Self, CodecError> {
        let key = KeyColumns::new(input, keys)?;
        let width = keys.len();
        let chosen = |accumulated: bool| -> Vec<usize> {
            let chosen = |at: &usize| aggregates[*at].is_accumulated(append_only) == accumulated;
            (0..aggregates.len()).filter(chosen).collect()
        };
        let (accumulated, ranked) = (chosen(true), chosen(false));
        // The keys, then the results numbered `results`.
        let lane_of = |results: &[usize]| {
            let columns = (0..width).chain(results.iter().map(|&at| width + at));
            Columns::new(output, columns.collect()).schema().clone()
        };
        let mut lanes: Vec<Lane> = Vec::new();
        let mut results: Vec<usize> = Vec::new();

        let mut linear = None;
        // A GROUP BY without aggregates still needs to know which groups have rows.
        if !accumulated.is_empty() || (ranked.is_empty() && fallbacks.is_empty()) {
            let chosen: Vec<Aggregate> =
                accumulated.iter().map(|&at| aggregates[at].clone()).collect();
            let schema = lane_of(&accumulated);
            linear = Some(linear::Spec::compile(input, keys, &chosen, schema.clone())?);
            lanes.push(Lane { schema, order: Vec::new() });
            results.extend(&accumulated);
        }
        let mut fallback = None;
        if !fallbacks.is_empty() {
            let places: Vec<usize> =
                (aggregates.len()..aggregates.len() + fallbacks.len()).collect();
            let schema = lane_of(&places);
            fallback = Some(fallback::Spec::compile(input, keys, fallbacks, schema.clone())?);
            lanes.push(Lane { schema, order: Vec::new() });
            results.extend(&places);
        }
        let first = |lane: usize| (lane, End::First);
        let mut ends: Vec<(usize, End)> = (0..lanes.len()).map(first).collect();
        let mut inputs: Vec<Columns> = Vec::with_capacity(ranked.len());
        let mut in_lanes: Vec<InLanes> = (0..width).map(InLanes::Output).collect();
        in_lanes.extend(results.iter().map(|&at| InLanes::Output(width + at)));
        let before = lanes.len();
        for &at in &ranked {
            let aggregate = &aggregates[at];
            in_lanes.push(InLanes::Output(width + at));
            in_lanes.extend(aggregate.rank.map(InLanes::Rank));
            let end = match ranked.iter().any(|&it| is_last(aggregate, &aggregates[it], input)) {
                true => End::Last,
                false => End::First,
            };
            let (columns, lane) = ranked_lane(input, keys, aggregate, end)?;
            let known = inputs.iter().zip(&lanes[before..]);
            let place = known.take_while(|known| *known != (&columns, &lane)).count();
            if place == inputs.len() {
                inputs.push(columns);
                lanes.push(lane);
            }
            ends.push((before + place, end));
        }
        let is_one = lanes.len() == 1 && inputs.is_empty();
        let schema = lanes_schema(&in_lanes, input, output);
        Ok(Self {
            key,
            linear,
            fallback,
            ranked: inputs,
            lanes: (!is_one)
                .then(|| extremes::Spec::compile(&lanes, &ends, width, schema))
                .transpose()?,
            in_order: in_order(&in_lanes, output),
        })
    }
}

/// Whether an aggregate reads the last row in the order in which the other reads the first. Not of floats: there are several
/// rows of one place in an order, 0.0 and -0.0, and both read the first of these.
fn is_last(aggregate: &Aggregate, other: &Aggregate, input: &SchemaRef) -> bool {
    let has_floats = |column: usize| has_floats(input.field(column).data_type());
    aggregate.function.is_descending()
        && !other.function.is_descending()
        && (aggregate.input, aggregate.rank) == (other.input, other.rank)
        && !aggregate.columns().any(has_floats)
}

/// The keys, the input and the rank of an aggregate that reads this end of an order, and the order.
fn ranked_lane(
    input: &SchemaRef,
    keys: &[usize],
    aggregate: &Aggregate,
    end: End,
) -> Result<(Columns, Lane), CodecError> {
    let column = aggregate.input.ok_or_else(|| CodecError::Aggregate {
        function: format!("{:?}", aggregate.function),
        input: DataType::Null,
        result: aggregate.result.clone(),
    })?;
    let inputs = [Some(column), aggregate.rank].into_iter().flatten();
    let columns = Columns::new(input, keys.iter().copied().chain(inputs).collect());
    let width = keys.len();
    let descending = aggregate.function.is_descending() && end == End::First;
    let options = SortOptions { descending, nulls_first: false };
    let rank = aggregate.rank.map(|_| (width + 1, options));
    let order = rank.into_iter().chain([(width, options)]).collect();
    let lane = Lane { schema: columns.schema().clone(), order };
    Ok((columns, lane))
}

/// A column of the lanes, side by side.
#[derive(Clone, Copy, PartialEq)]
enum InLanes {
    /// A column of the output.
    Output(usize),
    /// The rank of an aggregate, which is a column of the input.
    Rank(usize),
}

/// The fields of the lanes' columns.
fn lanes_schema(columns: &[InLanes], input: &SchemaRef, output: &SchemaRef) -> SchemaRef {
    let field = |column: &InLanes| match *column {
        InLanes::Output(column) => output.field(column).clone(),
        InLanes::Rank(column) => input.field(column).clone(),
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The columns of `output` among those of all lanes; `None` if they are the same.
fn in_order(columns: &[InLanes], output: &SchemaRef) -> Option<Columns> {
    if columns.iter().enumerate().all(|(place, column)| *column == InLanes::Output(place)) {
        return None;
    }
    let mut places = vec![0; output.fields().len()];
    for (place, column) in columns.iter().enumerate() {
        if let InLanes::Output(column) = *column {
            places[column] = place;
        }
    }
    Some(Columns::named(places, output.clone()))
}
