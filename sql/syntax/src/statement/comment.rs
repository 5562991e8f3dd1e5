//! `COMMENT ON`.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::StatementKind;
use super::syntax_error::syntax_error;
use crate::error::{Error, Position, Result, SqlState, no_column};
use crate::name;
use crate::name::{fold, relation_name};

/// A comment on a relation, a column or an index.
#[derive(Clone, Debug)]
pub struct Comment {
    /// The kind of its object.
    pub kind: CommentedKind,
    /// The relation, or the index.
    pub name: String,
    /// Where that is named.
    pub position: Position,
    /// The column, and where it is named, if it is said of one.
    pub column: Option<(String, Position)>,
    /// The text; `None` removes the comment.
    pub text: Option<String>,
}

/// The kinds of objects that have comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentedKind {
    /// `TABLE`
    Table,
    /// `VIEW`
    View,
    /// `MATERIALIZED VIEW`
    MaterializedView,
    /// `COLUMN`
    Column,
    /// `INDEX`
    Index,
}

impl Comment {
    /// Fails if it is said of a column that is not among those of its relation.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn check_column<'a>(&self, columns: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
        match &self.column {
            Some((column, position)) if !columns.clone().any(|other| other == column) => {
                Err(no_column(column, Some(&self.name), columns).at(Some(*position)))
            }
            _ => Ok(()),
        }
    }

    /// The statement that says `text` of a relation or an index, or of a column.
    pub fn statement(name: &str, column: Option<&str>, text: Option<&str>) -> String {
        let name = name::written(name);
        let subject = match column {
            Some(column) => format!("COLUMN {name}.{}", name::spelled(column)),
            // Reading the statement again finds out what kind of object has the name.
            None => format!("TABLE {name}"),
        };
        match text {
            Some(text) => format!("COMMENT ON {subject} IS '{}'", text.replace('\'', "''")),
            None => format!("COMMENT ON {subject} IS NULL"),
        }
    }
}

/// Reads `COMMENT ON`, which starts at `start`.
pub(super) fn read(parser: &mut Parser<'_>, start: Option<Position>) -> Result<StatementKind> {
    for word in [Keyword::COMMENT, Keyword::ON] {
        parser.expect_keyword_is(word).map_err(syntax_error)?;
    }
    let words =
        [Keyword::TABLE, Keyword::VIEW, Keyword::MATERIALIZED, Keyword::COLUMN, Keyword::INDEX];
    let kind = match parser.parse_one_of_keywords(&words) {
        Some(Keyword::TABLE) => CommentedKind::Table,
        Some(Keyword::VIEW) => CommentedKind::View,
        Some(Keyword::MATERIALIZED) => {
            parser.expect_keyword_is(Keyword::VIEW).map_err(syntax_error)?;
            CommentedKind::MaterializedView
        }
        Some(Keyword::COLUMN) => CommentedKind::Column,
        Some(_) => CommentedKind::Index,
        None => {
            let what = format!("COMMENT ON {}", parser.peek_token_ref().token).to_uppercase();
            let what = format!("{what} (tables, views, their columns and indexes have comments)");
            return Err(Error::not_supported(what, start));
        }
    };
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    let (name, column) = match kind {
        CommentedKind::Column => of_column(name)?,
        _ => (name, None),
    };
    let (name, position) = relation_name(&name)?;
    parser.expect_keyword_is(Keyword::IS).map_err(syntax_error)?;
    let text = text(parser)?.filter(|text| !text.is_empty());
    Ok(StatementKind::Comment(Box::new(Comment { kind, name, position, column, text })))
}

/// The relation of a column, and the column.
fn of_column(
    ObjectName(mut parts): ObjectName,
) -> Result<(ObjectName, Option<(String, Position)>)> {
    let column = match parts.pop() {
        Some(ObjectNamePart::Identifier(column)) if !parts.is_empty() => column,
        column => {
            let parts = column.into_iter().collect();
            let position = Position::of(&ObjectName(parts));
            let message = "a column is named with its relation: COMMENT ON COLUMN t.c";
            return Err(Error::new(message, position).with_sqlstate(SqlState::SYNTAX));
        }
    };
    let position = place(&column);
    Ok((ObjectName(parts), Some((fold(&column), position))))
}

fn place(ident: &Ident) -> Position {
    Position::of_span(ident.span).unwrap_or(Position { line: 1, column: 1 })
}

/// A text, or NULL.
fn text(parser: &mut Parser<'_>) -> Result<Option<String>> {
    if parser.parse_keyword(Keyword::NULL) {
        return Ok(None);
    }
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => Ok(Some(text)),
        Token::DollarQuotedString(text) => Ok(Some(text.value)),
        _ => {
            let error = parser.expected::<()>("a text in quotes, or NULL", token);
            Err(syntax_error(error.expect_err("it is an error")))
        }
    }
}
