//! `CREATE [LOCAL | MATERIALIZED] VIEW`.

use sqlparser::ast::{self, CreateTableOptions};

use super::IfTaken;
use super::connector::{ConnectorDefinition, Options};
use super::kind::{fold, if_taken, relation_name};
use crate::error::{Position, Result};

/// The kind of a view: what becomes of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// Other views read them; there is no output.
    Local,
    /// Their changes are an output.
    Plain,
    /// Their changes are an output, and the rows are kept to be read.
    Materialized,
}

/// A view as it was written.
#[derive(Clone, Debug)]
pub struct ViewDefinition {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// What to do if there is one of its name.
    pub if_taken: IfTaken,
    /// Its kind.
    pub kind: ViewKind,
    /// Names for its columns, folded; empty to take the query's.
    pub columns: Vec<String>,
    /// Its query.
    pub query: Box<ast::Query>,
    /// The connectors that its rows go to.
    pub connectors: Vec<ConnectorDefinition>,
    /// The statement's source.
    pub text: String,
}

impl ViewDefinition {
    pub(super) fn read(
        create: ast::CreateView,
        kind: ViewKind,
        text: &str,
    ) -> Result<ViewDefinition> {
        let (name, position) = relation_name(&create.name)?;
        let if_taken = if_taken(create.or_replace, create.if_not_exists, position)?;
        let options = match &create.options {
            CreateTableOptions::With(options) | CreateTableOptions::Options(options) => options,
            _ => &Vec::new(),
        };
        let Options { connectors, .. } = Options::read(options, &[], position)?;
        let columns = create.columns.iter().map(|column| fold(&column.name)).collect();
        Ok(ViewDefinition {
            name,
            position,
            if_taken,
            kind,
            columns,
            query: create.query,
            connectors,
            text: text.to_string(),
        })
    }
}
