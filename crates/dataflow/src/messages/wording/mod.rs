//! Messages of Arrow and DataFusion, in the terms of SQL.
//!
//! - `terms` names types and constants as SQL does: `Int32` is INTEGER;
//! - `pattern` puts one text in place of another around the same values;
//! - [`VALUES`] are messages about values, which rows of views and queries have in common. Messages that only statements have
//!   are translated where statements are planned.
mod pattern;
mod terms;

pub use self::pattern::{Rewording, reworded};
pub use self::terms::{in_sql_terms, type_name};
use crate::messages::shorten::abridge;

/// Messages about values that are no values of a type.
const VALUES: &[Rewording] = &[
    ("Cannot cast string '{}' to value of {} type", "'{0}' cannot be read as {1}"),
    ("Can't cast value {} to type {}", "{0} is no value of type {1}"),
    ("Cannot cast to {}. Overflowing on {}", "{1} is no value of type {0}"),
    (
        "Error parsing timestamp from '{}' using format '{}': {}",
        "'{0}' is no time of the format '{1}': {2}",
    ),
    (
        "Error parsing timestamp from '{}': {}",
        "'{0}' cannot be read as TIMESTAMP: write a date, or a date and a time, as 2024-01-31 12:30:00",
    ),
    (
        "Invalid input syntax for type interval: \"{}\"",
        "'{0}' cannot be read as INTERVAL: write numbers and units, as INTERVAL '1' HOUR or INTERVAL '1 day 2 hours'",
    ),
];

/// A message about values, in the terms of SQL, [abridged](abridge).
pub fn of_values(message: &str) -> String {
    in_sql_terms(&abridge(reworded(VALUES, message).as_deref().unwrap_or(message)))
}
