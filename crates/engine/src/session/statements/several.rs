//! Statements about several relations: TRUNCATE and DROP, all or nothing.

use std::collections::BTreeSet;

use alluvium_sql::statement::{Drop, Statement, StatementKind};

use crate::error::{Error, Result};
use crate::query::Execution;
use crate::session::{Outcome, Session};

impl Session {
    /// Deletes all rows of several tables, in one transaction or in the open one.
    pub(in crate::session) fn truncate(&mut self, deletes: &[Statement]) -> Result<Outcome> {
        self.before_reading(true)?;
        let mark = self.transaction.as_ref().map(|open| open.mark());
        let truncated = self.in_one_transaction(|session| {
            let mut rows = 0;
            for delete in deletes {
                let execution = Execution { statement: delete, values: &[], own: None };
                if let Outcome::Changed { rows: deleted, .. } = session.perform(execution, false)? {
                    rows += deleted;
                }
            }
            Ok(rows)
        });
        // Of a statement that fails nothing stays.
        if let (Err(_), Some(mark), Some(open)) = (&truncated, &mark, &mut self.transaction) {
            open.return_to(mark);
        }
        let (rows, epoch) = truncated?;
        Ok(Outcome::Changed { rows, epoch })
    }

    /// Drops several tables or views, in one transaction or in the open one.
    pub(in crate::session) fn drop_several(&mut self, drops: &[Statement]) -> Result<Outcome> {
        self.in_one_transaction(|session| session.drop_in_order(drops))?;
        Ok(Outcome::Done)
    }

    /// Drops several tables or views within the open transaction, those first that others of them are read by.
    fn drop_in_order(&mut self, drops: &[Statement]) -> Result<()> {
        let mut left: Vec<(&Statement, &Drop)> = Vec::new();
        for statement in drops {
            if let Some(drop) = self.checked_drop(statement)?
                && left.iter().all(|(_, other)| other.name != drop.name)
            {
                left.push((statement, drop));
            }
        }
        let entries = self.catalog_entries();
        let dependents = |name: &str| -> BTreeSet<String> {
            entries.dependents(name).iter().map(|entry| entry.name.clone()).collect()
        };
        let names: BTreeSet<&str> = left.iter().map(|(_, drop)| &*drop.name).collect();
        for (_, drop) in left.iter().filter(|(_, drop)| !drop.cascade) {
            let others = dependents(&drop.name);
            if let Some(other) = others.iter().find(|other| !names.contains(&***other)) {
                let message = format!(
                    "\"{}\" is used by \"{other}\": drop it as well, or use CASCADE",
                    drop.name
                );
                return Err(Error::sql(message).at(drop.position));
            }
        }
        // A view is never read by those that it reads, so one of them is always first.
        left.sort_by_key(|(_, drop)| dependents(&drop.name).len());
        for (statement, _) in left {
            self.perform(Execution { statement, values: &[], own: None }, false)?;
        }
        Ok(())
    }

    /// The relation that a statement drops; `None` if it does not exist and may be missing. Fails if it is of another kind.
    fn checked_drop<'a>(&self, statement: &'a Statement) -> Result<Option<&'a Drop>> {
        let entries = self.catalog_entries();
        let (drop, is_table) = match &statement.kind {
            StatementKind::DropTable(drop) => (drop, true),
            StatementKind::DropView(drop) => (drop, false),
            _ => return Ok(None),
        };
        if drop.if_exists && !entries.contains_key(&drop.name) {
            return Ok(None);
        }
        let check = || {
            let entry = entries.relation(&drop.name)?;
            match is_table {
                true => entry.as_table().map(|_| ()),
                false => entry.check_view(),
            }
        };
        check().map_err(|error| error.at(drop.position))?;
        Ok(Some(drop))
    }
}
