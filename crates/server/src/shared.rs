//! What all connections of a server share.

use std::sync::Arc;
use std::time::Duration;

use alluvium::{
    Engine, FileAccess, MetricFamily, Policy, RelationInfo, Roles, Session, SubscribeOptions,
    Subscription,
};

use crate::guesses::Guesses;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::password::Decoy;
use crate::pg::Channels;
use crate::pool::Pool;
use crate::registry::Registry;
use crate::tls::Tls;
use crate::traffic::{Families, Protocol, Traffic, Traffics};

/// What all connections of a server share.
pub(crate) struct Shared {
    engine: Engine,
    file_access: FileAccess,
    pub(crate) pool: Arc<Pool>,
    pub(crate) registry: Arc<Registry>,
    /// The relations that clients listen to.
    pub(crate) channels: Channels,
    /// Logins that have failed.
    pub(crate) guesses: Guesses,
    /// What clients have done.
    traffics: Traffics,
    /// What passwords of unknown roles are checked against.
    pub(crate) decoy: Decoy,
    /// `None` if connections cannot be encrypted.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Whether other machines may connect in the clear, and without roles.
    pub(crate) is_insecure: bool,
}

impl Shared {
    pub(crate) fn new(
        engine: Engine,
        file_access: FileAccess,
        limits: Limits,
        tls: Option<Arc<Tls>>,
        is_insecure: bool,
    ) -> Result<Self, getrandom::Error> {
        Ok(Self {
            engine,
            file_access,
            pool: Arc::new(Pool::new(limits.statements, limits.waiting)),
            guesses: Guesses::new(limits.login_delay),
            decoy: Decoy::new()?,
            registry: Arc::new(Registry::new(limits)),
            channels: Channels::default(),
            traffics: Traffics::default(),
            tls,
            is_insecure,
        })
    }

    /// The roles that there are now.
    pub(crate) fn roles(&self) -> Roles {
        self.engine.roles()
    }

    /// A session for a client.
    ///
    /// # Errors
    /// If its role is gone.
    pub(crate) fn session(&self, identity: &Identity) -> alluvium::Result<Session> {
        let limits = self.registry.limits();
        let mut session = self.engine.session();
        session.set_file_access(self.file_access.clone());
        session.set_aborts_on_error(true);
        // A client that does not read its changes is cut off, and holds up nobody.
        session.set_subscribe_options(
            SubscribeOptions::new()
                .policy(Policy::Disconnect)
                .epochs(limits.subscription_changes)
                .bytes(limits.subscription_bytes),
        );
        for (name, time) in [
            ("statement_timeout", limits.statement_time),
            ("idle_in_transaction_session_timeout", limits.idle_in_transaction),
            ("idle_session_timeout", limits.idle),
        ] {
            if time != Duration::ZERO {
                session.set(name, &format!("{}ms", time.as_millis()))?;
            }
        }
        identity.enter(&mut session)?;
        Ok(session)
    }

    /// The epoch of the transaction that was committed with a key, if there was one.
    pub(crate) fn committed(&self, key: &str) -> alluvium::Result<Option<u64>> {
        self.engine.committed(key)
    }

    /// Subscribes to a relation, whoever asks for it.
    pub(crate) fn subscribe(
        &self,
        relation: &str,
        options: SubscribeOptions,
    ) -> alluvium::Result<Subscription> {
        self.engine.subscribe_with(relation, options)
    }

    /// What is known of a relation.
    pub(crate) fn relation(&self, name: &str) -> alluvium::Result<RelationInfo> {
        self.engine.relation(name)
    }

    /// What clients of a protocol have done.
    pub(crate) fn traffic(&self, protocol: Protocol) -> &Arc<Traffic> {
        self.traffics.of(protocol)
    }

    /// The metrics of the engine.
    pub(crate) fn metrics(&self) -> alluvium::Result<Vec<MetricFamily>> {
        self.engine.metrics()
    }

    /// The metrics of the server.
    pub(crate) fn server_metrics(&self) -> Families {
        Families {
            traffics: self.traffics.clone(),
            is_usable: self.is_usable(),
            clients: self.registry.count(),
            most_clients: self.registry.limits().connections,
            waiting: self.pool.waiting(),
        }
    }

    /// Whether statements can run; does not wait.
    pub(crate) fn is_usable(&self) -> bool {
        self.engine.error_updates().is_ok()
    }
}
