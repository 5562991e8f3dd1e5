//! Plans as JSON.

use super::explanation::Explanation;

pub(super) fn written(explanation: &Explanation) -> String {
    let json = serde_json::to_string_pretty(explanation);
    json.expect("its keys are texts, and a string takes any text") + "\n"
}
