//! The body of a request with a statement.

use alluvium::{Session, Value};
use serde_json::Value as Json;

use super::problem::Problem;

/// Statements, with values and settings.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    pub(super) sql: String,
    pub(super) parameters: Vec<Value>,
    settings: Vec<(String, String)>,
}

impl Request {
    /// Reads a body: an object with `sql`, and if need be `parameters` and `settings`.
    pub(super) fn read(body: &[u8]) -> Result<Self, Problem> {
        let body: Json = serde_json::from_slice(body)
            .map_err(|error| Problem::bad(format!("the body is no JSON: {error}")))?;
        let Json::Object(members) = body else {
            return Err(Problem::bad("the body is to be an object: {\"sql\": …}"));
        };
        let mut request = Self { sql: String::new(), parameters: Vec::new(), settings: Vec::new() };
        let mut has_sql = false;
        for (name, member) in members {
            match (name.as_str(), member) {
                ("sql", Json::String(sql)) => (request.sql, has_sql) = (sql, true),
                ("parameters", Json::Array(values)) => {
                    request.parameters = values.iter().map(value).collect::<Result<_, _>>()?;
                }
                ("settings", Json::Object(settings)) => {
                    let settings = settings.into_iter().map(|(name, value)| match value {
                        Json::String(text) => Ok((name, text)),
                        Json::Number(_) | Json::Bool(_) => Ok((name, value.to_string())),
                        _ => Err(Problem::bad(format!(
                            "the setting \"{name}\" is to be a string, a number or a boolean"
                        ))),
                    });
                    request.settings = settings.collect::<Result<_, _>>()?;
                }
                ("sql", _) => return Err(Problem::bad("\"sql\" is to be a string")),
                ("parameters", _) => return Err(Problem::bad("\"parameters\" is to be an array")),
                ("settings", _) => return Err(Problem::bad("\"settings\" is to be an object")),
                _ => {
                    let detail = format!(
                        "the body has no member \"{name}\": there are sql, parameters and settings"
                    );
                    return Err(Problem::bad(detail));
                }
            }
        }
        match has_sql {
            true => Ok(request),
            false => Err(Problem::bad("the body has no \"sql\"")),
        }
    }

    /// Gives a session its settings.
    pub(super) fn set_up(&self, session: &mut Session) -> Result<(), Problem> {
        self.settings.iter().try_for_each(|(name, value)| {
            session.set(name, value).map_err(|error| Problem::of(&error))
        })
    }
}

/// The value of a parameter. Texts are read as values of the type that is expected where they stand; arrays and objects are such texts.
pub(super) fn value(json: &Json) -> Result<Value, Problem> {
    Ok(match json {
        Json::Null => Value::NULL,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), ..) => value.into(),
            (_, Some(value), _) => value.into(),
            (.., Some(value)) => value.into(),
            _ => return Err(Problem::bad(format!("{number} is beyond all numbers"))),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(_) | Json::Object(_) => json.to_string().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Request, Problem> {
        Request::read(body.as_bytes())
    }

    #[test]
    fn a_statement_has_values_and_settings() {
        let body = r#"{"sql": "SELECT $1", "parameters": [1, null, "x", true, 0.5, 18446744073709551615],
            "settings": {"statement_timeout": 5, "TimeZone": "UTC"}}"#;
        let request = read(body).expect("a request");
        assert_eq!(request.sql, "SELECT $1");
        let values: Vec<_> = request.parameters.iter().map(ToString::to_string).collect();
        assert_eq!(values, ["1", "NULL", "x", "true", "0.5", "18446744073709551615"]);
        assert!(request.settings.contains(&("statement_timeout".to_owned(), "5".to_owned())));
    }

    #[test]
    fn other_bodies_are_refused() {
        for body in [
            "",
            "{",
            "[]",
            "null",
            "{}",
            r#"{"sql": 1}"#,
            r#"{"sql": "x", "parameters": {}}"#,
            r#"{"sql": "x", "settings": []}"#,
            r#"{"sql": "x", "more": 1}"#,
            r#"{"sql": "x", "settings": {"a": [1]}}"#,
            "\u{0}",
        ] {
            assert!(read(body).is_err(), "{body}");
        }
        assert!(Request::read(b"{\"sql\": \"\xff\"}").is_err());
        let deep = format!(
            "{{\"sql\": \"x\", \"parameters\": {}1{}}}",
            "[".repeat(1000),
            "]".repeat(1000)
        );
        assert!(read(&deep).is_err());
    }
}
