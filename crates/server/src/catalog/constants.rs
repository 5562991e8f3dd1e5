//! Settings that clients ask for and that no session can change.

use crate::pg::SERVER_VERSION;

/// Their names, values and descriptions.
pub(super) const CONSTANTS: [(&str, &str, &str); 15] = [
    ("server_version", SERVER_VERSION, "The version of Postgres whose protocol is spoken."),
    ("server_version_num", "150000", "The same, as a number."),
    ("block_size", "8192", "The size of a page of Postgres."),
    ("max_identifier_length", "63", "How long names of Postgres are."),
    ("max_index_keys", "32", "How many columns an index of Postgres has at most."),
    ("max_function_args", "100", "How many arguments a function of Postgres has at most."),
    ("in_hot_standby", "off", "Whether the server only follows another one."),
    ("lc_collate", "C", "The order of text."),
    ("lc_ctype", "C", "The kinds of letters."),
    ("wal_segment_size", "16777216", "The size of a file of the journal of Postgres."),
    ("password_encryption", "scram-sha-256", "How passwords are kept."),
    ("lc_messages", "C", "The language of messages."),
    ("lc_monetary", "C", "The form of amounts of money."),
    ("lc_numeric", "C", "The form of numbers."),
    ("lc_time", "C", "The form of times."),
];

/// The view that lists them.
pub(super) fn sql() -> String {
    let row = |(name, value, description): &(&str, &str, &str)| {
        format!("('{name}', '{value}', '{description}')")
    };
    let rows: Vec<String> = CONSTANTS.iter().map(row).collect();
    format!(
        "CREATE VIEW pg_internal.constants (name, setting, description) AS SELECT * FROM (VALUES {}) AS known;\n",
        rows.join(", ")
    )
}
