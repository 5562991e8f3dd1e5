//! Incremental plans as text.
//!
//! A node a line, its inputs indented below it; in brackets the properties of its rows and the state it keeps.

use std::fmt::{self, Write};

use super::names::Names;
use super::{IncrementalPlan, Node};

/// The plan, a node a line.
pub(crate) fn explain(plan: &IncrementalPlan) -> String {
    let mut text = String::new();
    write_node(plan, 0, &mut text).expect("a string takes any text");
    text
}

fn write_node(plan: &IncrementalPlan, depth: usize, text: &mut String) -> fmt::Result {
    write!(text, "{:indent$}", "", indent = 2 * depth)?;
    let node = plan.node.as_node();
    node.explain(&plan.schema, text)?;
    let (names, properties) = (Names(&plan.schema), &plan.properties);
    let unique = (!properties.unique.is_empty()).then(|| {
        let keys: Vec<String> = properties.unique.iter().map(|key| names.key(key)).collect();
        format!("unique: {}", keys.join(", "))
    });
    let append_only = properties.append_only && !matches!(plan.node, Node::Constant(_));
    let known: Vec<String> = unique
        .into_iter()
        .chain(append_only.then(|| "append-only".to_string()))
        .chain(node.state().map(|state| format!("keeps: {state}")))
        .collect();
    if !known.is_empty() {
        write!(text, " [{}]", known.join("; "))?;
    }
    text.push('\n');
    plan.inputs().into_iter().try_for_each(|input| write_node(input, depth + 1, text))
}
