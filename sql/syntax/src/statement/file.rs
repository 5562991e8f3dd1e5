//! Files that queries read by their names: `SELECT … FROM 'x.csv'`.

use std::ops::ControlFlow;

use sqlparser::ast::{self, ObjectName, Visit, Visitor};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::connector::Setting;
use crate::error::{Error, Position};
use crate::walk::walk;

/// Files that a query reads as one, as it names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// Their paths; several where a function has a list of them.
    pub paths: Vec<String>,
    /// How to read them.
    pub options: Vec<Setting>,
}

/// What stands before each path but the first, and before each option, in a name.
const PATH: char = '\u{1E}';
const OPTION: char = '\u{1F}';

impl FileName {
    /// The name as one text, which is the relation's in the syntax tree.
    pub(super) fn written(&self) -> String {
        let mut written = self.paths.join(&PATH.to_string());
        for Setting { name, value, .. } in &self.options {
            let value = value.replace(OPTION, "\\x1f").replace(PATH, "\\x1e");
            written.push(OPTION);
            written.push_str(&format!("{name}={value}"));
        }
        written
    }

    /// The name that a text is.
    pub fn read(written: &str) -> Self {
        let mut parts = written.split(OPTION);
        let paths = parts.next().unwrap_or_default().split(PATH).map(str::to_owned).collect();
        let option = |option: &str| {
            let (name, value) = option.split_once('=')?;
            let position = Position { line: 1, column: 1 };
            Some(Setting { name: name.to_owned(), value: value.to_owned(), position })
        };
        Self { paths, options: parts.filter_map(option).collect() }
    }
}

/// The files that a part of a statement reads, each once, in the order of their first mention: the texts of their
/// [names](FileName).
///
/// They are relations with names in single quotes; the catalog is asked for them by these texts.
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
    let file = FileName::read(&file).paths.remove(0);
    let message = format!(
        "a view cannot read the file '{file}': load it into a table with CREATE TABLE t FROM '{file}'"
    );
    Err(Error::new(message, position))
}
