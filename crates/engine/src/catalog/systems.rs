//! What connectors name: secrets, and connections to other systems.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_sql::statement::{ConnectionDefinition, ConnectorDefinition, Named, SecretDefinition};

use super::{Catalog, Definition, Entries};
use crate::error::{Error, Result, SqlState};

/// The secrets and connections that statements have created, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Systems {
    pub(crate) secrets: BTreeMap<String, Arc<SecretDefinition>>,
    pub(crate) connections: BTreeMap<String, Arc<ConnectionDefinition>>,
}

impl Systems {
    /// The connection of this name.
    pub(crate) fn connection(
        &self,
        Named { name, position }: &Named,
    ) -> Result<&ConnectionDefinition> {
        self.connections.get(name).map(|connection| &**connection).ok_or_else(|| {
            Error::sql(format!("there is no connection \"{name}\""))
                .with_sqlstate(SqlState::NO_OBJECT)
                .at(*position)
        })
    }
}

impl Entries {
    /// The tables that a connection feeds.
    pub(crate) fn users_of_connection(&self, name: &str) -> Vec<String> {
        let uses = |connector: &ConnectorDefinition| {
            connector.connection.as_ref().is_some_and(|connection| connection.name == name)
        };
        let tables = self.values().filter(|entry| match &entry.definition {
            Definition::Table(table) => table.defined.connectors.iter().any(uses),
            Definition::View(_) | Definition::Declared(_) => false,
        });
        tables.map(|entry| entry.name.clone()).collect()
    }
}

impl Catalog {
    /// Changes what connectors name.
    pub(crate) fn change_systems(&self, change: impl FnOnce(&mut Systems)) {
        change(&mut Arc::make_mut(&mut self.entries.write()).systems);
    }
}
