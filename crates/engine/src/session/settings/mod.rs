//! Settings of a session: `SET`, `SHOW`, `RESET`, and their effects.
//!
//! - `table` lists the settings, with their defaults and the values they take; [`value`] checks values;
//! - this file keeps what is set, and takes it back with its transaction, as Postgres does;
//! - `statements` runs the statements, `facts` are for functions; `path` completes names by the search path.
//!
//! A value that would change results is refused. One that cannot is kept and shown, whether it has an effect or not.

mod facts;
mod path;
mod statements;
mod table;
mod value;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use alluvium_sql::name::SCHEMA;
use alluvium_sql::statement::Lasts;
use alluvium_trace::Epoch;

use self::facts::Requests;
use self::table::Setting;
use crate::transaction::Isolation;

/// Values that are not the defaults, by the names of their settings.
type Values = BTreeMap<&'static str, String>;

/// The settings of a session.
#[derive(Default)]
pub(crate) struct SessionSettings {
    values: Values,
    /// Those around the open transaction, once it has set something.
    around: Option<Around>,
    effects: Effects,
    /// How often values may have changed.
    revision: u64,
    /// The roles of the session, if it has some.
    roles: Option<SessionRoles>,
    /// Its number among the clients of a server.
    pub(super) number: Option<i32>,
    /// The epoch of its last transaction that was committed.
    pub(super) committed: Option<Epoch>,
    /// Those that the last statement has asked for by a function.
    requests: Requests,
}

/// The role of sessions that were given none.
const SUPERUSER: &str = "alluvium";

/// The roles of a session, as its settings and functions tell of them.
#[derive(PartialEq, Eq)]
pub(super) struct SessionRoles {
    /// The one whose rights its statements have.
    pub(super) current: String,
    /// Its own, which SET ROLE does not change.
    pub(super) session: String,
    /// Whether the current one may do everything.
    pub(super) is_superuser: bool,
}

/// The settings after the end of a transaction.
#[derive(Clone)]
struct Around {
    rolled_back: Values,
    committed: Values,
}

/// The settings at a savepoint.
pub(super) struct SettingsMark {
    values: Values,
    around: Option<Around>,
}

/// The effects of the values.
#[derive(Default)]
struct Effects {
    /// Whether the open transaction only reads.
    is_read_only: bool,
    /// Whether other transactions only read.
    others_are_read_only: bool,
    /// The schemas in which names without one are looked for; `None` if there is only the default one.
    search_path: Option<Vec<String>>,
    /// How long a statement may take.
    statement_timeout: Option<Duration>,
    /// How long a statement waits for rows that other transactions have written.
    lock_timeout: Option<Duration>,
    /// That of the open transaction, or of the next one.
    isolation: Isolation,
    /// Whether queries outside of transactions answer as of the last complete epoch.
    reads_stale: bool,
}

impl SessionSettings {
    /// The schemas in which names without one are looked for; `None` if there is only the default one.
    pub(super) fn search_path(&self) -> Option<&[String]> {
        self.effects.search_path.as_deref()
    }

    /// The name of the program that has the session, if it has told it.
    pub(super) fn application_name(&self) -> &str {
        self.values.get(table::APPLICATION_NAME).map_or("", String::as_str)
    }

    /// The value of a setting.
    fn value(&self, setting: &Setting) -> &str {
        if let Some(value) = self.values.get(setting.name) {
            return value;
        }
        match setting.name {
            table::READ_ONLY => self.value(&table::DEFAULT_READ_ONLY),
            table::ISOLATION => self.value(&table::DEFAULT_ISOLATION),
            table::IS_SUPERUSER if self.roles.as_ref().is_some_and(|it| !it.is_superuser) => "off",
            table::SESSION_AUTHORIZATION => {
                self.roles.as_ref().map_or(setting.default, |roles| &roles.session)
            }
            _ => setting.default,
        }
    }

    /// The session has these roles from now on.
    pub(super) fn set_roles(&mut self, roles: Option<SessionRoles>) {
        if self.roles != roles {
            self.roles = roles;
            self.revision += 1;
        }
    }

    /// Sets a setting to a value that was checked, or to its default.
    fn set(
        &mut self,
        setting: &'static Setting,
        value: Option<String>,
        lasts: Lasts,
        is_in_transaction: bool,
    ) {
        // A setting that lasts until the end of the transaction has no effect if that is the statement's own.
        let lasts = if setting.is_of_transaction() { Lasts::Transaction } else { lasts };
        if lasts == Lasts::Transaction && !is_in_transaction {
            return;
        }
        let put = |values: &mut Values| {
            match &value {
                Some(value) if value != setting.default || setting.is_of_transaction() => {
                    values.insert(setting.name, value.clone())
                }
                _ => values.remove(setting.name),
            };
        };
        if is_in_transaction {
            let around = self.around.get_or_insert_with(|| Around {
                rolled_back: self.values.clone(),
                committed: self.values.clone(),
            });
            if lasts == Lasts::Session {
                put(&mut around.committed);
            }
        }
        put(&mut self.values);
        self.take_effect();
    }

    /// All defaults, but what lasts for the transaction.
    fn reset(&mut self, is_in_transaction: bool) {
        for setting in table::SETTINGS.iter().filter(|setting| !setting.is_of_transaction()) {
            if self.values.contains_key(setting.name) {
                self.set(setting, None, Lasts::Session, is_in_transaction);
            }
        }
    }

    /// Whether the meaning or the rights of a statement depend on the session: on a search path, or on transactions that only read.
    pub(super) fn concern_statements(&self) -> bool {
        let Effects { is_read_only, others_are_read_only, search_path, .. } = &self.effects;
        *is_read_only || *others_are_read_only || search_path.is_some()
    }

    /// The open transaction has ended.
    pub(super) fn end_transaction(&mut self, is_committed: bool) {
        if let Some(Around { rolled_back, committed }) = self.around.take() {
            self.values = if is_committed { committed } else { rolled_back };
            self.take_effect();
        }
    }

    /// The present settings, in an open transaction.
    pub(super) fn mark(&self) -> SettingsMark {
        SettingsMark { values: self.values.clone(), around: self.around.clone() }
    }

    /// Restores the settings at a savepoint.
    pub(super) fn return_to(&mut self, mark: &SettingsMark) {
        (self.values, self.around) = (mark.values.clone(), mark.around.clone());
        self.take_effect();
    }

    /// When a statement that begins now is to end.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.effects.statement_timeout.map(|timeout| Instant::now() + timeout)
    }

    /// A number that is another one once a value has changed.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// How long the client may be idle, inside of a transaction or outside of one.
    fn idle_timeout(&self, is_in_transaction: bool) -> Option<Duration> {
        let setting = if is_in_transaction { &table::IDLE_IN_TRANSACTION } else { &table::IDLE };
        value::duration(self.value(setting))
    }

    /// How long a statement waits for rows that other transactions have written.
    pub(super) fn lock_timeout(&self) -> Option<Duration> {
        self.effects.lock_timeout
    }

    /// Whether queries outside of transactions answer as of the last complete epoch.
    pub(in crate::session) fn reads_stale(&self) -> bool {
        self.effects.reads_stale
    }

    /// The isolation level of the open transaction, or of the next one.
    pub(in crate::session) fn isolation(&self) -> Isolation {
        self.effects.isolation
    }

    fn take_effect(&mut self) {
        self.revision += 1;
        let is_on = |setting| self.value(setting) == value::ON;
        let schemas = value::schemas(self.value(&table::SEARCH_PATH));
        self.effects = Effects {
            is_read_only: is_on(&table::TRANSACTION_READ_ONLY),
            others_are_read_only: is_on(&table::DEFAULT_READ_ONLY),
            search_path: (schemas != [SCHEMA]).then_some(schemas),
            statement_timeout: value::duration(self.value(&table::STATEMENT_TIMEOUT)),
            lock_timeout: value::duration(self.value(&table::LOCK_TIMEOUT)),
            isolation: Isolation::named(self.value(&table::TRANSACTION_ISOLATION)),
            reads_stale: is_on(&table::STALE_READS),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_isolation_level_is_that_of_the_transaction_or_the_default() {
        let mut settings = SessionSettings::default();
        assert_eq!(settings.isolation(), Isolation::Serializable);
        let level = |name: &str| Some(name.to_owned());
        let default = &table::DEFAULT_ISOLATION;
        settings.set(default, level("read uncommitted"), Lasts::Session, false);
        assert_eq!(settings.isolation(), Isolation::ReadCommitted);
        let of_transaction = &table::TRANSACTION_ISOLATION;
        settings.set(of_transaction, level("repeatable read"), Lasts::Transaction, true);
        assert_eq!(settings.isolation(), Isolation::RepeatableRead);
        let mark = settings.mark();
        settings.set(of_transaction, level("serializable"), Lasts::Transaction, true);
        assert_eq!(settings.isolation(), Isolation::Serializable);
        settings.return_to(&mark);
        assert_eq!(settings.isolation(), Isolation::RepeatableRead);
        settings.end_transaction(true);
        assert_eq!(settings.isolation(), Isolation::ReadCommitted);
    }
}
