//! Operators that sort whole rows, and are pruned by any of their columns: this one is put in front of the others.

use alluvium_dataflow::rows::layout::{Layout, project};
use arrow::datatypes::SchemaRef;

use super::RowMap;
use crate::fingerprint::Canonical;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId};
use crate::prune::place;
use crate::{IncrementalPlan, Retention};

/// Compiles `plan`, an operator of the kind `kind` whose inputs have its columns. `build` makes it of inputs with columns in
/// another order, and says how it sorts them.
pub(super) fn compile<const N: usize, O: Operator + 'static>(
    kind: &'static str,
    plan: &IncrementalPlan,
    inputs: [OperatorId; N],
    retention: &Retention,
    compiler: &mut Compiler,
    build: impl FnOnce([OperatorId; N], SchemaRef) -> CompileResult<(O, Layout)>,
) -> CompileResult<OperatorId> {
    let order = retention.sorted_first(plan.width());
    let (inputs, sorted, retention) = match &order {
        None => (inputs, plan.schema.clone(), retention.clone()),
        Some(order) => (
            inputs.map(|input| compiler.add(RowMap::columns(input, &plan.schema, order))),
            project(&plan.schema, order),
            retention.clone().behind(order[0]),
        ),
    };
    let (operator, layout) = build(inputs, sorted.clone())?;
    let id = compiler.next_id(kind);
    let rows = compiler.add_stateful(plan, operator, Vec::new(), Some(id));
    compiler.prune(&retention, &layout);
    let Some(order) = order else { return Ok(rows) };
    let places: Vec<usize> = (0..plan.width()).map(|column| place(&order, column)).collect();
    Ok(compiler.add(RowMap::columns(rows, &sorted, &places)))
}

/// Adds the order of the columns, of which there are `width`, to a canonical encoding.
pub(super) fn encode(retention: &Retention, width: usize, canonical: &mut Canonical) {
    retention.encode(canonical);
    if let Some(order) = retention.sorted_first(width) {
        canonical.columns(&order);
    }
}
