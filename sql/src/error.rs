//! Errors in SQL, with their positions.

use std::fmt;

use datafusion_common::utils::datafusion_strsim::levenshtein;
use datafusion_common::{DataFusionError, SchemaError};
use sqlparser::ast::Spanned;
use sqlparser::tokenizer::{Location, Span};

use crate::planner::function_names;

/// A position in the source text. Lines and columns are counted from one, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Position {
    /// The start of a span; `None` for a span without a source.
    pub(crate) fn of_span(span: Span) -> Option<Position> {
        Position::of_location(span.start)
    }

    /// The start of a node of the syntax tree.
    pub(crate) fn of(node: &impl Spanned) -> Option<Position> {
        Position::of_span(node.span())
    }

    pub(crate) fn of_location(location: Location) -> Option<Position> {
        (location.line > 0).then_some(Position { line: location.line, column: location.column })
    }
}

/// An error in SQL. It displays as its message only; the caller adds the file name and the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong and, where possible, how to fix it.
    pub message: String,
    /// The position in the source text.
    pub position: Option<Position>,
}

/// The result of reading or planning SQL.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// An error at a position, if one is known.
    pub fn new(message: impl Into<String>, position: impl Into<Option<Position>>) -> Error {
        Error { message: message.into(), position: position.into() }
    }

    /// The construct `name` is valid SQL that is not supported yet.
    pub(crate) fn not_supported(
        name: impl fmt::Display,
        position: impl Into<Option<Position>>,
    ) -> Error {
        Error::new(format!("{name} is not supported yet"), position)
    }

    /// The same error, at `position` unless it already has one.
    pub(crate) fn at(mut self, position: Option<Position>) -> Error {
        self.position = self.position.or(position);
        self
    }

    /// Converts an error of DataFusion, with the most helpful message and position.
    ///
    pub(crate) fn from_datafusion(error: &DataFusionError) -> Error {
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
                }
                SchemaError::DuplicateQualifiedField { name, .. }
                | SchemaError::DuplicateUnqualifiedField { name } => Error::new(
                    format!("column \"{name}\" appears twice; rename one with AS"),
                    position,
                ),
            },
            root => {
                // A diagnostic has a better message, except for type mismatches.
                let message = match error.diagnostic() {
                    Some(diagnostic) if !root.message().starts_with("Cannot ") => {
                        diagnostic.message.clone()
                    }
                    _ => root.message().into_owned(),
                };
                let message = message.split("\n\nbacktrace:").next().unwrap_or_default();
                if let Some(rest) = message.strip_prefix("Invalid function '")
                    && let Some((name, _)) = rest.split_once('\'')
                {
                    let near = did_you_mean(name, function_names());
                    return Error::new(format!("no function \"{name}\"{near}"), position);
                }
                Error::new(message.trim_end_matches(['.', '\n']), position)
            }
        }
    }
}

/// The error for an unknown column `name` in `place`.
pub(crate) fn no_column<'a>(
    name: &str,
    place: Option<&str>,
    candidates: impl Iterator<Item = &'a str>,
) -> Error {
    let place = place.map(|place| format!(" in \"{place}\"")).unwrap_or_default();
    Error::new(format!("no column \"{name}\"{place}{}", did_you_mean(name, candidates)), None)
}

/// `; did you mean "…"?` with the candidate most similar to `name`, or empty if none is similar.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    let near = 1 + name.chars().count() / 3;
    candidates
        .filter_map(|candidate| {
            let distance = levenshtein(&name.to_lowercase(), &candidate.to_lowercase());
            let rank = if is_start(name, candidate) { distance.min(1) } else { distance };
            (rank <= near).then_some((rank, distance, candidate))
        })
        .min()
        .map(|(_, _, candidate)| format!("; did you mean \"{candidate}\"?"))
        .unwrap_or_default()
}

/// Whether one name is a prefix of the other, as `dep` is of `dep_time`; such names count as similar.
fn is_start(name: &str, candidate: &str) -> bool {
    let (name, candidate) = (name.to_lowercase(), candidate.to_lowercase());
    name.len().min(candidate.len()) >= 3
        && (candidate.starts_with(&name) || name.starts_with(&candidate))
}
