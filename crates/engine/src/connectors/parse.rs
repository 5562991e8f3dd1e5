//! Connectors as SQL writes them, parsed into inputs of tables and outputs of views.
//!
//! A connector names a transport and a format. One transport is files, whose formats are the registered sources and sinks;
//! [the others](crate::Transport) are registered, and know their formats. An error names the choices there are.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alluvium_sql::statement::{ConnectorDefinition, Setting};

use crate::catalog::Systems;
use crate::error::{Error, Result};
use crate::sink::{Delivery, Destination, FileOutput, Output, OutputMode};
use crate::source::{Input, Liveness, Origin, Registry, Transport};

/// An option of a format: its name in upper case, and its value.
pub(crate) type FormatOption = (String, String);

/// The transport options of a connector that reads or writes files.
struct File<'a> {
    path: &'a Setting,
    mode: Option<&'a Setting>,
    follow: Option<&'a Setting>,
    linger: Option<&'a Setting>,
}

/// Options as sources and sinks take them, each checked by `check`.
pub(crate) fn checked(
    options: &[Setting],
    check: impl Fn(&str, &str) -> Result<()>,
) -> Result<Vec<FormatOption>> {
    let check = |setting: &Setting| {
        let name = setting.name.to_ascii_uppercase();
        check(&name, &setting.value).map_err(|error| error.at(setting.position))?;
        Ok((name, setting.value.clone()))
    };
    options.iter().map(check).collect()
}

/// The options of a statement that reads or writes a file.
pub(crate) struct Asked<'a> {
    /// `FORMAT`: the format, if the path does not say it.
    pub(crate) format: Option<&'a Setting>,
    /// `IGNORE_ERRORS`: whether rows that cannot be read are passed over, or end the statement.
    pub(crate) ignores_errors: Option<bool>,
    /// Those of the format.
    pub(crate) others: Vec<Setting>,
}

impl<'a> Asked<'a> {
    /// Splits the options that are the same for all formats from the others. The last of two that have one name counts.
    pub(crate) fn of(options: &'a [Setting]) -> Result<Self> {
        let mut asked = Self { format: None, ignores_errors: None, others: Vec::new() };
        for setting in options {
            let Setting { name, value, position } = setting;
            match name.to_ascii_uppercase().as_str() {
                "FORMAT" => asked.format = Some(setting),
                "IGNORE_ERRORS" => {
                    asked.ignores_errors = match value.to_ascii_lowercase().as_str() {
                        "true" => Some(true),
                        "false" => Some(false),
                        _ => {
                            let message =
                                format!("IGNORE_ERRORS is true or false, not \"{value}\"");
                            return Err(Error::sql(message).at(*position));
                        }
                    };
                }
                _ => asked.others.push(setting.clone()),
            }
        }
        Ok(asked)
    }
}

impl Registry {
    /// The input that a connector of a table defines, after so many others of the table.
    pub(crate) fn input(
        &self,
        table: &str,
        number: u32,
        connector: &ConnectorDefinition,
        (base, systems): (&Path, &Systems),
    ) -> Result<Input> {
        let make = || {
            if let Some(transport) = self.transport(&connector.transport.value) {
                let (origin, liveness) = self.transport_input(transport, connector, systems)?;
                let name = connector.name.clone().unwrap_or_else(|| transport.name().to_owned());
                return Ok(Input::new(table.to_owned(), number, name, origin, liveness));
            }
            let file = file(connector, "file_input", &mut self.names_of_transports())?;
            let liveness = liveness(&file)?;
            let File { path, mode, follow, .. } = file;
            if let Some(mode) = mode {
                return Err(Error::sql("a file_input has no \"mode\"").at(mode.position));
            }
            let position = connector.format.as_ref().unwrap_or(path).position;
            let path = base.join(&path.value);
            let format = connector.format.as_ref().map(|format| format.value.as_str());
            let source = self.source(format, &path).map_err(|error| error.at(position))?;
            if let Some(follow) = follow.filter(|_| liveness.follow && !source.follows()) {
                let message = format!("the format {} cannot \"follow\" a file", source.name());
                return Err(Error::sql(message).at(follow.position));
            }
            let Asked { format, ignores_errors, mut others } = Asked::of(&connector.options)?;
            // That of the connector has a place of its own.
            others.extend(format.cloned());
            let options = checked(&others, |name, value| source.check(name, value))?;
            let name = connector.name.clone().unwrap_or_else(|| source.name().to_owned());
            let origin = Origin::Files { path, source, options };
            let mut input = Input::new(table.to_owned(), number, name, origin, liveness);
            input.fails = ignores_errors == Some(false);
            Ok(input)
        };
        make()
            .map_err(|error: Error| error.of(&format!("table \"{table}\"")).at(connector.position))
    }

    /// The output that a connector of a view defines.
    pub(crate) fn output(
        &self,
        view: &str,
        connector: &ConnectorDefinition,
        (base, systems): (&Path, &Systems),
    ) -> Result<Output> {
        let make = || {
            if let Some(delivery) = self.delivery(&connector.transport.value) {
                return self.delivery_output(delivery, connector, systems);
            }
            let known = &mut self.names_of_deliveries();
            let File { path, mode, follow, linger } = file(connector, "file_output", known)?;
            if let Some(setting) = follow.or(linger) {
                let message = format!("a file_output has no \"{}\"", setting.name);
                return Err(Error::sql(message).at(setting.position));
            }
            let mode = match mode.map(|mode| (mode, mode.value.to_ascii_lowercase())) {
                None => None,
                Some((_, mode)) if mode == "changes" => Some(OutputMode::Changes),
                Some((_, mode)) if mode == "contents" => Some(OutputMode::Contents),
                Some((mode, _)) => {
                    let message = format!(
                        "the mode of a file_output is \"changes\" or \"contents\", not \"{}\"",
                        mode.value
                    );
                    return Err(Error::sql(message).at(mode.position));
                }
            };
            let position = connector.format.as_ref().unwrap_or(path).position;
            let path = base.join(&path.value);
            let format = connector.format.as_ref().map(|format| format.value.as_str());
            let sink = self.sink(format, &path).map_err(|error| error.at(position))?;
            let options = checked(&connector.options, |name, value| sink.check(name, value))?;
            Ok(Output { to: Destination::File(FileOutput { path, sink, options }), mode })
        };
        make().map_err(|error: Error| error.of(&format!("view \"{view}\"")).at(connector.position))
    }

    /// The input of a connector that names a transport, and how it waits for rows.
    fn transport_input(
        &self,
        transport: &Arc<dyn Transport>,
        connector: &ConnectorDefinition,
        systems: &Systems,
    ) -> Result<(Origin, Liveness)> {
        let mut liveness = Liveness { follow: true, ..Liveness::default() };
        let is_own = |setting: &&Setting| setting.name.eq_ignore_ascii_case("linger_ms");
        if let Some(setting) = connector.config.iter().find(is_own) {
            liveness.linger = linger(setting)?;
        }
        let others = connector.config.iter().filter(|setting| !is_own(setting));
        let connected = self.connected(&**transport, connector, others, systems)?;
        let place =
            transport.place(&connected).map_err(|error| error.at(connector.transport.position))?;
        Ok((
            Origin::Transport { transport: transport.clone(), connector: connected, place },
            liveness,
        ))
    }

    /// The output of a connector that names a delivery.
    fn delivery_output(
        &self,
        delivery: &Arc<dyn Delivery>,
        connector: &ConnectorDefinition,
        systems: &Systems,
    ) -> Result<Output> {
        let connected = self.connected(&**delivery, connector, connector.config.iter(), systems)?;
        let place =
            delivery.place(&connected).map_err(|error| error.at(connector.transport.position))?;
        let (delivery, connector, place) = (delivery.clone(), connected, place.into());
        let to = Destination::Delivery { delivery, connector, place };
        Ok(Output { to, mode: Some(OutputMode::Changes) })
    }
}

/// How an input waits for rows.
fn liveness(file: &File<'_>) -> Result<Liveness> {
    let mut liveness = Liveness::default();
    if let Some(Setting { value, position, .. }) = file.follow {
        liveness.follow = match value.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => {
                let message = format!("\"follow\" is true or false, not \"{value}\"");
                return Err(Error::sql(message).at(*position));
            }
        };
    }
    if let Some(setting) = file.linger {
        liveness.linger = linger(setting)?;
    }
    Ok(liveness)
}

fn linger(Setting { value, position, .. }: &Setting) -> Result<Duration> {
    let milliseconds: Result<u32> = value.parse().map_err(|_| {
        let message = format!("\"linger_ms\" is a number of milliseconds, not \"{value}\"");
        Error::sql(message).at(*position)
    });
    Ok(Duration::from_millis(milliseconds?.into()))
}

/// The transport options of a connector; fails if its transport is not files.
fn file<'a>(
    connector: &'a ConnectorDefinition,
    transport: &str,
    known: &mut dyn Iterator<Item = String>,
) -> Result<File<'a>> {
    let asked = &connector.transport;
    if asked.value != transport && asked.value != "file" {
        let message = format!(
            "the transport \"{}\" is not supported here; there is {}",
            asked.value,
            known.collect::<Vec<_>>().join(", ")
        );
        return Err(Error::sql(message).at(asked.position));
    }
    if let Some(connection) = &connector.connection {
        return Err(Error::sql("files have no connection").at(connection.position));
    }
    let (mut path, mut mode, mut follow, mut linger) = (None, None, None, None);
    for setting in &connector.config {
        match setting.name.as_str() {
            "path" => path = Some(setting),
            "mode" => mode = Some(setting),
            "follow" => follow = Some(setting),
            "linger_ms" => linger = Some(setting),
            other => {
                let message =
                    format!("the transport \"{}\" has no option \"{other}\"", asked.value);
                return Err(Error::sql(message).at(setting.position));
            }
        }
    }
    match path {
        Some(path) => Ok(File { path, mode, follow, linger }),
        None => {
            let message = format!("the transport \"{}\" needs a \"path\"", asked.value);
            Err(Error::sql(message).at(asked.position))
        }
    }
}
