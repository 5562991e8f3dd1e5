//! Plans as text.
//!
//! A node a line, its inputs indented below it; in brackets the properties of its rows and the state it keeps, with the
//! id of the state and the start of its fingerprint.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_sql_syntax::error::Result;

use super::names::Names;
use super::node::IndexScan;
use super::{Fingerprint, IncrementalPlan, Node};
use crate::physical::{Compiled, Output, PhysicalPlan, compile};

/// The plan, a node a line, over the indexes of whole relations that are `there`.
///
/// # Errors
/// If the plan cannot be compiled.
pub fn explain(plan: &IncrementalPlan, there: &dyn Fn(Fingerprint) -> bool) -> Result<String> {
    let Compiled { plan: physical, indexes, shared } = compile(plan, Output::Changes, there)?;
    let indexes = indexes.into_iter().map(|index| (index.fingerprint, index.plan)).collect();
    let mut text = String::new();
    write_node(&shared, &physical, &indexes, 0, &mut text).expect("a string takes any text");
    Ok(text)
}

fn write_node(
    plan: &IncrementalPlan,
    physical: &PhysicalPlan,
    indexes: &HashMap<Fingerprint, Arc<PhysicalPlan>>,
    depth: usize,
    text: &mut String,
) -> fmt::Result {
    let node = plan.node.as_node();
    // The line of the node that reads an index says so. Here follows the plan of the index.
    if let Some(IndexScan { index, .. }) = node.index()
        && let Some(physical) = indexes.get(&index.fingerprint())
    {
        return write_node(&index.rows, physical, indexes, depth, text);
    }
    write!(text, "{:indent$}", "", indent = 2 * depth)?;
    node.explain(&plan.schema, text)?;
    let (names, properties) = (Names(&plan.schema), &plan.properties);
    let unique = (!properties.unique.is_empty()).then(|| {
        let keys: Vec<String> = properties.unique.iter().map(|key| names.key(key)).collect();
        format!("unique: {}", keys.join(", "))
    });
    let append_only = properties.append_only && !matches!(plan.node, Node::Constant(_));
    let state = node.state(physical.places(plan.fingerprint()));
    let known: Vec<String> = unique
        .into_iter()
        .chain(append_only.then(|| "append-only".to_string()))
        .chain(state.map(|state| format!("keeps: {state}")))
        .collect();
    if !known.is_empty() {
        write!(text, " [{}]", known.join("; "))?;
    }
    text.push('\n');
    let mut inputs = plan.inputs().into_iter();
    inputs.try_for_each(|input| write_node(input, physical, indexes, depth + 1, text))
}
