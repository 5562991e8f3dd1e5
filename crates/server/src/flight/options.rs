//! The settings of a session, as Flight's session options, and its end. The library does not have these messages.

use std::collections::HashMap;

use alluvium::Session as EngineSession;
use tonic::Status;

use super::metadata::CATALOG;
use super::metadata::relations::{rows, texts};
use super::session::Session;
use super::status;

/// The names of actions.
pub(super) const SET: &str = "SetSessionOptions";
pub(super) const GET: &str = "GetSessionOptions";
pub(super) const CLOSE: &str = "CloseSession";
pub(super) const CANCEL: &str = "CancelFlightInfo";

/// The options that Flight names, and the setting of one of them.
const CATALOG_OPTION: &str = "catalog";
const SCHEMA_OPTION: &str = "schema";
const SEARCH_PATH: &str = "search_path";

/// A value of an option.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OptionValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5")]
    pub(super) value: Option<Value>,
}

/// The kinds of values.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Boolean(bool),
    #[prost(sfixed64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    List(Texts),
}

/// Several texts.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Texts {
    #[prost(string, repeated, tag = "1")]
    pub(super) values: Vec<String>,
}

/// Options, of a request to set them and of an answer that has them.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Options {
    #[prost(map = "string, message", tag = "1")]
    pub(super) options: HashMap<String, OptionValue>,
}

/// The answer to a request to set options: those that were not set, and why.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SetResult {
    #[prost(map = "string, message", tag = "1")]
    pub(super) errors: HashMap<String, SetError>,
}

/// Why an option was not set.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct SetError {
    #[prost(enumeration = "SetReason", tag = "1")]
    pub(super) value: i32,
}

/// The reasons why an option is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum SetReason {
    Unspecified = 0,
    InvalidName = 1,
    InvalidValue = 2,
    Error = 3,
}

/// The answer to a request to close the session.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct CloseResult {
    #[prost(enumeration = "CloseStatus", tag = "1")]
    pub(super) status: i32,
}

/// How far a session is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum CloseStatus {
    Unspecified = 0,
    Closed = 1,
    Closing = 2,
    NotCloseable = 3,
}

/// Sets settings. One that cannot be set is named in the answer, and the others are.
pub(super) async fn set(session: &Session, options: Options) -> Result<SetResult, Status> {
    let set = move |session: &mut EngineSession| {
        let failed = options.options.into_iter().filter_map(|(name, value)| {
            let reason = set_one(session, &name, value.value).err()?;
            Some((name, SetError { value: reason.into() }))
        });
        SetResult { errors: failed.collect() }
    };
    session.call(None, set).await
}

/// Sets a setting; without a value it is as at first.
fn set_one(session: &mut EngineSession, name: &str, value: Option<Value>) -> Result<(), SetReason> {
    let value = value.map(|value| match value {
        Value::Text(text) => text,
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::List(texts) => texts.values.join(", "),
    });
    if name == CATALOG_OPTION {
        let is_here = value.is_none_or(|value| value == CATALOG);
        return if is_here { Ok(()) } else { Err(SetReason::InvalidValue) };
    }
    let setting = if name == SCHEMA_OPTION { SEARCH_PATH } else { name };
    session.setting(setting).map_err(|_| SetReason::InvalidName)?;
    match value {
        Some(value) => session.set(setting, &value).map_err(|_| SetReason::InvalidValue),
        None => {
            // It is the name of a setting, and so a name of SQL.
            let reset = session.execute_with(&format!("RESET {setting}"), &[]);
            reset.map(drop).map_err(|_| SetReason::Error)
        }
    }
}

/// All settings, and the options that Flight names.
pub(super) async fn get(session: &Session) -> Result<Options, Status> {
    let found = session.call(None, |session| {
        let text = |value: &str| OptionValue { value: Some(Value::Text(value.to_owned())) };
        let mut options = HashMap::new();
        options.insert(CATALOG_OPTION.to_owned(), text(CATALOG));
        let schema = session.setting(SEARCH_PATH).map_err(|error| status::of(&error))?;
        let first = schema.split(',').next_back().unwrap_or_default();
        options.insert(SCHEMA_OPTION.to_owned(), text(first.trim().trim_matches('"')));
        for batch in rows(session, "SHOW ALL")? {
            let (names, values) = (texts(&batch, 0)?, texts(&batch, 1)?);
            let pairs = names.iter().flatten().zip(values.iter().map(Option::unwrap_or_default));
            options.extend(pairs.map(|(name, value)| (name.to_owned(), text(value))));
        }
        Ok(Options { options })
    });
    found.await?
}
