//! Connectors: where a table's rows come from, and where a view's rows go.
//!
//! They are written as JSON of Feldera's shape, several at a time, or one with flat options:
//!
//! ```sql
//! WITH ('connectors' = '[{"name": "daily",
//!     "transport": {"name": "file_input", "config": {"path": "t.csv"}},
//!     "format": {"name": "csv", "config": {"headers": true}}}]')
//! WITH (connector = 'file', path = 't.csv', format = 'csv', headers = 'true')
//! ```
//!
//! [`clause`] reads one that is a clause of a statement, and may name a [`connection`].
//!
//! This module only reads their shape. The engine knows which transports and formats exist and which options they have.

pub(super) mod clause;
pub(super) mod connection;
pub(super) mod option_list;
pub(super) mod pause;
pub(super) mod secret;
pub(super) mod sink;

use sqlparser::ast::{self, SqlOption, Value as SqlValue};

use crate::error::{Error, Position, Result};
use crate::name::Named;
use crate::statement::json::{Json, Literal, Member, Value};

/// A connector as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectorDefinition {
    /// Where it starts.
    pub position: Position,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The transport, such as `file_input`; its `name` is `transport` or `connector`.
    pub transport: Setting,
    /// The connection whose options come before its own.
    pub connection: Option<Named>,
    /// The options of the transport, such as `path`.
    pub config: Vec<Setting>,
    /// The format, such as `csv`.
    pub format: Option<Setting>,
    /// The options of the format, such as `headers`.
    pub options: Vec<Setting>,
}

/// An option and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, as it was written.
    pub name: String,
    /// The value: text without its quotes, several values as JSON, anything else as it was written.
    pub value: String,
    /// Where it stands.
    pub position: Position,
}

/// The options of a WITH clause: those of the relation itself, and its connectors.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) own: Vec<Setting>,
    pub(super) connectors: Vec<ConnectorDefinition>,
}

/// The options of the transport `file`.
const OF_FILE: &[&str] = &["path", "mode", "follow", "linger_ms"];

fn is_of_file(name: &str) -> bool {
    OF_FILE.contains(&name)
}

impl Options {
    /// Reads options of which `own` are the relation's; names are in lower case from here on.
    pub(super) fn read(options: &[SqlOption], own: &[&str], place: Position) -> Result<Options> {
        let mut read = Options::default();
        let mut flat: Vec<Setting> = Vec::new();
        for option in options {
            let SqlOption::KeyValue { key, value } = option else {
                return Err(Error::not_supported(format!("the option {option}"), place));
            };
            let literal = Position::of(value);
            let position = Position::of_span(key.span).or(literal).unwrap_or(place);
            let name = key.value.to_ascii_lowercase();
            let value = text(value);
            if name == "connectors" {
                let start = literal.unwrap_or(position);
                read.connectors.append(&mut connectors(Literal { text: &value, start })?);
                continue;
            }
            let setting = Setting { name, value, position };
            if own.contains(&setting.name.as_str()) {
                read.own.push(setting);
            } else {
                flat.push(setting);
            }
        }
        if let Some(connector) = flat.iter().position(|setting| setting.name == "connector") {
            let transport = flat.remove(connector);
            read.connectors.push(from_flat(transport, flat)?);
        } else if let Some(Setting { name, position, .. }) = flat.first() {
            let known: String = own.iter().map(|own| format!("'{own}', ")).collect();
            let message = format!(
                "there is no option '{name}'; there are {known}'connectors', and with \
                 'connector' = 'file' those of a file"
            );
            return Err(Error::new(message, *position));
        }
        Ok(read)
    }
}

/// A literal's text without its quotes; anything else as it was written.
fn text(value: &ast::Expr) -> String {
    match value {
        ast::Expr::Value(value) => match &value.value {
            SqlValue::SingleQuotedString(text) => text.clone(),
            value => value.to_string(),
        },
        other => other.to_string(),
    }
}

/// A connector of flat options. Those of a file belong to it, and all others to the format; of another transport those of the format begin
/// with `format.`.
fn from_flat(transport: Setting, flat: Vec<Setting>) -> Result<ConnectorDefinition> {
    let is_file = matches!(transport.value.as_str(), "file" | "file_input" | "file_output");
    let mut connector = ConnectorDefinition {
        position: transport.position,
        name: None,
        transport,
        connection: None,
        config: Vec::new(),
        format: None,
        options: Vec::new(),
    };
    for mut setting in flat {
        let of_format = setting.name.strip_prefix("format.").filter(|_| !is_file);
        if let Some(name) = of_format {
            setting.name = name.to_owned();
            add(&mut connector.options, setting)?;
            continue;
        }
        let settings = match setting.name.as_str() {
            "format" if connector.format.is_some() => return Err(twice(&setting)),
            "format" => {
                connector.format = Some(setting);
                continue;
            }
            name if !is_file || is_of_file(name) => &mut connector.config,
            _ => &mut connector.options,
        };
        add(settings, setting)?;
    }
    Ok(connector)
}

fn twice(setting: &Setting) -> Error {
    Error::new(format!("'{}' is set twice", setting.name), setting.position)
}

fn add(settings: &mut Vec<Setting>, setting: Setting) -> Result<()> {
    if settings.iter().any(|other| other.name.eq_ignore_ascii_case(&setting.name)) {
        return Err(twice(&setting));
    }
    settings.push(setting);
    Ok(())
}

fn connectors(literal: Literal<'_>) -> Result<Vec<ConnectorDefinition>> {
    let json = literal.json()?;
    let shape = Shape(literal);
    let Value::Array(connectors) = json.value else {
        return Err(shape.wrong(&json, "'connectors' is an array of objects"));
    };
    connectors.into_iter().map(|connector| shape.connector(connector)).collect()
}

/// Reads definitions from JSON, with positions for errors.
struct Shape<'a>(Literal<'a>);

impl Shape<'_> {
    fn connector(&self, json: Json) -> Result<ConnectorDefinition> {
        let position = self.0.position(json.offset);
        let (mut name, mut transport, mut format) = (None, None, None);
        for member in self.members(json, "a connector must be an object")? {
            let place = match member.name.as_str() {
                "name" => {
                    name = Some(self.setting(member)?.value);
                    continue;
                }
                "transport" => &mut transport,
                "format" => &mut format,
                other => {
                    let what = format!("'{other}' of a connector");
                    return Err(Error::not_supported(what, self.0.position(member.offset)));
                }
            };
            *place = Some(self.named(member)?);
        }
        let Some((transport, config)) = transport else {
            return Err(Error::new("the connector has no \"transport\"", position));
        };
        let (format, options) = match format {
            Some((format, options)) => (Some(format), options),
            None => (None, Vec::new()),
        };
        let connection = None;
        Ok(ConnectorDefinition { position, name, transport, connection, config, format, options })
    }

    /// `{"name": …, "config": {…}}`: a transport or a format.
    fn named(&self, member: Member) -> Result<(Setting, Vec<Setting>)> {
        let Member { offset, name: what, value } = member;
        let (mut name, mut config) = (None, Vec::new());
        for member in self.members(value, &format!("\"{what}\" is an object"))? {
            match member.name.as_str() {
                "name" => name = Some(Setting { name: what.clone(), ..self.setting(member)? }),
                "config" => {
                    for member in self.members(member.value, "\"config\" is an object")? {
                        let is_of_file = what != "format" && is_of_file(&member.name);
                        let setting = match is_of_file {
                            true => self.setting(member)?,
                            false => self.option(member)?,
                        };
                        add(&mut config, setting)?;
                    }
                }
                other => {
                    let message =
                        format!("\"{what}\" has \"name\" and \"config\", not \"{other}\"");
                    return Err(Error::new(message, self.0.position(member.offset)));
                }
            }
        }
        match name {
            Some(name) => Ok((name, config)),
            None => {
                let message = format!("the {what} has no \"name\"");
                Err(Error::new(message, self.0.position(offset)))
            }
        }
    }

    fn setting(&self, Member { offset, name, value }: Member) -> Result<Setting> {
        match value.value {
            Value::Word(value) | Value::Text(value) => {
                Ok(Setting { name, value, position: self.0.position(offset) })
            }
            _ => Err(self.wrong(&value, format!("\"{name}\" is a text, a number or a boolean"))),
        }
    }

    /// An option of a format or a transport, which may have several values.
    fn option(&self, Member { offset, name, value }: Member) -> Result<Setting> {
        match value.value {
            Value::Array(_) | Value::Object(_) => {
                let value = value.value.to_string();
                Ok(Setting { name, value, position: self.0.position(offset) })
            }
            _ => self.setting(Member { offset, name, value }),
        }
    }

    fn members(&self, json: Json, wanted: &str) -> Result<Vec<Member>> {
        match json.value {
            Value::Object(members) => Ok(members),
            _ => Err(self.wrong(&json, wanted)),
        }
    }

    fn wrong(&self, json: &Json, message: impl Into<String>) -> Error {
        Error::new(message, self.0.position(json.offset))
    }
}
