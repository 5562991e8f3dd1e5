//! What all connections of a server share.

use std::sync::Arc;

use alluvium::{Engine, FileAccess, Policy, Session, SubscribeOptions};

use crate::limits::Limits;
use crate::pool::Pool;
use crate::registry::Registry;

/// What all connections of a server share.
pub(crate) struct Shared {
    engine: Engine,
    file_access: FileAccess,
    pub(crate) pool: Arc<Pool>,
    pub(crate) registry: Arc<Registry>,
}

impl Shared {
    pub(crate) fn new(engine: Engine, file_access: FileAccess, limits: Limits) -> Self {
        let pool = Arc::new(Pool::new(limits.statements));
        Self { engine, file_access, pool, registry: Arc::new(Registry::new(limits)) }
    }

    /// A session for a client.
    pub(crate) fn session(&self) -> Session {
        let mut session = self.engine.session();
        session.set_file_access(self.file_access.clone());
        session.set_aborts_on_error(true);
        // A client that does not read its changes is cut off, and holds up nobody.
        session.set_subscribe_options(SubscribeOptions::new().policy(Policy::Disconnect));
        session
    }
}
