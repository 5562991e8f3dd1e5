//! What connectors name, secrets and connections to other systems; and sinks, which have a connector.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_sql::statement::{
    ConnectionDefinition, ConnectorDefinition, Named, SecretDefinition, SinkDefinition,
};

use super::{Catalog, Definition, Entries};
use crate::error::{Error, Result, SqlState};

/// The secrets, connections and sinks that statements have created, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Systems {
    pub(crate) secrets: BTreeMap<String, Arc<SecretDefinition>>,
    pub(crate) connections: BTreeMap<String, Arc<ConnectionDefinition>>,
    pub(crate) sinks: BTreeMap<String, Arc<SinkDefinition>>,
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

    /// The sinks of a relation.
    pub(crate) fn sinks_of(&self, relation: &str) -> Vec<String> {
        let sinks = self.sinks.values().filter(|sink| sink.relation == relation);
        sinks.map(|sink| sink.name.clone()).collect()
    }

    /// The sinks that write by a connection.
    pub(crate) fn sinks_by(&self, connection: &str) -> Vec<String> {
        let sinks = self.sinks.values().filter(|sink| uses(&sink.connector, connection));
        sinks.map(|sink| sink.name.clone()).collect()
    }
}

fn uses(connector: &ConnectorDefinition, connection: &str) -> bool {
    connector.connection.as_ref().is_some_and(|used| used.name == connection)
}

impl Entries {
    /// The tables that a connection feeds.
    pub(crate) fn tables_by(&self, connection: &str) -> Vec<String> {
        let tables = self.values().filter(|entry| match &entry.definition {
            Definition::Table(table) => {
                table.defined.connectors.iter().any(|connector| uses(connector, connection))
            }
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
