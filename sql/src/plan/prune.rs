//! Dropping columns that nobody needs, so that no state keeps them.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_dataflow::aggregate::Aggregate;
use alluvium_dataflow::ranked::{Numbering, Top};
use datafusion_common::Result;

use super::expression::{self, Expression};
use super::order::ties;
use super::outer_join::{Parts, prune_match_join};
use super::{IncrementalPlan, Node};

/// The plan reduced to the columns `required`, in this order; `required` has at least one column.
pub(crate) fn prune(plan: IncrementalPlan, required: &[usize]) -> Result<IncrementalPlan> {
    let IncrementalPlan { node, schema, unique, append_only } = plan;
    match node {
        Node::Scan { relation, columns } => {
            let key = unique
                .first()
                .map(|key| key.iter().map(|&column| columns[column]).collect::<Vec<_>>());
            let kept: Vec<usize> = required.iter().map(|&column| columns[column]).collect();
            let scan = IncrementalPlan {
                schema: Arc::new(schema.project(required)?),
                unique: key
                    .and_then(|key| {
                        key.iter().map(|key| kept.iter().position(|column| column == key)).collect()
                    })
                    .into_iter()
                    .collect(),
                node: Node::Scan { relation, columns: kept },
                append_only,
            };
            Ok(scan)
        }
        Node::Stream { relation, columns } => Ok(IncrementalPlan {
            schema: Arc::new(schema.project(required)?),
            node: Node::Stream {
                relation,
                columns: required.iter().map(|&column| columns[column]).collect(),
            },
            unique,
            append_only,
        }),
        // Indexes take the place of sub-plans that have been pruned.
        node @ Node::Index { .. } => IncrementalPlan::columns(
            IncrementalPlan { node, schema, unique, append_only },
            required,
        ),
        Node::Constant { rows } => Ok(IncrementalPlan::constant(rows.project(required)?)),
        Node::Map { input, filter, project } => {
            let project: Vec<(Expression, String)> = required
                .iter()
                .map(|&column| (Arc::clone(&project[column]), schema.field(column).name().clone()))
                .collect();
            let passed: Option<Vec<usize>> =
                project.iter().map(|(expression, _)| expression::as_column(expression)).collect();
            if let (None, Some(passed)) = (&filter, passed)
                && passed.iter().collect::<BTreeSet<_>>().len() == passed.len()
            {
                let input = prune(*input, &passed)?;
                let named = input
                    .identity()
                    .into_iter()
                    .zip(project)
                    .map(|((column, _), (_, name))| (column, name));
                let named = named.collect();
                return IncrementalPlan::map(input, None, named);
            }
            let mut used = BTreeSet::new();
            for expression in filter.iter().chain(project.iter().map(|(expression, _)| expression))
            {
                expression::for_each_column(expression, &mut |column| {
                    used.insert(column);
                });
            }
            let (input, used) = prune_to(*input, used)?;
            let renumber = |expression| {
                expression::replace_columns(expression, |column| {
                    expression::column(&input.schema, place(&used, column))
                })
            };
            let filter = filter.map(renumber).transpose()?;
            let project: Result<Vec<_>> = project
                .into_iter()
                .map(|(expression, name)| Ok((renumber(expression)?, name)))
                .collect();
            IncrementalPlan::map(input, filter, project?)
        }
        Node::Join { left, right, on } => {
            let width = left.schema.fields().len();
            let (from_left, from_right): (Vec<usize>, Vec<usize>) =
                required.iter().partition(|&&column| column < width);
            let keys_left = on.iter().map(|&(l, _)| l);
            let keys_right = on.iter().map(|&(_, r)| r);
            let (left, used_left) =
                prune_to(*left, from_left.into_iter().chain(keys_left).collect())?;
            let (right, used_right) = prune_to(
                *right,
                from_right.into_iter().map(|column| column - width).chain(keys_right).collect(),
            )?;
            let on =
                on.iter().map(|&(l, r)| (place(&used_left, l), place(&used_right, r))).collect();
            let joined = IncrementalPlan::join(left, right, on)?;
            let columns: Vec<usize> = required
                .iter()
                .map(|&column| match column < width {
                    true => place(&used_left, column),
                    false => used_left.len() + place(&used_right, column - width),
                })
                .collect();
            IncrementalPlan::columns(joined, &columns)
        }
        Node::Unnest { input, lists } => {
            let (input, used) = prune_to(*input, lists.iter().chain(required).copied().collect())?;
            let lists = lists.iter().map(|&list| place(&used, list)).collect();
            let columns: Vec<usize> = required.iter().map(|&column| place(&used, column)).collect();
            IncrementalPlan::columns(IncrementalPlan::unnest(input, lists)?, &columns)
        }
        Node::OuterJoin { left, right, on, kind, residual } => {
            let parts = Parts { left: *left, right: *right, on, kind, residual };
            prune_match_join(parts, required)
        }
        Node::Aggregate { input, keys, aggregates, fallbacks } => {
            let width = keys.len();
            let mut needed: Vec<usize> = (0..aggregates.len() + fallbacks.len())
                .filter(|number| required.contains(&(width + number)))
                .collect();
            if needed.is_empty() && keys.is_empty() {
                needed.push(0);
            }
            let (own, others): (Vec<usize>, Vec<usize>) =
                needed.iter().partition(|&&number| number < aggregates.len());
            let mut used: BTreeSet<usize> = keys.iter().copied().collect();
            used.extend(own.iter().filter_map(|&number| aggregates[number].input));
            for &number in &others {
                used.extend(fallbacks[number - aggregates.len()].columns());
            }
            let (input, used) = prune_to(*input, used)?;
            let name = |number: usize| schema.field(width + number).name().clone();
            let own = own.iter().map(|&number| {
                let aggregate = &aggregates[number];
                let input = aggregate.input.map(|column| place(&used, column));
                (Aggregate { input, ..aggregate.clone() }, name(number))
            });
            let others = others.iter().map(|&number| {
                let function = &fallbacks[number - aggregates.len()];
                (function.renumbered(|column| place(&used, column)), name(number))
            });
            let columns: Vec<usize> = required
                .iter()
                .map(|&column| match column < width {
                    true => column,
                    false => width + place(&needed, column - width),
                })
                .collect();
            let keys = keys.iter().map(|&key| place(&used, key)).collect();
            let (own, others) = (own.collect(), others.collect());
            let aggregated = IncrementalPlan::aggregate(input, keys, own, others)?;
            IncrementalPlan::columns(aggregated, &columns)
        }
        Node::Distinct { input } => {
            let all: Vec<usize> = (0..schema.fields().len()).collect();
            let distinct = IncrementalPlan::distinct(prune(*input, &all)?);
            IncrementalPlan::columns(distinct, required)
        }
        Node::SetOperation { left, right, operation } => {
            let all: Vec<usize> = (0..schema.fields().len()).collect();
            let (left, right) = (prune(*left, &all)?, prune(*right, &all)?);
            let joined = IncrementalPlan::set_operation(left, right, operation, &schema)?;
            IncrementalPlan::columns(joined, required)
        }
        Node::Top { input, keys, order, which } => {
            let width = input.schema.fields().len();
            let numbered = which.numbered && required.contains(&width);
            let mut used: BTreeSet<usize> =
                required.iter().copied().filter(|&column| column < width).collect();
            used.extend(keys.iter().copied().chain(order.iter().map(|&(column, _)| column)));
            if which.numbering == Numbering::Row && ties(&input, &keys, &order).is_none() {
                // Which of equals comes first must not depend on what is kept of them.
                used.extend(0..width);
            }
            let (input, used) = prune_to(*input, used)?;
            let keys = keys.iter().map(|&key| place(&used, key)).collect();
            let order =
                order.iter().map(|&(column, options)| (place(&used, column), options)).collect();
            let top = IncrementalPlan::top(input, keys, order, Top { numbered, ..which })?;
            let columns: Vec<usize> = required
                .iter()
                .map(|&column| if column < width { place(&used, column) } else { used.len() })
                .collect();
            IncrementalPlan::columns(top, &columns)
        }
        Node::Window { input, keys, order, ties: told_apart, functions } => {
            let width = input.schema.fields().len();
            let kept: Vec<usize> = (0..functions.len())
                .filter(|number| required.contains(&(width + number)))
                .collect();
            if kept.is_empty() {
                return prune(*input, required);
            }
            let mut used: BTreeSet<usize> =
                required.iter().copied().filter(|&column| column < width).collect();
            used.extend(keys.iter().copied().chain(order.iter().map(|&(column, _)| column)));
            match &told_apart {
                // Rows that are equal in the order need not be told apart.
                _ if kept.iter().all(|&number| functions[number].is_same_for_peers()) => {}
                Some(ties) => used.extend(ties),
                // Which of equals comes first must not depend on what is kept of them.
                None => used.extend(0..width),
            }
            for &number in &kept {
                used.extend(functions[number].columns());
            }
            let (input, used) = prune_to(*input, used)?;
            let renumber = |column: usize| place(&used, column);
            let keys = keys.into_iter().map(renumber).collect();
            let order =
                order.into_iter().map(|(column, options)| (renumber(column), options)).collect();
            let has = |ties: &Vec<usize>| ties.iter().all(|column| used.contains(column));
            let ties = told_apart.filter(has);
            let ties = ties.map(|ties| ties.into_iter().map(renumber).collect());
            let functions =
                kept.iter().map(|&number| functions[number].renumbered(renumber)).collect();
            let window = IncrementalPlan::window(input, keys, order, ties, functions);
            let columns: Vec<usize> = required
                .iter()
                .map(|&column| match column < width {
                    true => place(&used, column),
                    false => used.len() + place(&kept, column - width),
                })
                .collect();
            IncrementalPlan::columns(window, &columns)
        }
        Node::Union { inputs } => {
            let schema = schema.project(required)?;
            let inputs: Result<Vec<_>> =
                inputs.into_iter().map(|input| prune(input, required)).collect();
            IncrementalPlan::union(inputs?, &schema)
        }
        Node::View { name, input } => Ok(IncrementalPlan::view(name, prune(*input, required)?)),
    }
}

/// Prunes to the used columns in their order, and to one column where none is used: a batch needs
/// one. Also gives the columns that are left.
pub(super) fn prune_to(
    plan: IncrementalPlan,
    mut used: BTreeSet<usize>,
) -> Result<(IncrementalPlan, Vec<usize>)> {
    if used.is_empty() {
        let widths = plan
            .schema
            .fields()
            .iter()
            .map(|field| field.data_type().primitive_width().unwrap_or(usize::MAX));
        used.extend(widths.enumerate().min_by_key(|(_, width)| *width).map(|(column, _)| column));
    }
    let used: Vec<usize> = used.into_iter().collect();
    Ok((prune(plan, &used)?, used))
}

/// Where a column went.
pub(super) fn place(used: &[usize], column: usize) -> usize {
    used.iter().position(|used| *used == column).expect("a column that is used is kept")
}
