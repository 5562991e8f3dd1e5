//! SET, SHOW, RESET and DISCARD, and what settings do to other statements.

use std::time::Duration;

use alluvium_sql::error::Position;
use alluvium_sql::statement::{Lasts, SetSettings, SettingValue, StatementKind, TransactionModes};

use super::facts::{Request, constant};
use super::table::{self, SETTINGS, Setting};
use super::value;
use crate::error::{Error, Result, SqlState, is_standby};
use crate::session::statements::describe;
use crate::session::{Outcome, Session};
use crate::transaction::Transaction;

impl Session {
    /// Sets a setting of the session, as `SET` does: if a transaction is open and is rolled back, only until then. The reference
    /// lists the settings. The name may be in any case.
    ///
    /// # Errors
    /// If there is no such setting, or if it does not take the value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let setting = find(name)?;
        let value = setting.values.check(value, setting)?;
        self.check_not_begun(setting, Some(&value))?;
        self.put(setting, Some(value), Lasts::Session);
        Ok(())
    }

    /// The value of a setting, as `SHOW` shows it.
    ///
    /// # Errors
    /// If there is no such setting.
    pub fn setting(&self, name: &str) -> Result<String> {
        Ok(self.settings.value(find(name)?).to_owned())
    }

    /// A number that is another one once a [setting](Session::setting) has changed: a program that shows settings need not read them all.
    pub fn settings_revision(&self) -> u64 {
        self.settings.revision()
    }

    /// How long the client may be idle from now on, by `idle_in_transaction_session_timeout` if a transaction is open, or else by
    /// `idle_session_timeout`: who serves the session ends it then. `None` is forever.
    pub fn idle_timeout(&self) -> Option<Duration> {
        self.settings.idle_timeout(self.in_transaction())
    }

    /// Sets what functions of the last statement have asked for.
    pub(in crate::session) fn apply_requested(&mut self) {
        self.update_rights();
        let requests = std::mem::take(&mut *self.settings.requests.lock());
        for Request { setting, value, lasts } in requests {
            if self.check_not_begun(setting, Some(&value)).is_ok() {
                self.put(setting, Some(value), lasts);
            }
        }
    }

    /// Fails if a setting says what the open transaction reads or may do, and the transaction has read or written something.
    fn check_not_begun(&self, setting: &'static Setting, value: Option<&str>) -> Result<()> {
        let is_same = value.is_none_or(|value| value == self.settings.value(setting));
        let may_change = match setting.name {
            table::ISOLATION => is_same,
            table::READ_ONLY => is_same || value == Some(value::ON),
            _ => true,
        };
        let has_begun = || self.transaction.as_ref().is_some_and(Transaction::has_begun);
        if may_change || !has_begun() {
            return Ok(());
        }
        let message = format!("{} is set before the first query of a transaction", setting.name);
        Err(Error::sql(message).with_sqlstate(SqlState::ACTIVE_TRANSACTION))
    }

    fn put(&mut self, setting: &'static Setting, value: Option<String>, lasts: Lasts) {
        let is_in_transaction = self.in_transaction();
        self.settings.set(setting, value, lasts, is_in_transaction);
    }

    /// `SET`: all or nothing.
    pub(in crate::session) fn set_all(&mut self, set: &SetSettings) -> Result<Outcome> {
        let mut checked = Vec::with_capacity(set.settings.len());
        for one in &set.settings {
            let check = || {
                let setting = find(&one.name)?;
                let value = one.value.as_deref().map(|values| flat(setting, values));
                let value = value.map(|value| setting.values.check(&value, setting)).transpose()?;
                self.check_not_begun(setting, value.as_deref())?;
                Ok((setting, value))
            };
            checked.push(check().map_err(|error: Error| error.at(one.position))?);
        }
        for (setting, value) in checked {
            self.put(setting, value, set.lasts);
        }
        Ok(Outcome::Done)
    }

    /// `SHOW name` and `SHOW ALL`.
    pub(in crate::session) fn show(
        &self,
        name: Option<&str>,
        position: Position,
    ) -> Result<Outcome> {
        let Some(name) = name else {
            let texts = |text: &dyn Fn(&Setting) -> &str| {
                SETTINGS.iter().map(|setting| Some(text(setting).to_owned())).collect()
            };
            return describe::rows(vec![
                ("name", texts(&|setting| setting.name)),
                (
                    "setting",
                    SETTINGS.iter().map(|it| Some(self.settings.value(it).to_owned())).collect(),
                ),
                ("description", texts(&|setting| setting.description)),
            ]);
        };
        let constants = self.instance().definitions.planner.system().settings();
        match (find(name), constant(constants, name)) {
            (Ok(setting), _) => {
                let value = self.settings.value(setting).to_owned();
                describe::rows(vec![(setting.name, vec![Some(value)])])
            }
            (Err(_), Some((name, value))) => {
                describe::rows(vec![(name, vec![Some(value.clone())])])
            }
            (Err(error), None) => Err(error.at(position)),
        }
    }

    /// `RESET name` and `RESET ALL`.
    pub(in crate::session) fn reset(
        &mut self,
        name: Option<&str>,
        position: Position,
    ) -> Result<Outcome> {
        match name {
            None => {
                let is_in_transaction = self.in_transaction();
                self.settings.reset(is_in_transaction);
            }
            Some(name) => {
                let setting = find(name).map_err(|error| error.at(position))?;
                self.put(setting, None, Lasts::Session);
            }
        }
        Ok(Outcome::Done)
    }

    /// `DISCARD ALL`: the session is as a new one, but for what its program has set.
    pub(in crate::session) fn discard_all(&mut self) -> Result<Outcome> {
        self.outside("DISCARD ALL")?;
        self.settings.reset(false);
        self.reset_role();
        self.named_statements.clear();
        self.cursors.close_all();
        self.taken_values.forget();
        self.temporary.clear();
        Ok(Outcome::Done)
    }

    /// The open transaction has just begun with these modes.
    pub(in crate::session) fn apply(&mut self, modes: TransactionModes) {
        let only = modes.read_only.unwrap_or(self.settings.effects.others_are_read_only);
        // It stays so even if the default changes.
        if modes.read_only.is_some() || only {
            let value = if only { value::ON } else { "off" };
            self.put(&table::TRANSACTION_READ_ONLY, Some(value.to_owned()), Lasts::Transaction);
        }
        if let Some(level) = modes.isolation {
            let setting = &table::TRANSACTION_ISOLATION;
            self.put(setting, Some(level.to_owned()), Lasts::Transaction);
        }
    }

    /// The modes of the open transaction.
    pub(in crate::session) fn modes(&self) -> TransactionModes {
        let isolation = table::level(self.settings.value(&table::TRANSACTION_ISOLATION));
        TransactionModes { isolation, read_only: Some(self.settings.effects.is_read_only) }
    }

    /// Whether the open transaction only reads or, outside of one, that of a statement does.
    pub(in crate::session) fn is_read_only(&self) -> bool {
        let effects = &self.settings.effects;
        let is_set = match self.in_transaction() {
            true => effects.is_read_only,
            false => effects.others_are_read_only,
        };
        is_set || self.instance().is_standby()
    }

    /// Fails if a statement writes and the session only reads.
    pub(in crate::session) fn check_read_only(&self, statement: &StatementKind) -> Result<()> {
        match writes(statement) {
            Some(what) if !self.is_redoing && self.instance().is_standby() => Err(is_standby(what)),
            Some(what) if self.is_read_only() && !self.is_redoing => {
                Err(Error::sql(format!("{what} in a transaction that is READ ONLY"))
                    .with_sqlstate(SqlState::READ_ONLY))
            }
            _ => Ok(()),
        }
    }
}

/// The name of a statement that changes tables or definitions.
fn writes(statement: &StatementKind) -> Option<&'static str> {
    Some(match statement {
        StatementKind::CreateTable(_)
        | StatementKind::CreateTableFrom { .. }
        | StatementKind::CreateTableAs { .. } => "CREATE TABLE",
        StatementKind::CreateView(_) => "CREATE VIEW",
        StatementKind::DeclareView(_) => "DECLARE RECURSIVE VIEW",
        StatementKind::Lateness(_) => "LATENESS",
        StatementKind::CreateSchema(_) => "CREATE SCHEMA",
        StatementKind::DropSchema(_) => "DROP SCHEMA",
        StatementKind::CreateSequence(_) => "CREATE SEQUENCE",
        StatementKind::DropSequence(_) => "DROP SEQUENCE",
        StatementKind::RestartSequence(_) => "ALTER SEQUENCE",
        StatementKind::CreateFunction(_) => "CREATE FUNCTION",
        StatementKind::DropFunction(_) => "DROP FUNCTION",
        StatementKind::Alter(_) | StatementKind::AlterSource(_) => "ALTER",
        StatementKind::CreateSecret(_) => "CREATE SECRET",
        StatementKind::DropSecret(_) => "DROP SECRET",
        StatementKind::CreateConnection(_) => "CREATE CONNECTION",
        StatementKind::DropConnection(_) => "DROP CONNECTION",
        StatementKind::CreateSink(_) => "CREATE SINK",
        StatementKind::DropSink(_) => "DROP SINK",
        StatementKind::DropTable(_) => "DROP TABLE",
        StatementKind::DropView(_) => "DROP VIEW",
        StatementKind::DropSeveral(_) => "DROP",
        StatementKind::Truncate(_) => "TRUNCATE",
        StatementKind::Comment(_) => "COMMENT",
        StatementKind::CreateRole(_) => "CREATE ROLE",
        StatementKind::AlterRole(_) => "ALTER ROLE",
        StatementKind::DropRole { .. } => "DROP ROLE",
        StatementKind::Grant(_) => "GRANT and REVOKE",
        StatementKind::SetOwner(_) => "ALTER … OWNER TO",
        StatementKind::CreateIndex(_) => "CREATE INDEX",
        StatementKind::DropIndex(_) => "DROP INDEX",
        StatementKind::Insert(_) => "INSERT",
        StatementKind::Update(_) => "UPDATE",
        StatementKind::LockingQuery(_) => "SELECT FOR UPDATE or FOR SHARE",
        StatementKind::Delete(_) => "DELETE",
        StatementKind::Copy { .. } => "COPY FROM",
        _ => return None,
    })
}

pub(super) fn find(name: &str) -> Result<&'static Setting> {
    let unknown = || {
        Error::sql(format!("there is no setting \"{name}\"; SHOW ALL lists them"))
            .with_sqlstate(SqlState::NO_OBJECT)
    };
    Setting::find(name).ok_or_else(unknown)
}

/// Several values as one text.
fn flat(setting: &Setting, values: &[SettingValue]) -> String {
    let texts = values.iter().map(|value| value.text.clone());
    match setting.values {
        value::Values::Schemas => value::spelled(&texts.collect::<Vec<_>>()),
        _ => texts.collect::<Vec<_>>().join(", "),
    }
}
