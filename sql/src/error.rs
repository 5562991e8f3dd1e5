//! Errors in the user's SQL, with positions.

use std::fmt;

use alluvium_dataflow::shorten::abridge;
use alluvium_dataflow::without_notice;
use datafusion_common::utils::datafusion_strsim::levenshtein;
use datafusion_common::{DataFusionError, SchemaError};
use sqlparser::ast::Spanned;
use sqlparser::tokenizer::{Location, Span};

use crate::planner::functions::function_names;

/// A position in the text. Both numbers start at one; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Position {
    /// The start of a span; `None` for a span that does not come from the text.
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

/// An error in the user's SQL. It displays as its message only: a caller that knows the file's name adds file and
/// position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong and, where possible, what to do about it.
    pub message: String,
    /// Where, in the text.
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
        Error { message: abridge(without_notice(message.into())), position: position.into() }
    }

    /// The error for valid SQL that is not supported yet.
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

    /// An error of DataFusion's, with a message and a position that help the user.
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
                // A diagnostic reads better, except for type errors, where the message says more.
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
                    let near = function_meant(name);
                    return Error::new(format!("no function \"{name}\"{near}"), position);
                }
                let otherwise = || message.trim_end_matches(['.', '\n']).to_owned();
                Error::new(told(message).unwrap_or_else(otherwise), position)
            }
        }
    }
}

/// What a message of DataFusion's means to someone who knows SQL; `None` if it says that itself.
fn told(message: &str) -> Option<String> {
    if message.starts_with("Projections require unique expression names") {
        let name = message.split('"').nth(1)?;
        let name = name.rsplit('.').next().unwrap_or(name);
        return Some(format!("column \"{name}\" appears twice; rename one with AS"));
    }
    if let Some(rest) = message.strip_prefix("Inconsistent data length across values list: got ") {
        let mut numbers = rest.split(|letter: char| !letter.is_ascii_digit());
        let mut number = || numbers.by_ref().find(|digits| !digits.is_empty())?.parse::<u64>().ok();
        let (given, row, wanted) = (number()?, number()?, number()?);
        let s = if given == 1 { "" } else { "s" };
        let row = row + 1;
        return Some(format!(
            "row {row} of VALUES has {given} value{s}, and the first has {wanted}"
        ));
    }
    None
}

/// The error for a column that does not exist in `place`.
pub(crate) fn no_column<'a>(
    name: &str,
    place: Option<&str>,
    candidates: impl Iterator<Item = &'a str>,
) -> Error {
    let place = place.map(|place| format!(" in \"{place}\"")).unwrap_or_default();
    Error::new(format!("no column \"{name}\"{place}{}", did_you_mean(name, candidates)), None)
}

/// `; did you mean "…"?` with the candidate nearest to `name`, or nothing if none is near.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    nearest(name, 1 + name.chars().count() / 3, candidates)
}

/// As [`did_you_mean`], of functions. There are hundreds, so one that is meant begins with the same letter and is nearer.
fn function_meant(name: &str) -> String {
    let first = name.chars().next();
    let candidates = function_names().filter(|candidate| candidate.chars().next() == first);
    nearest(name, (1 + name.chars().count()) / 3, candidates)
}

/// `; did you mean "…"?` with the nearest candidate that is at most so many letters away.
fn nearest<'a>(name: &str, near: usize, candidates: impl Iterator<Item = &'a str>) -> String {
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

/// Whether one name is a prefix of the other, as `dep` of `dep_time`; such names are near.
fn is_start(name: &str, candidate: &str) -> bool {
    let (name, candidate) = (name.to_lowercase(), candidate.to_lowercase());
    name.len().min(candidate.len()) >= 3
        && (candidate.starts_with(&name) || name.starts_with(&candidate))
}
