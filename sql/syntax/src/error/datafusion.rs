//! Errors of DataFusion's planner.

use alluvium_dataflow::map::whole_message;
use alluvium_dataflow::messages::wording::of_values;
use alluvium_sql_functions::FUNCTIONS;
use datafusion_common::{DataFusionError, SchemaError};

use super::names::{function_meant, no_column};
use super::{Error, Position, SqlState, calls, wording};

impl Error {
    /// An error of DataFusion's, with a message and a position that help the user.
    pub fn from_datafusion(error: &DataFusionError) -> Error {
        let position = error
            .diagnostic()
            .and_then(|diagnostic| diagnostic.span)
            .map(|span| Position { line: span.start.line, column: span.start.column });
        let root = error.find_root();
        if let DataFusionError::External(inner) = root
            && let Some(error) = inner.downcast_ref::<Error>()
        {
            return error.clone().at(position);
        }
        match root {
            DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
                SchemaError::FieldNotFound { field, valid_fields } => {
                    let place =
                        field.relation.as_ref().map(|relation| relation.to_string()).or_else(
                            || {
                                let mut relations =
                                    valid_fields.iter().map(|field| field.relation.as_ref());
                                let first = relations.next()??;
                                relations
                                    .all(|relation| relation == Some(first))
                                    .then(|| first.to_string())
                            },
                        );
                    let in_place = valid_fields
                        .iter()
                        .filter(|valid| {
                            field.relation.is_none() || valid.relation == field.relation
                        })
                        .map(|valid| valid.name.as_str());
                    let position = position.or_else(|| {
                        field.spans.first().map(|span| Position {
                            line: span.start.line,
                            column: span.start.column,
                        })
                    });
                    no_column(&field.name, place.as_deref(), in_place).at(position)
                }
                SchemaError::AmbiguousReference { field } => {
                    let position = position.or_else(|| {
                        field.spans.first().map(|span| Position {
                            line: span.start.line,
                            column: span.start.column,
                        })
                    });
                    Error::new(
                        format!(
                            "column \"{}\" is ambiguous; qualify it with its table's name",
                            field.name
                        ),
                        position,
                    )
                    .with_sqlstate(SqlState::AMBIGUOUS_COLUMN)
                }
                SchemaError::DuplicateQualifiedField { name, .. }
                | SchemaError::DuplicateUnqualifiedField { name } => Error::new(
                    format!("column \"{name}\" appears twice; rename one with AS"),
                    position,
                )
                .with_sqlstate(SqlState::DUPLICATE_COLUMN),
            },
            _ => {
                let message = worded(error);
                if let Some(name) = message.strip_prefix(NO_FUNCTION) {
                    return no_function(name).at(position);
                }
                let sqlstate = match root {
                    DataFusionError::NotImplemented(_) => SqlState::NOT_SUPPORTED,
                    // Constants are computed while a statement is planned.
                    DataFusionError::ArrowError(..) => SqlState::of_run(root),
                    _ => SqlState::WRONG,
                };
                Error::new(message, position).with_sqlstate(sqlstate)
            }
        }
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Error {
        Error::from_datafusion(&error)
    }
}

/// How DataFusion begins the message for a function that it does not know.
const NO_FUNCTION: &str = "Invalid function '";

fn no_function(rest: &str) -> Error {
    let name = rest.split_once('\'').map_or(rest, |(name, _)| name);
    if FUNCTIONS.window.contains_key(name) {
        let message = format!("{name}() is a window function: write {name}(…) OVER (ORDER BY …)");
        return Error::new(message, None);
    }
    Error::new(format!("no function \"{name}\"{}", function_meant(name)), None)
        .with_sqlstate(SqlState::NO_FUNCTION)
}

/// The message of an error of DataFusion's, in the terms of SQL.
pub fn worded(error: &DataFusionError) -> String {
    let root = error.find_root();
    // A diagnostic reads better, except for type errors, where the message says more.
    let message = match error.diagnostic() {
        Some(diagnostic) if !root.message().starts_with("Cannot ") => diagnostic.message.clone(),
        _ => whole_message(root),
    };
    let message = wording::without_kind(message.split("\n\nbacktrace:").next().unwrap_or_default());
    let told = calls::told(message).or_else(|| wording::told(message));
    of_values(told.as_deref().unwrap_or_else(|| message.trim_end_matches(['.', '\n'])))
}
