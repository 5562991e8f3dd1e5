//! Plans as JSON.

use serde::Serialize;

use super::explanation::Explanation;
use super::layout::place;

/// A plan, with what programs need to draw it.
#[derive(Serialize)]
struct Drawn<'a> {
    #[serde(flatten)]
    explanation: &'a Explanation,
    /// Where each operator stands if all are squares without gaps: its left and its top edge.
    places: Vec<(f64, f64)>,
}

pub(super) fn written(explanation: &Explanation) -> String {
    let inputs: Vec<&[usize]> = explanation.nodes.iter().map(|node| &*node.inputs).collect();
    let placed = place(&vec![(1.0, 1.0); inputs.len()], (0.0, 0.0), &inputs, (0.0, 0.0));
    let places = placed.iter().map(|placed| (placed.left, placed.top)).collect();
    let json = serde_json::to_string_pretty(&Drawn { explanation, places });
    json.expect("its keys are texts, and a string takes any text") + "\n"
}
