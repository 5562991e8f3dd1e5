//! Temporary tables, which are a session's own.

use sqlparser::ast::{self, ObjectName, ObjectNamePart};

use crate::error::{Error, Position, Result, SqlState};
use crate::name::TEMPORARY;

use crate::name::fold;

/// The fate of a temporary table when a transaction commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCommit {
    /// `ON COMMIT PRESERVE ROWS`: it stays as it is.
    #[default]
    Preserve,
    /// `ON COMMIT DELETE ROWS`: it is empty.
    DeleteRows,
    /// `ON COMMIT DROP`: it is no more.
    Drop,
}

/// Takes the words that make a table temporary out of its CREATE TABLE; `None` if it is not. From then on its name has the schema of
/// temporary tables.
pub(super) fn take(create: &mut ast::CreateTable) -> Result<Option<OnCommit>> {
    let of_session =
        |part: &ObjectNamePart| part.as_ident().is_some_and(|it| fold(it) == TEMPORARY);
    let is_there = matches!(create.name.0.as_slice(), [schema, _] if of_session(schema));
    if !create.temporary && !is_there {
        return Ok(None);
    }
    (create.temporary, create.global) = (false, create.global.filter(|global| *global));
    match create.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => {
            let mut schema = ast::Ident::new(TEMPORARY);
            schema.span = name.span;
            create.name = ObjectName::from(vec![schema, name.clone()]);
        }
        _ if is_there => {}
        _ => {
            let position = Position::of(&create.name);
            let message = "a temporary table is in no schema but its own: leave the schema out";
            return Err(Error::new(message, position).with_sqlstate(SqlState::WRONG));
        }
    }
    Ok(Some(match create.on_commit.take() {
        None | Some(ast::OnCommit::PreserveRows) => OnCommit::Preserve,
        Some(ast::OnCommit::DeleteRows) => OnCommit::DeleteRows,
        Some(ast::OnCommit::Drop) => OnCommit::Drop,
    }))
}
