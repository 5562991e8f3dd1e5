//! The clients that are connected.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::cancel::Cancel;
use crate::guesses::network;
use crate::identity::Identity;
use crate::limits::Limits;

/// The clients that are connected, and those that have not logged in yet.
pub(crate) struct Registry {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the last client.
    last: i32,
    /// By number.
    clients: HashMap<i32, Entry>,
    /// How many have not logged in, in all and by address; those of this machine's sockets have none.
    strangers: usize,
    strangers_by_address: HashMap<Option<IpAddr>, usize>,
    /// How many clients each role has.
    by_role: HashMap<Arc<str>, usize>,
}

struct Entry {
    secret: Vec<u8>,
    cancel: Arc<Cancel>,
}

/// Why a client is not let in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// There are as many clients as there may be.
    #[error(
        "there are {0} connections, as many as there may be: close some, or raise the limit \"connections\""
    )]
    Clients(usize),
    /// The connections that are left are kept.
    #[error(
        "the last {0} connections are kept for superusers, by the limit \"reserved\": close some, or raise the limit \"connections\""
    )]
    Reserved(usize),
    /// The role has as many clients as it may have.
    #[error(
        "too many connections for role \"{role}\", which may have {limit}: close some, or ALTER ROLE … CONNECTION LIMIT"
    )]
    OfRole {
        /// The role.
        role: Arc<str>,
        /// How many it may have.
        limit: u32,
    },
    /// Too many have not logged in yet.
    #[error("{0} connections have not logged in yet, as many as there may be: try again")]
    Strangers(usize),
    /// The system has no random numbers.
    #[error("the system has no random numbers for the connection's key: {0}")]
    Random(String),
}

/// A connection that has not logged in.
pub(crate) struct Stranger {
    registry: Arc<Registry>,
    address: Option<IpAddr>,
}

/// A client that has logged in.
pub(crate) struct Registered {
    registry: Arc<Registry>,
    /// Its number, by which it is known to others.
    pub(crate) number: i32,
    /// What others have to know to cancel its statements.
    pub(crate) secret: Vec<u8>,
    pub(crate) identity: Identity,
}

impl Registry {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// The limits of clients.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A connection has come.
    pub(crate) fn connect(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Stranger, Full> {
        let state = &mut *self.state.lock();
        let of = address.map(network);
        let of_address = state.strangers_by_address.entry(of).or_default();
        // Others cannot keep out who comes over a socket of this machine.
        let (count, most) = match of {
            Some(_) => (state.strangers, self.limits.strangers_of_address),
            None => (*of_address, self.limits.strangers),
        };
        if count >= self.limits.strangers || *of_address >= most {
            if *of_address == 0 {
                state.strangers_by_address.remove(&of);
            }
            return Err(Full::Strangers(count));
        }
        *of_address += 1;
        state.strangers += usize::from(of.is_some());
        Ok(Stranger { registry: self.clone(), address })
    }

    /// Ends the statement of a client, if the secret is the client's.
    pub(crate) fn cancel(&self, number: i32, secret: &[u8]) {
        let state = self.state.lock();
        let known = state.clients.get(&number);
        if let Some(client) = known.filter(|client| client.secret.ct_eq(secret).into()) {
            client.cancel.request();
        }
    }

    /// How many clients are logged in.
    pub(crate) fn count(&self) -> usize {
        self.state.lock().clients.len()
    }

    /// Ends all statements that run.
    pub(crate) fn cancel_all(&self) {
        let cancels: Vec<_> =
            self.state.lock().clients.values().map(|client| client.cancel.clone()).collect();
        cancels.iter().for_each(|cancel| cancel.request());
    }
}

impl State {
    /// Fails unless one more client may be of this identity. A role's own limit is none for superusers, as in Postgres.
    fn check(&self, identity: &Identity, limits: &Limits) -> Result<(), Full> {
        let count = self.clients.len();
        if count >= limits.connections {
            return Err(Full::Clients(count));
        }
        if identity.is_superuser {
            return Ok(());
        }
        if count + limits.reserved >= limits.connections {
            return Err(Full::Reserved(limits.reserved));
        }
        let Some((role, limit)) = identity.role().zip(identity.connection_limit) else {
            return Ok(());
        };
        let of_role = self.by_role.get(role).copied().unwrap_or_default();
        if of_role >= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Err(Full::OfRole { role: role.clone(), limit });
        }
        Ok(())
    }
}

impl Stranger {
    /// Its address; the sockets of this machine have none.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// It has logged in. Its secret has so many bytes.
    pub(crate) fn admit(
        self,
        cancel: Arc<Cancel>,
        secret_bytes: usize,
        identity: Identity,
    ) -> Result<Registered, Full> {
        let registry = self.registry.clone();
        // It is no stranger any more.
        drop(self);
        let mut secret = vec![0; secret_bytes];
        getrandom::fill(&mut secret).map_err(|error| Full::Random(error.to_string()))?;
        let state = &mut *registry.state.lock();
        state.check(&identity, &registry.limits)?;
        let mut number = state.last;
        loop {
            number = number.checked_add(1).unwrap_or(1);
            if !state.clients.contains_key(&number) {
                break;
            }
        }
        state.last = number;
        state.clients.insert(number, Entry { secret: secret.clone(), cancel });
        if let Some(role) = identity.role() {
            *state.by_role.entry(role.clone()).or_default() += 1;
        }
        Ok(Registered { registry: registry.clone(), number, secret, identity })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let state = &mut *self.registry.state.lock();
        let of = self.address.map(network);
        state.strangers -= usize::from(of.is_some());
        if let Some(count) = state.strangers_by_address.get_mut(&of) {
            *count -= 1;
            if *count == 0 {
                state.strangers_by_address.remove(&of);
            }
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let state = &mut *self.registry.state.lock();
        state.clients.remove(&self.number);
        let Some(role) = self.identity.role() else { return };
        if let Some(count) = state.by_role.get_mut(role) {
            *count -= 1;
            if *count == 0 {
                state.by_role.remove(role);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_and_clients_are_limited() {
        let limits = Limits { connections: 1, strangers: 2, ..Limits::default() };
        let registry = Arc::new(Registry::new(limits));
        let first = registry.connect(None).ok();
        let second = registry.connect(None).ok();
        assert_eq!(registry.connect(None).err(), Some(Full::Strangers(2)));
        let first = first.map(|first| first.admit(Arc::default(), 4, Identity::everybody()));
        let Some(Ok(first)) = first else { panic!("it is the first") };
        assert_eq!(first.secret.len(), 4);
        let third = registry.connect(None).ok();
        assert!(third.is_some());
        let refused =
            second.map(|second| second.admit(Arc::default(), 4, Identity::everybody()).err());
        assert_eq!(refused, Some(Some(Full::Clients(1))));
        drop(first);
        assert_eq!(registry.count(), 0);
        assert!(
            third
                .is_some_and(|third| third.admit(Arc::default(), 4, Identity::everybody()).is_ok())
        );
    }

    fn identity(name: &str, is_superuser: bool, connection_limit: Option<u32>) -> Identity {
        Identity::named(name, is_superuser, connection_limit)
    }

    #[test]
    fn some_connections_are_kept_for_superusers_and_roles_have_limits() {
        let limits = Limits { connections: 4, reserved: 1, ..Limits::default() };
        let registry = Arc::new(Registry::new(limits));
        let admit = |identity: &Identity| {
            let stranger = registry.connect(None)?;
            stranger.admit(Arc::default(), 4, identity.clone())
        };
        let (root, ada) = (identity("root", true, Some(0)), identity("ada", false, Some(2)));
        let first = admit(&ada);
        let second = admit(&ada);
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(admit(&ada).err(), Some(Full::OfRole { role: "ada".into(), limit: 2 }));
        drop(first);
        let third = admit(&ada);
        assert!(third.is_ok());
        let root_too = admit(&root);
        assert!(root_too.is_ok());
        assert_eq!(admit(&identity("bob", false, None)).err(), Some(Full::Reserved(1)));
        let last = admit(&root);
        assert!(last.is_ok());
        assert_eq!(admit(&root).err(), Some(Full::Clients(4)));
        drop((second, third, root_too, last));
        assert!(registry.state.lock().by_role.is_empty());
    }
}
