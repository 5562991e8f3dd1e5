//! Connectors to other systems, with what their connections and secrets add.

use std::collections::BTreeMap;

use alluvium_sql::error::Position;
use alluvium_sql::statement::{
    ConnectionDefinition, ConnectorDefinition, SecretDefinition, Setting,
};

use crate::catalog::Systems;
use crate::error::{Error, Result};
use crate::source::{OF_FORMAT, Registry, System, TransportConnector, is_reference, reference};

impl Registry {
    /// A connector as its system takes it, with those of its options that are not the engine's.
    pub(super) fn connected<'a>(
        &self,
        system: &dyn System,
        connector: &ConnectorDefinition,
        options: impl Iterator<Item = &'a Setting>,
        systems: &Systems,
    ) -> Result<TransportConnector> {
        let mut all = match &connector.connection {
            None => Vec::new(),
            Some(named) => {
                let connection = systems.connection(named)?;
                if connection.system.value != system.name() {
                    let (name, to) = (&named.name, &connection.system.value);
                    let message = format!("the connection \"{name}\" is one to \"{to}\"");
                    return Err(Error::sql(message).at(named.position));
                }
                let options = connection.options.iter().map(|setting| option(system, setting));
                options.collect::<Result<Vec<_>>>().map_err(|error| error.at(named.position))?
            }
        };
        for setting in options {
            let (name, value) = option(system, setting)?;
            if connector.connection.is_some() && is_of_connection(system, &name) {
                let message = format!("the option \"{name}\" belongs to the connection");
                return Err(Error::sql(message).at(setting.position));
            }
            check_once(&all, &name).map_err(|error| error.at(setting.position))?;
            all.push((name, value));
        }
        let of_format = |setting: &Setting| {
            let name = format!("{OF_FORMAT}{}", setting.name.to_ascii_lowercase());
            check_secret(system, &name, &setting.value, || Ok(())).map_err(|error| {
                error.of(&format!("the option \"{name}\"")).at(setting.position)
            })?;
            if connector.connection.is_some() && is_of_connection(system, &name) {
                let message = format!("the option \"{name}\" belongs to the connection");
                return Err(Error::sql(message).at(setting.position));
            }
            Ok((setting.name.to_ascii_uppercase(), setting.value.clone()))
        };
        let connector = TransportConnector {
            options: all,
            format: connector.format.as_ref().map(|format| format.value.clone()),
            format_options: connector.options.iter().map(of_format).collect::<Result<_>>()?,
            ..TransportConnector::default()
        };
        self.with_secrets(system, connector, systems)
    }

    /// Fails if there can be no such connection.
    pub(crate) fn check_connection(
        &self,
        connection: &ConnectionDefinition,
        systems: &Systems,
    ) -> Result<()> {
        let system = self.system(connection)?;
        let mut options = Vec::new();
        for setting in &connection.options {
            let (name, value) = option(system, setting)?;
            if !is_of_connection(system, &name) {
                let message = format!(
                    "the option \"{name}\" is none of a connection: it says what is read or written, where the connection is named"
                );
                return Err(Error::sql(message).at(setting.position));
            }
            check_once(&options, &name).map_err(|error| error.at(setting.position))?;
            options.push((name, value));
        }
        let connector = TransportConnector { options, ..TransportConnector::default() };
        self.with_secrets(system, connector, systems)
            .map(drop)
            .map_err(|error| error.at(connection.system.position))
    }

    /// The options of a connection that are secrets, and those that are files, with where they are.
    pub(crate) fn reached_by(&self, connection: &ConnectionDefinition) -> Result<Reached> {
        let system = self.system(connection)?;
        let mut reached = Reached::default();
        for setting in &connection.options {
            let (name, value) = option(system, setting)?;
            if let Ok(secret) = reference(&value) {
                reached.secrets.push((secret.to_owned(), setting.position));
            } else if system.is_file(&name) {
                reached.files.push((value, setting.position));
            }
        }
        Ok(reached)
    }

    /// The system of a connection.
    fn system(&self, connection: &ConnectionDefinition) -> Result<&dyn System> {
        let name = &connection.system.value;
        let transport = self.transport(name).map(|it| -> &dyn System { &**it });
        let delivery = || self.delivery(name).map(|it| -> &dyn System { &**it });
        let found = transport.or_else(delivery).filter(|system| system.name() == name);
        found.ok_or_else(|| {
            let known = self.names_of_systems().collect::<Vec<_>>();
            let message = match known.is_empty() {
                true => "there are no connections here: no system is registered".to_owned(),
                false => format!(
                    "there are no connections to \"{name}\" here, only to {}",
                    known.join(", ")
                ),
            };
            Error::sql(message).at(connection.system.position)
        })
    }

    /// A connector that can read its secrets. Fails if one is not for the hosts that it names.
    fn with_secrets(
        &self,
        system: &dyn System,
        connector: TransportConnector,
        systems: &Systems,
    ) -> Result<TransportConnector> {
        let all = connector.options.iter().chain(&connector.format_options);
        let used = all.filter_map(|(_, value)| reference(value).ok());
        let used = used.filter_map(|name| systems.secrets.get(name));
        let mut stored = BTreeMap::new();
        for secret in used {
            check_hosts(system, &connector, secret)?;
            stored.insert(secret.name.clone(), secret.stored.clone());
        }
        Ok(TransportConnector { secrets: self.secrets().known_as(stored), ..connector })
    }
}

/// What a connection reaches, with where it says so.
#[derive(Default)]
pub(crate) struct Reached {
    pub(crate) secrets: Vec<(String, Position)>,
    pub(crate) files: Vec<(String, Position)>,
}

/// An option as its system takes it.
fn option(system: &dyn System, setting: &Setting) -> Result<(String, String)> {
    let Setting { name, value, position } = setting;
    let name = name.to_ascii_lowercase();
    let name = system.canonical(&name);
    check_secret(system, name, value, || system.check(name, value))
        .map_err(|error| error.of(&format!("the option \"{name}\"")).at(*position))?;
    Ok((name.to_owned(), value.clone()))
}

/// Fails if an option is there already, by this name or another: systems and we may take another one of two.
fn check_once(options: &[(String, String)], name: &str) -> Result<()> {
    match options.iter().any(|(known, _)| known == name) {
        true => Err(Error::sql(format!("the option \"{name}\" is given twice"))),
        false => Ok(()),
    }
}

/// Fails if an option that is a secret is none, or the other way round, or else if `check` does.
fn check_secret(
    system: &dyn System,
    name: &str,
    value: &str,
    check: impl FnOnce() -> Result<()>,
) -> Result<()> {
    match (system.is_secret(name), is_reference(value)) {
        (true, _) => reference(value).map(drop),
        (false, true) => Err(Error::sql(format!("\"{name}\" is no secret: write its value"))),
        (false, false) => check(),
    }
}

/// Whether only who creates a connection may say this.
fn is_of_connection(system: &dyn System, option: &str) -> bool {
    system.is_of_connection(option) || system.is_secret(option) || system.is_file(option)
}

fn check_hosts(
    system: &dyn System,
    connector: &TransportConnector,
    secret: &SecretDefinition,
) -> Result<()> {
    if secret.hosts.is_empty() {
        return Ok(());
    }
    let name = &secret.name;
    let hosts = system.hosts(connector).ok_or_else(|| {
        Error::sql(format!(
            "the secret \"{name}\" is for certain hosts, and \"{}\" does not tell which it connects to",
            system.name()
        ))
    })?;
    match hosts.iter().find(|host| !secret.is_for(host)) {
        None if hosts.is_empty() => Err(Error::denied(format!(
            "the secret \"{name}\" is for certain hosts, and none is named"
        ))),
        None => Ok(()),
        Some(host) => {
            Err(Error::denied(format!("the secret \"{name}\" is not for the host \"{host}\"")))
        }
    }
}
