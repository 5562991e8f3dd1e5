//! `CREATE [LOCAL | MATERIALIZED] VIEW`.

use sqlparser::ast::{self, CreateTableOptions};

use super::IfTaken;
use super::connector::{ConnectorDefinition, Options};
use super::kind::{fold, if_taken, relation_name};
use crate::error::{Error, Position, Result};

/// The kind of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// Local: only other views read it.
    Local,
    /// Emits a stream of changes.
    Plain,
    /// Emits changes, and keeps its rows to be queried.
    Materialized,
}

/// A view as written.
#[derive(Clone, Debug)]
pub struct ViewDefinition {
    /// Its folded name.
    pub name: String,
    /// The position of its name.
    pub position: Position,
    /// What to do if a view of this name exists.
    pub if_taken: IfTaken,
    /// What becomes of its rows.
    pub kind: ViewKind,
    /// Its column names, folded; empty for the names of the query.
    pub columns: Vec<String>,
    /// Its query.
    pub query: Box<ast::Query>,
    /// Its outputs.
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
        let refused = |name: &str| Err(Error::not_supported(name, position));
        let if_taken = if_taken(create.or_replace, create.if_not_exists, position)?;
        let options = match &create.options {
            CreateTableOptions::With(options) | CreateTableOptions::Options(options) => options,
            _ => &Vec::new(),
        };
        let Options { connectors, .. } = Options::read(options, &[], position)?;
        if !create.cluster_by.is_empty() {
            return refused("CLUSTER BY of a view");
        }
        if create.to.is_some()
            || create.comment.is_some()
            || create.params.is_some()
            || create.with_no_schema_binding
        {
            return refused("this clause of CREATE VIEW");
        }
        let mut columns = Vec::with_capacity(create.columns.len());
        for column in &create.columns {
            if column.data_type.is_some() || column.options.is_some() {
                return Err(Error::not_supported(
                    "a type or an option in a view's column list",
                    Position::of_span(column.name.span),
                ));
            }
            columns.push(fold(&column.name));
        }
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
