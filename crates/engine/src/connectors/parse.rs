//! Connectors as SQL writes them, parsed into inputs of tables and outputs of views.
//!
//! A connector names a transport and a format. The only transport is files; their formats are the registered sources and
//! sinks. An error names the choices there are.

use std::path::Path;

use alluvium_sql::statement::{ConnectorDefinition, Setting};

use crate::error::{Error, Result};
use crate::sink::{Output, OutputMode};
use crate::source::{Input, Registry};

/// An option of a format: its name in upper case, and its value.
pub(crate) type FormatOption = (String, String);

/// The transport options of a connector that reads or writes files.
struct File<'a> {
    path: &'a Setting,
    mode: Option<&'a Setting>,
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

/// Splits the option FORMAT from the other options of a statement.
pub(crate) fn format(options: &[Setting]) -> (Option<&Setting>, Vec<Setting>) {
    let is_format = |setting: &&Setting| setting.name.eq_ignore_ascii_case("format");
    let others = options.iter().filter(|setting| !is_format(setting)).cloned().collect();
    (options.iter().rfind(is_format), others)
}

impl Registry {
    /// The input that a connector of a table defines, behind so many others of the table.
    pub(crate) fn input(
        &self,
        table: &str,
        number: u32,
        connector: &ConnectorDefinition,
        base: &Path,
    ) -> Result<Input> {
        let make = || {
            let File { path, mode } = file(connector, "file_input")?;
            if let Some(mode) = mode {
                return Err(Error::sql("a file_input has no \"mode\"").at(mode.position));
            }
            let position = connector.format.as_ref().unwrap_or(path).position;
            let path = base.join(&path.value);
            let format = connector.format.as_ref().map(|format| format.value.as_str());
            let source = self.source(format, &path).map_err(|error| error.at(position))?;
            let options = checked(&connector.options, |name, value| source.check(name, value))?;
            let name = connector.name.clone().unwrap_or_else(|| source.name().to_owned());
            Ok(Input::new(table.to_owned(), number, name, path, source, options))
        };
        make()
            .map_err(|error: Error| error.of(&format!("table \"{table}\"")).at(connector.position))
    }

    /// The output that a connector of a view defines.
    pub(crate) fn output(
        &self,
        view: &str,
        connector: &ConnectorDefinition,
        base: &Path,
    ) -> Result<Output> {
        let make = || {
            let File { path, mode } = file(connector, "file_output")?;
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
            Ok(Output { path, sink, options, mode })
        };
        make().map_err(|error: Error| error.of(&format!("view \"{view}\"")).at(connector.position))
    }
}

/// The transport options of a connector; fails if its transport is not files.
fn file<'a>(connector: &'a ConnectorDefinition, transport: &str) -> Result<File<'a>> {
    let asked = &connector.transport;
    if asked.value != transport && asked.value != "file" {
        let message = format!(
            "the transport \"{}\" is not supported here; there is \"{transport}\"",
            asked.value
        );
        return Err(Error::sql(message).at(asked.position));
    }
    let (mut path, mut mode) = (None, None);
    for setting in &connector.config {
        match setting.name.as_str() {
            "path" => path = Some(setting),
            "mode" => mode = Some(setting),
            other => {
                let message =
                    format!("the transport \"{}\" has no option \"{other}\"", asked.value);
                return Err(Error::sql(message).at(setting.position));
            }
        }
    }
    match path {
        Some(path) => Ok(File { path, mode }),
        None => {
            let message = format!("the transport \"{}\" needs a \"path\"", asked.value);
            Err(Error::sql(message).at(asked.position))
        }
    }
}
