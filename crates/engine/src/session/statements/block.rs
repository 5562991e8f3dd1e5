//! Transaction blocks: BEGIN, COMMIT, ROLLBACK, savepoints, and transactions that have failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium_sql::statement::{Named, StatementKind, TransactionModes};

use super::temporary::Tables;
use crate::error::{Error, Result, SqlState};
use crate::session::settings::SettingsMark;
use crate::session::{Outcome, Session};
use crate::transaction::Mark;

/// The state of a session's open transaction block, beside the transaction itself.
#[derive(Default)]
pub(in crate::session) struct Block {
    /// Whether a statement that fails aborts the block.
    aborts: bool,
    /// Whether one has; rows that are pulled later share it. `None` unless blocks can abort and one is open.
    is_aborted: Option<Arc<AtomicBool>>,
    /// In the order they were made.
    savepoints: Vec<Savepoint>,
}

struct Savepoint {
    name: String,
    mark: Mark,
    settings: SettingsMark,
    temporary: Tables,
    /// How many cursors had been declared.
    cursors: u64,
}

impl Block {
    /// The block has ended.
    pub(in crate::session) fn end(&mut self) {
        (self.is_aborted, self.savepoints) = (None, Vec::new());
    }

    /// How many savepoints there are to return to.
    pub(in crate::session) fn savepoints(&self) -> usize {
        self.savepoints.len()
    }

    /// Whether only ROLLBACK helps.
    pub(in crate::session) fn is_aborted(&self) -> bool {
        self.is_aborted.as_ref().is_some_and(|aborted| aborted.load(Ordering::Relaxed))
    }

    /// The last savepoint of this name.
    fn find(&self, savepoint: &Named) -> Result<usize> {
        let found = self.savepoints.iter().rposition(|other| other.name == savepoint.name);
        found.ok_or_else(|| {
            let message = format!("there is no savepoint \"{}\"", savepoint.name);
            Error::sql(message).with_sqlstate(SqlState::NO_SAVEPOINT).at(savepoint.position)
        })
    }
}

impl Session {
    /// Says whether a statement that fails inside of BEGIN and COMMIT aborts the transaction, as it does in Postgres: then all
    /// statements but `ROLLBACK`, `ROLLBACK TO` a savepoint, and `COMMIT` are refused, and `COMMIT` rolls back, which is
    /// [`Outcome::RolledBack`]. At first it does not: a statement that fails leaves nothing, and its transaction as it was.
    ///
    /// It counts from the next `BEGIN` on. A statement fails as well if a row of its answer does when it is pulled, or if it
    /// cannot be parsed, prepared or described. A failure outside of the session, as of a protocol's message, aborts by
    /// [`Session::abort`].
    pub fn set_aborts_on_error(&mut self, aborts: bool) {
        self.block.aborts = aborts;
    }

    /// Aborts the open transaction as a statement that fails does, if the session
    /// [lets statements do so](Session::set_aborts_on_error).
    pub fn abort(&mut self) {
        let Some(aborted) = &self.block.is_aborted else { return };
        aborted.store(true, Ordering::Relaxed);
        // Without a savepoint there is no way back: it holds nothing up any more.
        if self.block.savepoints.is_empty() {
            self.transaction = None;
            self.cursors.end_transaction(false);
        }
    }

    /// Whether the open transaction [has been aborted](Session::set_aborts_on_error), and takes no statement but those that end it.
    pub fn is_aborted(&self) -> bool {
        self.block.is_aborted()
    }

    /// Runs a statement, or what belongs to one. If the session's transactions can be aborted it does not run in one that has been,
    /// unless it is of a kind that does, and aborts the transaction if it fails.
    pub(in crate::session) fn in_block<R>(
        &mut self,
        kind: Option<&StatementKind>,
        act: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        self.apply_requested();
        if self.block.is_aborted.is_none() {
            return act(self);
        }
        let helps = matches!(
            kind,
            Some(
                StatementKind::Commit { .. }
                    | StatementKind::Rollback { .. }
                    | StatementKind::RollbackTo(_)
            )
        );
        if self.is_aborted() && !helps {
            // It may have been aborted while rows were pulled.
            self.abort();
            return Err(Error::sql(
                "the transaction has been aborted by an error and takes no more statements: write ROLLBACK, or ROLLBACK TO a savepoint",
            )
            .with_sqlstate(SqlState::ABORTED));
        }
        act(self).inspect_err(|_| self.abort())
    }

    /// The flag that aborts the open transaction when the rows of its answers fail.
    pub(in crate::session) fn aborter(&self) -> Option<Arc<AtomicBool>> {
        self.block.is_aborted.clone()
    }

    pub(in crate::session) fn begin(&mut self, modes: TransactionModes) -> Result<Outcome> {
        if self.in_transaction() {
            return Err(Error::sql("a transaction is open already; COMMIT or ROLLBACK it first")
                .with_sqlstate(SqlState::ACTIVE_TRANSACTION));
        }
        let mut transaction = self.begin_transaction()?;
        transaction.read_reported();
        self.transaction = Some(transaction);
        self.temporary.begin();
        self.block.is_aborted = self.block.aborts.then(Arc::default);
        self.apply(modes);
        Ok(Outcome::Done)
    }

    pub(in crate::session) fn commit(&mut self, and_chain: bool) -> Result<Outcome> {
        if self.is_aborted() {
            self.rollback(and_chain)?;
            return Ok(Outcome::RolledBack);
        }
        let transaction = self.transaction.take().ok_or_else(|| no_transaction("COMMIT"))?;
        let modes = self.modes();
        let committed = transaction.commit();
        self.end_block(committed.is_ok());
        self.settings.committed = Some(committed?);
        self.chain(and_chain, modes)
    }

    pub(in crate::session) fn rollback(&mut self, and_chain: bool) -> Result<Outcome> {
        if !self.in_transaction() {
            return Err(no_transaction("ROLLBACK"));
        }
        let modes = self.modes();
        self.transaction = None;
        self.end_block(false);
        self.chain(and_chain, modes)
    }

    fn end_block(&mut self, is_committed: bool) {
        self.block.end();
        self.settings.end_transaction(is_committed);
        self.temporary.end(is_committed);
        self.cursors.end_transaction(is_committed);
    }

    /// Begins the next transaction, if the one that has ended says so.
    fn chain(&mut self, and_chain: bool, modes: TransactionModes) -> Result<Outcome> {
        match and_chain {
            true => self.begin(modes),
            false => Ok(Outcome::Done),
        }
    }

    pub(in crate::session) fn savepoint(&mut self, savepoint: &Named) -> Result<Outcome> {
        let transaction = self.transaction.as_ref().ok_or_else(|| no_transaction("SAVEPOINT"))?;
        let (mark, settings) = (transaction.mark(), self.settings.mark());
        let (temporary, cursors) = (self.temporary.mark(), self.cursors.declared());
        let name = savepoint.name.clone();
        self.block.savepoints.push(Savepoint { name, mark, settings, temporary, cursors });
        Ok(Outcome::Done)
    }

    pub(in crate::session) fn roll_back_to(&mut self, savepoint: &Named) -> Result<Outcome> {
        let (transaction, block) = (&mut self.transaction, &mut self.block);
        let found = match transaction {
            Some(_) => block.find(savepoint)?,
            // One that has been aborted without a savepoint is gone.
            None if block.is_aborted() => block.find(savepoint)?,
            None => return Err(no_transaction("ROLLBACK TO")),
        };
        block.savepoints.truncate(found + 1);
        if let (Some(transaction), Some(savepoint)) = (transaction, block.savepoints.last()) {
            transaction.return_to(&savepoint.mark);
            self.settings.return_to(&savepoint.settings);
            self.temporary.return_to(&savepoint.temporary);
            self.cursors.return_to(savepoint.cursors);
        }
        if let Some(aborted) = &block.is_aborted {
            aborted.store(false, Ordering::Relaxed);
        }
        Ok(Outcome::Done)
    }

    pub(in crate::session) fn release(&mut self, savepoint: &Named) -> Result<Outcome> {
        if !self.in_transaction() {
            return Err(no_transaction("RELEASE"));
        }
        let found = self.block.find(savepoint)?;
        self.block.savepoints.truncate(found);
        Ok(Outcome::Done)
    }
}

fn no_transaction(statement: &str) -> Error {
    Error::sql(format!("{statement} without BEGIN: no transaction is open"))
        .with_sqlstate(SqlState::NO_TRANSACTION)
}
