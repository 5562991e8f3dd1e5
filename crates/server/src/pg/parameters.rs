//! The parameters that a client is told of, at first and whenever they change.

use alluvium::Session;

/// The version of Postgres whose protocol and catalog clients find.
pub(crate) const SERVER_VERSION: &str = concat!("15.0 (Alluvium ", env!("CARGO_PKG_VERSION"), ")");

/// Those that never change.
const FIXED: [(&str, &str); 2] = [("server_version", SERVER_VERSION), ("in_hot_standby", "off")];

/// Those that are settings of the session.
const SETTINGS: [&str; 12] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "search_path",
    "server_encoding",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// The parameters that a client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    settings: Vec<String>,
    /// That of the session whose settings they are.
    revision: u64,
}

impl Parameters {
    /// Those of a session.
    pub(super) fn of(session: &Session) -> Self {
        let value = |name: &&str| session.setting(name).unwrap_or_default();
        let settings = SETTINGS.iter().map(value).collect();
        Self { settings, revision: session.settings_revision() }
    }

    /// All, with their values.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let settings = SETTINGS.into_iter().zip(self.settings.iter().map(String::as_str));
        FIXED.into_iter().chain(settings)
    }

    /// Those of a session that are others than these, which they replace.
    pub(super) fn update(&mut self, session: &Session) -> Vec<(&'static str, String)> {
        if self.revision == session.settings_revision() {
            return Vec::new();
        }
        let new = Self::of(session);
        let pairs = SETTINGS.into_iter().zip(new.settings.iter().zip(&self.settings));
        let changed = pairs
            .filter(|(_, (new, old))| new != old)
            .map(|(name, (new, _))| (name, new.clone()))
            .collect();
        *self = new;
        changed
    }
}
