//! CREATE and DROP of secrets and connections, and the names of sinks.

use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::statement::{ConnectionDefinition, Drop, SecretDefinition, SinkDefinition};
use parking_lot::MutexGuard;

use super::Definitions;
use crate::catalog::Entry;
use crate::connectors::Connectors;
use crate::durable::record::{Record, Recorded};
use crate::error::{Error, Result, SqlState};
use crate::sink::Running;
use crate::source::is_name;
use crate::writer::Writer;

impl Definitions {
    /// Creates the name of a secret, durably; does nothing if it may be there and is.
    pub(crate) fn create_secret(&self, secret: &SecretDefinition) -> Result<()> {
        let lock = self.lock();
        let name = &secret.name;
        if self.catalog.entries().systems.secrets.contains_key(name) {
            return if_there(secret.if_not_exists, "secret", name);
        }
        if let Some(wrong) = [name, &secret.stored].into_iter().find(|name| !is_name(name)) {
            let message = format!(
                "a secret cannot be called \"{wrong}\": its name has up to 63 lower-case letters, digits and _"
            );
            return Err(Error::sql(message).with_sqlstate(SqlState::INVALID_VALUE));
        }
        let record = Record::of_systems(secret.text.clone());
        self.sequencer.record(&Recorded::new(Record::name_of_secret(name), record))?;
        let secret = Arc::new(secret.clone());
        self.catalog.change_systems(|systems| {
            systems.secrets.insert(secret.name.clone(), secret);
        });
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    /// Drops the name of a secret that nothing uses.
    pub(crate) fn drop_secret(&self, secret: &Drop, connectors: &Connectors) -> Result<()> {
        let lock = self.lock();
        let name = &secret.name;
        let systems = &self.catalog.entries().systems;
        if !systems.secrets.contains_key(name) {
            return if_missing(secret.if_exists, "secret", name);
        }
        let reference = format!("${{secret:{name}}}");
        let connections = systems.connections.values();
        let connections = connections
            .filter(|connection| connection.options.iter().any(|it| it.value == reference));
        let connections = connections.map(|connection| connection.name.clone());
        // One that is being created does not run yet.
        let of_sink = |sink: &&Arc<SinkDefinition>| {
            let mut all = sink.connector.config.iter().chain(&sink.connector.options);
            all.any(|it| it.value == reference)
        };
        let sinks = systems.sinks.values().filter(of_sink).map(|sink| sink.name.clone());
        let users = connections.chain(sinks).chain(connectors.users_of_secret(name));
        let users: Vec<String> = users.collect();
        check_unused("secret", name, &users)?;
        let record = Record::of_systems(format!("DROP SECRET {}", name::spelled(name)));
        self.sequencer.record_drop(&record, [&*Record::name_of_secret(name)])?;
        self.catalog.change_systems(|systems| {
            systems.secrets.remove(name);
        });
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    /// Creates a connection, durably; does nothing if it may be there and is.
    pub(crate) fn create_connection(
        &self,
        connection: &ConnectionDefinition,
        connectors: &Connectors,
    ) -> Result<()> {
        let lock = self.lock();
        let name = &connection.name;
        let entries = self.catalog.entries();
        if entries.systems.connections.contains_key(name) {
            return if_there(connection.if_not_exists, "connection", name);
        }
        connectors.formats.check_connection(connection, &entries.systems)?;
        drop(entries);
        let record = Record::of_systems(connection.text.clone());
        self.sequencer.record(&Recorded::new(Record::name_of_connection(name), record))?;
        let connection = Arc::new(connection.clone());
        self.catalog.change_systems(|systems| {
            systems.connections.insert(connection.name.clone(), connection);
        });
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    /// Drops a connection that nothing uses, or with CASCADE all that uses it.
    pub(crate) fn drop_connection(
        &self,
        connection: &Drop,
        writer: &Writer,
        connectors: &Connectors,
    ) -> Result<()> {
        let Drop { name, position, if_exists, cascade } = connection;
        if *cascade {
            let entries = self.catalog.entries();
            let user = |name| Drop { name, position: *position, if_exists: true, cascade: true };
            for sink in entries.systems.sinks_by(name) {
                self.drop_sink(&user(sink), connectors)?;
            }
            for table in entries.tables_by(name) {
                self.drop_table(&user(table), writer, connectors)?;
            }
        }
        let lock = self.lock();
        let entries = self.catalog.entries();
        if !entries.systems.connections.contains_key(name) {
            return if_missing(*if_exists, "connection", name);
        }
        let mut users = entries.tables_by(name);
        users.extend(entries.systems.sinks_by(name));
        check_unused("connection", name, &users)?;
        drop(entries);
        let record = Record::of_systems(format!("DROP CONNECTION {}", name::spelled(name)));
        self.sequencer.record_drop(&record, [&*Record::name_of_connection(name)])?;
        self.catalog.change_systems(|systems| {
            systems.connections.remove(name);
        });
        drop(lock);
        self.sequencer.durable().sync_all()
    }

    /// Gives a sink its name; returns whether it is a new one.
    pub(crate) fn claim_sink(&self, sink: &SinkDefinition) -> Result<bool> {
        let _lock = self.lock();
        if self.catalog.entries().systems.sinks.contains_key(&sink.name) {
            return if_there(sink.if_not_exists, "sink", &sink.name).map(|()| false);
        }
        // It may have been dropped meanwhile.
        self.catalog.get(&sink.relation).map_err(|error| error.at(sink.relation_position))?;
        self.catalog.change_systems(|systems| {
            systems.sinks.insert(sink.name.clone(), Arc::new(sink.clone()));
        });
        Ok(true)
    }

    /// Keeps definitions as they are while a sink is recorded. Fails if it was dropped meanwhile, or its relation is another one.
    pub(crate) fn keep_claim(
        &self,
        sink: &str,
        relation: &Arc<Entry>,
    ) -> Result<MutexGuard<'_, ()>> {
        let lock = self.lock();
        let is_claimed = self.catalog.entries().systems.sinks.contains_key(sink);
        let now = self.catalog.get(&relation.name)?;
        match is_claimed && Arc::ptr_eq(&now, relation) {
            true => Ok(lock),
            false => Err(Error::sql(format!(
                "\"{}\" was dropped or replaced while the sink \"{sink}\" was created",
                relation.name
            ))
            .with_sqlstate(SqlState::NOT_IN_STATE)),
        }
    }

    /// A sink is not there, or no more.
    pub(crate) fn forget_sink(&self, name: &str) {
        self.catalog.change_systems(|systems| {
            systems.sinks.remove(name);
        });
    }

    /// Drops a sink, once it has written what is complete.
    pub(crate) fn drop_sink(&self, sink: &Drop, connectors: &Connectors) -> Result<()> {
        let lock = self.lock();
        let (name, outputs) = (&sink.name, &connectors.outputs);
        let entries = self.catalog.entries();
        let Some(definition) = entries.systems.sinks.get(name) else {
            return if_missing(sink.if_exists, "sink", name);
        };
        let recorded = Record::name_of_sink(name);
        let running = outputs.take_sink(name);
        let has_started = running.is_some()
            || outputs.forget_missing(&recorded)
            || outputs.has_ended(&definition.relation);
        if !has_started {
            let message = format!("the sink \"{name}\" is being created");
            return Err(Error::sql(message).with_sqlstate(SqlState::NOT_IN_STATE));
        }
        let record = Record::of_systems(format!("DROP SINK {}", name::spelled(name)));
        self.sequencer.record_drop(&record, [&*recorded])?;
        self.forget_sink(name);
        if let Some(running) = &running {
            self.cut(running.subscription);
        }
        drop(lock);
        // It writes what is complete, which waits for the disk.
        let durable = self.sequencer.sync(self.sequencer.last());
        durable.and(running.map_or(Ok(()), Running::end))?;
        self.sequencer.durable().sync_all()
    }

    /// The sinks of a relation are gone with it.
    pub(super) fn forget_sinks(&self, relation: &str, connectors: &Connectors) {
        for sink in self.catalog.entries().systems.sinks_of(relation) {
            let recorded = Record::name_of_sink(&sink);
            connectors.outputs.forget_missing(&recorded);
            self.sequencer.forget([&*recorded]);
            self.forget_sink(&sink);
        }
    }
}

fn if_there(may_be: bool, kind: &str, name: &str) -> Result<()> {
    match may_be {
        true => Ok(()),
        false => Err(Error::sql(format!("there is already a {kind} \"{name}\""))
            .with_sqlstate(SqlState::DUPLICATE_OBJECT)),
    }
}

fn if_missing(may_be: bool, kind: &str, name: &str) -> Result<()> {
    match may_be {
        true => Ok(()),
        false => {
            Err(Error::sql(format!("there is no {kind} \"{name}\""))
                .with_sqlstate(SqlState::NO_OBJECT))
        }
    }
}

fn check_unused(kind: &str, name: &str, users: &[String]) -> Result<()> {
    if users.is_empty() {
        return Ok(());
    }
    let users = users.iter().map(|user| format!("\"{user}\"")).collect::<Vec<_>>().join(", ");
    let message = format!("the {kind} \"{name}\" is used by {users}; drop what uses it first");
    Err(Error::sql(message).with_sqlstate(SqlState::DEPENDED_ON))
}
