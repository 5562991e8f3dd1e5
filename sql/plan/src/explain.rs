//! The nodes of plans for people: what each does, the properties of its rows and the state that it keeps, with the id of the state and
//! the start of its fingerprint.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium_sql_syntax::error::Result;

use super::names::Names;
use super::node::IndexScan;
use super::{Fingerprint, IncrementalPlan, Node};
use crate::physical::{Compiled, Output, PhysicalPlan, compile};

/// A node of a plan, as EXPLAIN shows it.
#[derive(Clone, Debug)]
pub struct ExplainedNode {
    /// How many nodes are above it.
    pub depth: usize,
    /// What it does.
    pub operator: String,
    /// The properties of its rows, and the state that it keeps.
    pub known: Vec<String>,
    /// The fingerprint of its rows.
    pub rows: Fingerprint,
    /// Why a change costs it more than a change needs to, and what would help.
    pub burden: Option<&'static str>,
    /// The index that keeps its rows.
    pub index: Option<Fingerprint>,
}

/// The nodes of a plan, each before its inputs, over the indexes of whole relations that are `there`.
///
/// # Errors
/// If the plan cannot be compiled.
pub fn explained_nodes(
    plan: &IncrementalPlan,
    there: &dyn Fn(Fingerprint) -> bool,
) -> Result<Vec<ExplainedNode>> {
    let Compiled { plan: physical, indexes, shared } = compile(plan, Output::Changes, there)?;
    let indexes = indexes.into_iter().map(|index| (index.fingerprint, index.plan)).collect();
    let mut nodes = Vec::new();
    add_nodes(&shared, &physical, &indexes, (0, None), &mut nodes);
    Ok(nodes)
}

fn add_nodes(
    plan: &IncrementalPlan,
    physical: &PhysicalPlan,
    indexes: &HashMap<Fingerprint, Arc<PhysicalPlan>>,
    (depth, index): (usize, Option<Fingerprint>),
    nodes: &mut Vec<ExplainedNode>,
) {
    let node = plan.node.as_node();
    // The line of the node that reads an index says so. Here follows the plan of the index.
    if let Some(IndexScan { index, .. }) = node.index() {
        let fingerprint = index.fingerprint();
        if let Some(physical) = indexes.get(&fingerprint) {
            return add_nodes(&index.rows, physical, indexes, (depth, Some(fingerprint)), nodes);
        }
    }
    let mut operator = String::new();
    node.explain(&plan.schema, &mut operator).expect("a string takes any text");
    let (names, properties) = (Names(&plan.schema), &plan.properties);
    let unique = (!properties.unique.is_empty()).then(|| {
        let keys: Vec<String> = properties.unique.iter().map(|key| names.key(key)).collect();
        format!("unique: {}", keys.join(", "))
    });
    let append_only = properties.append_only && !matches!(plan.node, Node::Constant(_));
    let state = node.state(physical.places(plan.fingerprint()));
    let known = unique
        .into_iter()
        .chain(append_only.then(|| "append-only".to_string()))
        .chain(state.map(|state| format!("keeps: {state}")))
        .collect();
    let (rows, burden) = (plan.fingerprint(), node.burden());
    nodes.push(ExplainedNode { depth, operator, known, rows, burden, index });
    for input in plan.inputs() {
        add_nodes(input, physical, indexes, (depth + 1, None), nodes);
    }
}
