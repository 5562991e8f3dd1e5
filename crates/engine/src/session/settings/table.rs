//! The settings of a session.

use super::SUPERUSER;
use super::value::Values;

/// A setting.
pub(super) struct Setting {
    /// Its name, as SHOW has it; statements may write it in any case.
    pub(super) name: &'static str,
    /// Its value in a new session.
    pub(super) default: &'static str,
    /// The values it takes.
    pub(super) values: Values,
    /// A description, for SHOW ALL.
    pub(super) description: &'static str,
}

pub(super) const READ_ONLY: &str = "transaction_read_only";
pub(super) const ISOLATION: &str = "transaction_isolation";
pub(super) const IS_SUPERUSER: &str = "is_superuser";
pub(super) const SESSION_AUTHORIZATION: &str = "session_authorization";

/// The isolation levels of the standard.
const LEVELS: [&str; 4] = ["serializable", "repeatable read", "read committed", "read uncommitted"];

/// The isolation level that has this name.
pub(super) fn level(name: &str) -> Option<&'static str> {
    LEVELS.into_iter().find(|level| *level == name)
}

/// Makes a setting.
const fn setting(
    name: &'static str,
    default: &'static str,
    values: Values,
    description: &'static str,
) -> Setting {
    Setting { name, default, values, description }
}

pub(super) static DEFAULT_ISOLATION: Setting = setting(
    "default_transaction_isolation",
    "serializable",
    Values::OneOf(&LEVELS),
    "The isolation level of transactions. Below serializable, what their queries read is not checked when they commit.",
);

pub(super) static DEFAULT_READ_ONLY: Setting = setting(
    "default_transaction_read_only",
    "off",
    Values::Boolean,
    "Whether transactions and statements outside of them only read.",
);

pub(super) static TRANSACTION_READ_ONLY: Setting = setting(
    READ_ONLY,
    "off",
    Values::Boolean,
    "Whether the open transaction only reads. Lasts until its end.",
);

pub(super) static TRANSACTION_ISOLATION: Setting = setting(
    ISOLATION,
    "serializable",
    Values::OneOf(&LEVELS),
    "The isolation level of the open transaction. Lasts until its end.",
);

pub(super) static LOCK_TIMEOUT: Setting = setting(
    "lock_timeout",
    "0",
    Values::Duration,
    "How long a statement waits for each row that another transaction has written; 0 is forever.",
);

pub(super) static SEARCH_PATH: Setting = setting(
    "search_path",
    "public",
    Values::Schemas,
    "The schemas in which names without a schema are looked for, in order; relations are created in the first that exists.",
);

pub(super) static STATEMENT_TIMEOUT: Setting = setting(
    "statement_timeout",
    "0",
    Values::Duration,
    "How long a statement may take; 0 is forever.",
);

pub(super) static IDLE_IN_TRANSACTION: Setting = setting(
    "idle_in_transaction_session_timeout",
    "0",
    Values::Duration,
    "How long a client may leave a transaction open without a statement; 0 is forever. A server ends the connection then.",
);

pub(super) static IDLE: Setting = setting(
    "idle_session_timeout",
    "0",
    Values::Duration,
    "How long a client may be idle outside of a transaction; 0 is forever. A server ends the connection then.",
);

pub(super) static STALE_READS: Setting = setting(
    "alluvium.stale_reads",
    "off",
    Values::Boolean,
    "Whether queries outside of transactions answer as of the last complete epoch at once, and may miss the newest commits.",
);

/// Why a value is refused that other systems have.
const FORMS: &str = "values have one form as text";

/// The name of the setting that names the program of a client.
pub(super) const APPLICATION_NAME: &str = "application_name";

/// All settings, in the order in which SHOW ALL lists them.
pub(super) static SETTINGS: &[&Setting] = &[
    &STALE_READS,
    &setting(
        APPLICATION_NAME,
        "",
        Values::Text,
        "The name that the client gives itself. It is kept, and has no effect.",
    ),
    &setting(
        "bytea_output",
        "hex",
        Values::Only(&["hex"], FORMS),
        "The form of BLOBs as text: hex.",
    ),
    &setting(
        "check_function_bodies",
        "on",
        Values::Boolean,
        "No effect: CREATE FUNCTION always checks the function.",
    ),
    &setting(
        "client_encoding",
        "UTF8",
        Values::Only(&["utf8", "utf-8", "unicode"], "text is Unicode"),
        "The encoding of text: UTF8.",
    ),
    &setting(
        "client_min_messages",
        "notice",
        Values::OneOf(&[
            "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning",
            "error",
        ]),
        "No effect: statements give no messages but errors.",
    ),
    &setting(
        "DateStyle",
        "ISO, MDY",
        Values::DateStyle,
        "The form of dates as text: ISO. The order of day, month and year has no effect, as dates are read in the form of ISO only.",
    ),
    &setting(
        "default_table_access_method",
        "heap",
        Values::Only(&["heap"], "there is one kind of table"),
        "How tables are stored: there is one way.",
    ),
    &setting(
        "default_tablespace",
        "",
        Values::Only(&[""], "there are no tablespaces"),
        "Where tables are stored: with the engine.",
    ),
    &DEFAULT_ISOLATION,
    &DEFAULT_READ_ONLY,
    &setting(
        "escape_string_warning",
        "on",
        Values::Boolean,
        "No effect: statements give no messages but errors.",
    ),
    &setting(
        "extra_float_digits",
        "1",
        Values::OneOf(&["1", "2", "3"]),
        "No effect: numbers as text have all digits that tell them apart.",
    ),
    &IDLE_IN_TRANSACTION,
    &IDLE,
    &setting("integer_datetimes", "on", Values::Fixed, "Times are whole numbers of microseconds."),
    &setting(
        "IntervalStyle",
        "postgres",
        Values::Only(&["postgres"], FORMS),
        "The form of intervals as text.",
    ),
    &setting(
        IS_SUPERUSER,
        "on",
        Values::Fixed,
        "Whether the role whose rights statements have may do everything.",
    ),
    &setting("jit", "off", Values::Boolean, "No effect: queries are not compiled."),
    &LOCK_TIMEOUT,
    &setting("row_security", "on", Values::Boolean, "No effect: there are no policies of rows."),
    &SEARCH_PATH,
    &setting("server_encoding", "UTF8", Values::Fixed, "The encoding of text."),
    &setting(
        SESSION_AUTHORIZATION,
        SUPERUSER,
        Values::Fixed,
        "The role of the session, which `SET SESSION AUTHORIZATION` changes.",
    ),
    &setting(
        "standard_conforming_strings",
        "on",
        Values::Only(&["on", "true", "yes", "1"], "a backslash in '…' stands for itself"),
        "Whether a backslash in '…' stands for itself: it does.",
    ),
    &STATEMENT_TIMEOUT,
    &setting(
        "synchronous_commit",
        "on",
        Values::OneOf(&["on", "off", "local", "remote_write", "remote_apply"]),
        "No effect: when commits are durable is the engine's setting.",
    ),
    &setting(
        "TimeZone",
        "UTC",
        Values::Only(
            &[
                "utc",
                "etc/utc",
                "uct",
                "etc/uct",
                "gmt",
                "etc/gmt",
                "universal",
                "etc/universal",
                "zulu",
                "etc/zulu",
                "z",
                "0",
                "00",
                "+0",
                "-0",
                "+00",
                "-00",
                "00:00",
                "+00:00",
                "-00:00",
                "utc0",
                "gmt0",
                "gmt+0",
                "gmt-0",
            ],
            "sessions are in UTC",
        ),
        "The time zone of the session: UTC.",
    ),
    &TRANSACTION_ISOLATION,
    &TRANSACTION_READ_ONLY,
    &setting(
        "transaction_timeout",
        "0",
        Values::Only(&["0", "0ms", "0s"], "the time of transactions is not limited"),
        "How long a transaction may take: forever.",
    ),
    &setting(
        "xmloption",
        "content",
        Values::OneOf(&["content", "document"]),
        "No effect: there is no XML.",
    ),
];

impl Setting {
    /// The setting of this name, in any case.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().copied().find(|setting| setting.name.eq_ignore_ascii_case(name))
    }

    /// Whether it is one of the open transaction.
    pub(super) fn is_of_transaction(&self) -> bool {
        matches!(self.name, READ_ONLY | ISOLATION)
    }
}

#[cfg(test)]
mod tests {
    use super::SETTINGS;

    /// The table of the reference.
    const REFERENCE: &str = include_str!("../../../../../docs/reference/settings.md");

    #[test]
    fn the_reference_lists_the_settings_with_their_defaults_and_what_they_do() {
        let rows = SETTINGS.iter().map(|setting| {
            let values = setting.values.documented();
            format!(
                "| `{}` | `{}` | {values} | {} |",
                setting.name, setting.default, setting.description
            )
        });
        let rows: Vec<String> = rows.map(|row| row.replace("``", "")).collect();
        let lines = REFERENCE.lines().skip_while(|line| *line != "## All settings");
        let documented: Vec<&str> = lines.filter(|line| line.starts_with("| `")).collect();
        assert_eq!(documented, rows, "docs/reference/settings.md is:\n{}", rows.join("\n"));
    }

    #[test]
    fn defaults_are_values_as_they_are_shown() {
        for setting in SETTINGS {
            let shown = setting.values.check(setting.default, setting);
            assert!(shown.is_ok_and(|shown| shown == setting.default), "{}", setting.name);
        }
    }

    #[test]
    fn settings_are_in_alphabetical_order() {
        let names: Vec<String> =
            SETTINGS.iter().map(|setting| setting.name.to_ascii_lowercase()).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
