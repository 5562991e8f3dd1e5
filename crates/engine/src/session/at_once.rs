//! Statements by key that do not block, for who calls from a thread that must not.
//!
//! Outside of BEGIN and COMMIT these are reads: to commit takes a wait for the disk. Inside, also changes.

use alluvium_sql::statement::StatementKind;

use super::{Outcome, Prepared, Session, one_statement};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::query::{KeptPlan, shape_before_parsing};
use crate::transaction::Transaction;
use crate::value::Value;

impl Session {
    /// As [`Session::execute_prepared`], of BEGIN, and of a statement by key whose plan is kept and which need not wait. `None`, without an effect,
    /// for all others, and if it would have to wait.
    pub(super) fn run_at_once(
        &mut self,
        prepared: &Prepared,
        values: &[Value],
    ) -> Option<Result<Outcome>> {
        self.apply_requested();
        if self.is_aborted() {
            return None;
        }
        let is_begin = matches!(prepared.statement().kind, StatementKind::Begin(_));
        if !is_begin {
            let kept = prepared.plan().get(Value::scalars(values), &self.catalog_entries())?;
            if !self.may_run_at_once(&kept) {
                return None;
            }
        }
        let values = Value::scalars(values);
        let ran = self.without_waits(|session| session.execute_in_block(prepared, values))?;
        self.note_statement(|| prepared.statement().command());
        Some(ran)
    }

    fn may_run_at_once(&self, kept: &KeptPlan) -> bool {
        match self.in_transaction() {
            true => kept.is_of_one_key(),
            false => kept.is_by_key(),
        }
    }

    /// Runs part of a statement; `None` if it would have to wait. Any other error aborts the open transaction.
    fn without_waits<R>(&mut self, act: impl FnOnce(&mut Self) -> Result<R>) -> Option<Result<R>> {
        let before = self.transaction.as_ref().map(Transaction::read_before);
        match interrupt::without_waits(|| act(self)) {
            Err(Error::TimedOut) => {
                // It reads them again when it waits, and those may be other rows by then.
                if let (Some(transaction), Some(before)) = (&self.transaction, before) {
                    transaction.forget_reads(&before);
                }
                None
            }
            done => Some(done.inspect_err(|_| self.abort())),
        }
    }

    /// As [`Session::run_at_once`], of a text that is not parsed yet; returns its command too. `None` also if its names depend on the session, by
    /// its search path or its temporary tables, and if it changes rows and the session has rights.
    pub(super) fn run_text_at_once(
        &mut self,
        sql: &str,
    ) -> Option<Result<(&'static str, Outcome)>> {
        self.apply_requested();
        if self.is_aborted()
            || !self.temporary.are_none()
            || self.settings.search_path().is_some()
            || self.transaction.as_ref().is_some_and(|open| open.definitions().is_some())
        {
            return None;
        }
        let shape = shape_before_parsing(sql)?;
        let entries = self.catalog_entries();
        let (kept, values) = self.instance().reader.plans.get(&shape, &[], &entries)?;
        let may = match kept.target().is_some() {
            true => self.rights.is_none() && !self.is_read_only(),
            false => self.may_read(sql, &shape, &entries),
        };
        if !may || !self.may_run_at_once(&kept) {
            return None;
        }
        let parsed = || one_statement(sql).ok();
        let run =
            |session: &mut Self| session.run_plan((&shape, &kept), &values, &entries, &[], parsed);
        let ran = self.without_waits(|session| {
            session.within_limits(|session| session.run_text(sql, &[], run))
        })?;
        let ran = ran.transpose()?;
        self.note_statement(|| kept.command());
        Some(ran.map(|outcome| (kept.command(), outcome)))
    }
}
