//! `CREATE SCHEMA` and `DROP SCHEMA`.

use sqlparser::ast::{self, ObjectName, SchemaName};

use super::StatementKind;
use crate::error::{Error, Position, Result};
use crate::name::DATABASE;
use crate::name::fold;

/// A schema that is created.
#[derive(Clone, Debug)]
pub struct SchemaDefinition {
    /// Its folded name.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be there already.
    pub if_not_exists: bool,
}

/// Reads `CREATE SCHEMA`, which the parser has parsed.
pub(super) fn create(statement: ast::Statement, start: Option<Position>) -> Result<StatementKind> {
    match statement {
        ast::Statement::CreateSchema {
            schema_name: SchemaName::Simple(name),
            if_not_exists,
            with: None,
            options: None,
            default_collate_spec: None,
            clone: None,
        } => {
            let (name, position) = schema_name(&name)?;
            Ok(StatementKind::CreateSchema(SchemaDefinition { name, position, if_not_exists }))
        }
        _ => Err(Error::not_supported("CREATE SCHEMA with anything but a name", start)),
    }
}

/// The folded name of a schema, and its position.
pub(super) fn schema_name(name: &ObjectName) -> Result<(String, Position)> {
    let position = Position::of(name).unwrap_or(Position { line: 1, column: 1 });
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(fold).collect();
    match &parts[..] {
        [schema] => Ok((schema.clone(), position)),
        [database, schema] if database == DATABASE => Ok((schema.clone(), position)),
        _ => Err(Error::new(format!("\"{name}\" is not the name of a schema"), position)),
    }
}
