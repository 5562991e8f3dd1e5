//! Files that queries read by their names: `SELECT … FROM 'x.csv'`.

use std::ops::ControlFlow;

use sqlparser::ast::{self, ObjectName, Visit, Visitor};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Position};
use crate::walk::walk;

/// The files that a part of a statement reads, each once, in the order of their first mention.
///
/// They are relations with names in single quotes; the catalog is asked for them by path.
pub fn files(statement: &impl Visit) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    visit(statement, |relation| match path(relation) {
        Some(path) if !files.iter().any(|file| file == path) => files.push(path.to_owned()),
        _ => {}
    });
    files
}

/// The names of all relations in a part of a statement except files: those it reads and the one it changes. Names that the
/// statement itself defines are included.
pub fn relations(statement: &impl Visit) -> Vec<String> {
    let mut relations = Vec::new();
    visit(statement, |relation| {
        if path(relation).is_none() {
            relations.push(relation.to_string());
        }
    });
    relations
}

fn visit(statement: &impl Visit, see: impl FnMut(&ObjectName)) {
    struct Relations<F>(F);
    impl<F: FnMut(&ObjectName)> Visitor for Relations<F> {
        type Break = Error;

        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Error> {
            (self.0)(relation);
            ControlFlow::Continue(())
        }
    }
    walk(statement, &mut Relations(see)).expect("collecting names does not fail");
}

fn path(relation: &ObjectName) -> Option<&str> {
    let [part] = relation.0.as_slice() else { return None };
    let name = part.as_ident()?;
    (name.quote_style == Some('\'')).then_some(name.value.as_str())
}

/// Refuses a view over a file, whose changes it would not notice.
pub(super) fn refuse(query: &ast::Query, tokens: &[TokenWithSpan]) -> Result<(), Error> {
    let Some(file) = files(query).into_iter().next() else { return Ok(()) };
    let position = tokens
        .iter()
        .find(|token| matches!(&token.token, Token::SingleQuotedString(text) if *text == file))
        .and_then(|token| Position::of_span(token.span));
    let message = format!(
        "a view cannot read the file '{file}': load it into a table with CREATE TABLE t FROM '{file}'"
    );
    Err(Error::new(message, position))
}
