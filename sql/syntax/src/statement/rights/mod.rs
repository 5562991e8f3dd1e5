//! Roles, and what they may do: [`role`] reads CREATE ROLE and SET ROLE, [`grant`] GRANT, REVOKE and OWNER TO.

pub(super) mod grant;
pub(super) mod role;

pub use self::grant::{Grant, GrantKind, GrantObject, Granted, OwnerChange, Privilege};
pub use self::role::{PUBLIC, Password, RoleChange, RoleDefinition, RoleOptions};
