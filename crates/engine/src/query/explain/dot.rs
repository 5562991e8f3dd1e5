//! Plans as graphs in the language of Graphviz: arrows are the way of rows.

use std::fmt::{self, Write};

use super::explanation::{Explanation, Node};
use super::lines::{Lines, heading};

pub(super) fn written(explanation: &Explanation) -> String {
    let mut text = String::new();
    write(explanation, &mut text).expect("a string takes any text");
    text
}

fn write(explanation: &Explanation, text: &mut String) -> fmt::Result {
    writeln!(text, "digraph plan {{")?;
    writeln!(text, "  rankdir=BT; labelloc=t; labeljust=l; fontname=monospace;")?;
    writeln!(text, "  node [shape=box, fontname=monospace, fontsize=10];")?;
    let heading = heading(explanation);
    if !heading.is_empty() {
        writeln!(text, "  label={};", label(heading.iter()))?;
    }
    for node in &explanation.nodes {
        let heat = heat(node);
        writeln!(text, "  n{} [label={}{heat}];", node.id, label(Lines::of(node).iter()))?;
    }
    for node in &explanation.nodes {
        for input in &node.inputs {
            writeln!(text, "  n{input} -> n{};", node.id)?;
        }
    }
    writeln!(text, "}}")
}

/// The colour of an operator that was measured, redder the more time it takes.
fn heat(node: &Node) -> String {
    match &node.figures {
        Some(figures) => {
            let saturation = 0.6 * figures.busy_percent as f64 / 100.0;
            format!(", style=filled, fillcolor=\"0.06 {saturation:.2} 1.0\"")
        }
        None => String::new(),
    }
}

/// Lines in quotes, each aligned to the left.
fn label<'a>(lines: impl Iterator<Item = &'a String>) -> String {
    let lines = lines.map(|line| line.replace('\\', "\\\\").replace('"', "\\\"") + "\\l");
    format!("\"{}\"", lines.collect::<String>())
}
