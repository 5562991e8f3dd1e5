//! How a GROUP BY is computed.

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};

use super::columns::Columns;
use super::{Aggregate, Fallback, Function, fallback, linear};
use crate::codec::CodecError;
use crate::key_columns::KeyColumns;
use crate::ranked::{Lane, extremes};

/// A GROUP BY with its aggregates.
///
/// Each kind of aggregate computes a *lane*: the keys and some of the results. The lanes come in the order `linear`,
/// `fallback`, `ranked`.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The group of a row.
    pub(super) key: KeyColumns,
    /// What is accumulated.
    pub(super) linear: Option<linear::Spec>,
    /// What is recomputed.
    pub(super) fallback: Option<fallback::Spec>,
    /// For each MIN and MAX of rows that can be deleted: the keys and its input.
    pub(super) ranked: Vec<Columns>,
    /// How lanes are put side by side; `None` if there is only one, and that is not ranked.
    pub(super) lanes: Option<extremes::Spec>,
    /// The columns in the order of the output, if that is not the order of the lanes.
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
        let mut inputs = Vec::with_capacity(ranked.len());
        for at in ranked {
            let columns = ranked_columns(input, keys, &aggregates[at])?;
            let descending = aggregates[at].function == Function::Max;
            let order = vec![(width, SortOptions { descending, nulls_first: false })];
            lanes.push(Lane { schema: columns.schema().clone(), order });
            inputs.push(columns);
            results.push(at);
        }

        let in_lanes: Vec<usize> = (0..width).chain(results.iter().map(|&at| width + at)).collect();
        let is_one = lanes.len() == 1 && inputs.is_empty();
        let schema = Columns::new(output, in_lanes.clone()).schema().clone();
        Ok(Self {
            key,
            linear,
            fallback,
            ranked: inputs,
            lanes: (!is_one).then(|| extremes::Spec::compile(&lanes, width, schema)).transpose()?,
            in_order: (!in_lanes.is_sorted()).then(|| in_order(&in_lanes, output)),
        })
    }
}

/// The keys and the input of a MIN or MAX.
fn ranked_columns(
    input: &SchemaRef,
    keys: &[usize],
    aggregate: &Aggregate,
) -> Result<Columns, CodecError> {
    let column = aggregate.input.ok_or_else(|| CodecError::Aggregate {
        function: format!("{:?}", aggregate.function),
        input: DataType::Null,
        result: aggregate.result.clone(),
    })?;
    Ok(Columns::new(input, keys.iter().copied().chain([column]).collect()))
}

/// The columns of `output`, of which those of the lanes are the permutation `in_lanes`.
fn in_order(in_lanes: &[usize], output: &SchemaRef) -> Columns {
    let mut places = vec![0; in_lanes.len()];
    for (place, &column) in in_lanes.iter().enumerate() {
        places[column] = place;
    }
    Columns::named(places, output.clone())
}
