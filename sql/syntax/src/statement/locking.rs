//! `SELECT … FOR UPDATE` and `FOR SHARE`.

use sqlparser::ast::{self, LockType, NonBlock, SetExpr, TableFactor};

use crate::error::{Error, Position, Result};
use crate::name::relation_name;

/// A query that locks the rows it finds.
#[derive(Clone, Debug)]
pub struct LockingQuery {
    /// The query, without this.
    pub query: Box<ast::Query>,
    /// Whether others may lock the rows in the same way: `FOR SHARE`.
    pub is_shared: bool,
    /// The action for rows that others have locked.
    pub locked: IfLocked,
    /// The table that `OF` names, and where.
    pub of: Option<(String, Position)>,
}

/// The action of a query for rows that other transactions have locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfLocked {
    /// It waits for them.
    Wait,
    /// `NOWAIT`: it fails.
    Fail,
    /// `SKIP LOCKED`: it leaves them out.
    Skip,
}

impl LockingQuery {
    /// The table whose rows it locks, if it reads one.
    pub fn table(&self) -> Option<String> {
        let SetExpr::Select(select) = self.query.body.as_ref() else { return None };
        match &select.from.first()?.relation {
            TableFactor::Table { name, .. } => Some(relation_name(name).ok()?.0),
            _ => None,
        }
    }

    /// The query that this is, if it locks rows; else it stays as it is.
    pub(super) fn take(query: &mut ast::Query) -> Result<Option<LockingQuery>> {
        let clauses = std::mem::take(&mut query.locks);
        let clause = match &clauses[..] {
            [] => return Ok(None),
            [clause] => clause,
            _ => return Err(Error::not_supported("several FOR UPDATE", Position::of(&*query))),
        };
        let locked = match clause.nonblock {
            None => IfLocked::Wait,
            Some(NonBlock::Nowait) => IfLocked::Fail,
            Some(NonBlock::SkipLocked) => IfLocked::Skip,
        };
        let of = clause.of.as_ref().map(relation_name).transpose()?;
        let is_shared = clause.lock_type == LockType::Share;
        Ok(Some(LockingQuery { query: Box::new(query.clone()), is_shared, locked, of }))
    }
}
