//! The options of COPY for clients.

use alluvium::SqlState;
use alluvium::unstable::Setting;

use super::failure::Failure;
use super::types::copy::{CopyFormat, CopyOptions, Header};

/// The options that a statement gives.
pub(super) fn options(given: &[Setting], sql: &str) -> Result<CopyOptions, Failure> {
    let is_format = |option: &&Setting| option.name.eq_ignore_ascii_case("format");
    let format = match given.iter().find(is_format) {
        None => CopyFormat::Text,
        Some(option) => match option.value.to_ascii_lowercase().as_str() {
            "text" => CopyFormat::Text,
            "csv" => CopyFormat::Csv,
            "binary" => CopyFormat::Binary,
            other => {
                let message = format!(
                    "there is no format \"{other}\" for clients: write text, csv or binary"
                );
                return Err(wrong(option, sql, message));
            }
        },
    };
    let mut options = CopyOptions::new(format);
    for option in given {
        set(&mut options, option, sql)?;
    }
    options.check()?;
    Ok(options)
}

fn set(options: &mut CopyOptions, option: &Setting, sql: &str) -> Result<(), Failure> {
    match option.name.to_ascii_lowercase().as_str() {
        "format" => (),
        "delimiter" | "delim" | "sep" => options.delimiter = byte(option, sql)?,
        "null" => options.null.clone_from(&option.value),
        "header" => {
            options.header = match option.value.eq_ignore_ascii_case("match") {
                true => Header::Checked,
                false if is_on(option, sql)? => Header::Present,
                false => Header::Absent,
            };
        }
        "quote" => {
            // The escape is the quote, unless it is given.
            let is_same = options.escape == options.quote;
            options.quote = byte(option, sql)?;
            if is_same {
                options.escape = options.quote;
            }
        }
        "escape" => options.escape = byte(option, sql)?,
        // Rows are always visible to those who may read them once they are committed.
        "freeze" => drop(is_on(option, sql)?),
        "encoding" if is_utf8(&option.value) => {}
        name => {
            let message = format!(
                "COPY for clients has no option \"{name}\" of this value: it has FORMAT, DELIMITER, NULL, HEADER, QUOTE, ESCAPE, FREEZE and ENCODING 'utf8'"
            );
            return Err(wrong(option, sql, message));
        }
    }
    Ok(())
}

fn is_utf8(encoding: &str) -> bool {
    matches!(encoding.to_ascii_lowercase().as_str(), "utf8" | "utf-8" | "unicode")
}

fn byte(option: &Setting, sql: &str) -> Result<u8, Failure> {
    match option.value.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(wrong(option, sql, format!("{} is one character of ASCII", option.name))),
    }
}

fn is_on(option: &Setting, sql: &str) -> Result<bool, Failure> {
    match option.value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(wrong(option, sql, format!("{} is true or false", option.name))),
    }
}

/// The error of an option, at its place.
fn wrong(option: &Setting, sql: &str, message: String) -> Failure {
    let place = option.position;
    Failure::new(SqlState::INVALID_VALUE.as_str(), message).at(sql, place.line, place.column)
}
