//! Roles, and what they may do: [`role`] reads CREATE ROLE and SET ROLE, [`grant`] GRANT, REVOKE and OWNER TO.

pub(super) mod grant;
pub(super) mod role;

use sqlparser::parser::Parser;

pub use self::grant::{Grant, GrantKind, GrantObject, Granted, OwnerChange, Privilege};
pub use self::role::{PUBLIC, Password, RoleChange, RoleDefinition, RoleOptions};
use crate::error::Position;

/// Where the next token is.
fn place(parser: &Parser<'_>) -> Position {
    let span = parser.peek_token_ref().span;
    Position::of_span(span).unwrap_or(Position { line: 1, column: 1 })
}
