//! Secrets, connections to other systems, and sinks.

use alluvium_sql::statement::{ConnectionDefinition, Drop, SecretDefinition, SinkDefinition};

use super::done;
use crate::authorizer::{Action, Object};
use crate::connectors::Reached;
use crate::error::{Error, Result};
use crate::file_access::Purpose;
use crate::instance::Instance;
use crate::session::{Outcome, Session};

impl Session {
    pub(super) fn create_secret(&self, secret: &SecretDefinition) -> Result<Outcome> {
        self.outside("CREATE SECRET")?;
        self.check_reaches_others().map_err(|error| error.at(secret.position))?;
        done(self.instance().definitions.create_secret(secret), secret.position)
    }

    pub(super) fn drop_secret(&self, secret: &Drop) -> Result<Outcome> {
        self.outside("DROP SECRET")?;
        let Instance { definitions, connectors, .. } = self.instance();
        done(definitions.drop_secret(secret, connectors), secret.position)
    }

    pub(super) fn create_connection(&self, connection: &ConnectionDefinition) -> Result<Outcome> {
        self.outside("CREATE CONNECTION")?;
        self.check_reaches_others().map_err(|error| error.at(connection.position))?;
        self.check_reached(connection)?;
        let Instance { definitions, connectors, .. } = self.instance();
        done(definitions.create_connection(connection, connectors), connection.position)
    }

    pub(super) fn drop_connection(&self, connection: &Drop) -> Result<Outcome> {
        self.outside("DROP CONNECTION")?;
        let Instance { definitions, writer, connectors, .. } = self.instance();
        done(definitions.drop_connection(connection, writer, connectors), connection.position)
    }

    pub(super) fn create_sink(&self, sink: &SinkDefinition) -> Result<Outcome> {
        self.outside("CREATE SINK")?;
        self.check_connectors(std::slice::from_ref(&sink.connector), Purpose::Write)?;
        let base = self.instance().recorded_path(&self.base)?;
        done(self.engine.instance.create_sink(sink, &base), sink.position)
    }

    pub(super) fn drop_sink(&self, sink: &Drop) -> Result<Outcome> {
        self.outside("DROP SINK")?;
        let Instance { definitions, connectors, .. } = self.instance();
        done(definitions.drop_sink(sink, connectors), sink.position)
    }

    /// Fails unless a role that creates a connection may use its secrets and files.
    fn check_reached(&self, connection: &ConnectionDefinition) -> Result<()> {
        let Some(rights) = self.rights.as_ref().filter(|_| !self.is_redoing) else {
            return Ok(());
        };
        let Reached { secrets, files } =
            self.instance().connectors.formats.reached_by(connection)?;
        let known = self.instance().definitions.catalog.entries();
        for (secret, position) in secrets {
            // One that was not created is for superusers.
            let allowed = match known.systems.secrets.contains_key(&secret) {
                true => rights.check(Action::Use, Object::Secret(&secret), &[]),
                false => Err(Error::denied(format!(
                    "only a superuser may name the stored secret \"{secret}\""
                ))),
            };
            allowed.map_err(|error| error.at(position))?;
        }
        for (file, position) in files {
            self.file(&file, Purpose::Read).map_err(|error| error.at(position))?;
        }
        Ok(())
    }
}
