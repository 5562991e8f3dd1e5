//! Views that cannot stand for their queries in a statement: only their dataflows know which rows they have.

use datafusion_common::{Result, plan_err};

/// Refuses to evaluate a view whose rows are final as a query: only its dataflow knows which are.
pub(crate) fn refuse_final<T>(view: &str) -> Result<T> {
    plan_err!(
        "only the final rows of \"{view}\" are emitted, so it can be queried if it keeps them: CREATE MATERIALIZED VIEW"
    )
}

/// Refuses to evaluate a view with lateness as a query: only its dataflow knows which rows came too late.
pub(crate) fn refuse_late<T>(view: &str) -> Result<T> {
    plan_err!(
        "rows of \"{view}\" that come too late are dropped, so it can be queried if it keeps the others: CREATE MATERIALIZED VIEW"
    )
}
