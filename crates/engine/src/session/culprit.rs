//! Errors that do not say where in their statement they are.

use std::sync::Arc;

use alluvium_sql::physical::{Output, compile};
use alluvium_sql::plan::PlannedView;
use alluvium_sql::statement::{Statement, StatementKind, ViewDefinition};
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;

use super::paths::Paths;
use crate::authorizer::Rights;
use crate::catalog::Entries;
use crate::error::Error;
use crate::instance::Instance;
use crate::query::{FileScope, Files, Reading};
use crate::transaction::Transaction;
use crate::worker::Durable;

/// The error of a statement, at the expression that it is about if that can be known before the statement runs.
pub(super) fn located(
    instance: &Instance,
    (paths, entries): (Paths<'_>, Arc<Entries>),
    (transaction, rights): (Option<&Transaction>, Option<&Rights>),
    (statement, parameters): (&Statement, &[ScalarValue]),
    error: Error,
) -> Error {
    if !has_no_place(&error) {
        return error;
    }
    let files = match &statement.kind {
        StatementKind::Query(query) | StatementKind::ExplainSelect { query, .. } => {
            paths.files(instance, &entries, query)
        }
        StatementKind::Insert(insert) => paths.files(instance, &entries, insert),
        StatementKind::Update(update) => paths.files(instance, &entries, update),
        StatementKind::Delete(delete) => paths.files(instance, &entries, delete),
        _ => Ok(Files::new()),
    };
    let Ok(files) = files else { return error };
    // Which rows there are does not matter.
    let (entries, files, durable, counts) = (&entries, &files, Durable::No, false);
    let (at_least, taker, waited) = (0, None, None);
    let reading =
        Reading { entries, files, at_least, transaction, durable, counts, rights, taker, waited };
    let check = |plan| instance.reader.failure(plan, parameters, reading);
    located_by(instance, error, statement, FileScope { entries, files }, &check)
}

/// As [`located`], over these relations, where `check` says why a plan fails.
pub(super) fn located_by(
    instance: &Instance,
    error: Error,
    statement: &Statement,
    scope: FileScope<'_>,
    check: &dyn Fn(LogicalPlan) -> Option<String>,
) -> Error {
    if !has_no_place(&error) {
        return error;
    }
    let planner = &instance.definitions.planner;
    let build = |view: &ViewDefinition, planned| {
        let planned = PlannedView::built(view, planned, &[])?;
        compile(&planned.plan, Output::Rows, &|_| false).map(drop)
    };
    match planner.culprit(&statement.kind, &scope, &error.to_string(), check, &build) {
        Some(culprit) => error.at(culprit),
        None => error,
    }
}

/// Whether an error could have a place in a statement, and has none.
fn has_no_place(error: &Error) -> bool {
    matches!(error, Error::Sql { position: None, .. } | Error::Data { position: None, .. })
}
