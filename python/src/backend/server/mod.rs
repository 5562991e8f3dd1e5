//! A server over connections of Postgres's protocol.
//!
//! A [`Server`] has a [`pool`] of connections and the runtime that moves their bytes. A [`session`] has a connection of its own, which [`rows`] of its
//! statements share; a [`transaction`] and a [`view`] take one of the pool for as long as they need it, as does the [`catalog`]; [`changes`]
//! come over another one each. All [`wait`] for calls of the client. What a server says of a failure is in [`refused`].

mod catalog;
mod changes;
mod pool;
mod refused;
mod rows;
mod session;
mod transaction;
mod view;
mod wait;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use alluvium::Policy;
use alluvium::name::written;
use alluvium_client::{Address, Client, SubscribeOptions};

use self::changes::RemoteChanges;
pub(crate) use self::pool::Server;
use self::session::RemoteSession;
use self::transaction::RemoteTransaction;
use self::view::RemoteView;
use super::{Backend, Changes, Session, Subscribing, TableColumns, Transaction, View};
use crate::call;
use crate::failure::{Failure, Fallible};
use crate::info::{Progress, RelationInfo, State};

/// How often a server is asked how far it has come.
const LOOK: Duration = Duration::from_millis(20);

/// The address of a server, with what calls say besides.
pub(crate) fn address(
    url: &str,
    user: Option<&str>,
    password: Option<&str>,
) -> Result<Address, Failure> {
    let address: Address = url.parse().map_err(refused::failure)?;
    let is_named = url.contains("application_name=");
    let address = if is_named { address } else { address.application_name("alluvium python") };
    let address = user.into_iter().fold(address, Address::user);
    Ok(password.into_iter().fold(address, Address::password))
}

impl Backend for Server {
    fn session(&self) -> Fallible<Box<dyn Session>> {
        Ok(Box::new(RemoteSession::begin(self.clone())?))
    }

    fn begin(&self, key: Option<&str>) -> Fallible<Box<dyn Transaction>> {
        match key {
            None => Ok(Box::new(RemoteTransaction::begin(self)?)),
            Some(_) => Err(keys()),
        }
    }

    fn committed(&self, _: &str) -> Fallible<Option<u64>> {
        Err(keys())
    }

    fn subscribe(&self, relation: &str, options: Subscribing) -> Fallible<Box<dyn Changes>> {
        let Subscribing { after, policy, epochs } = options;
        if policy == Policy::Resync || epochs.is_some() {
            return Err(Failure::not_supported(
                "a server has limits of its own for subscriptions that fall behind, and ends them then with BehindError: leave out policy and epochs",
            ));
        }
        // It tells how far it has come.
        let options = SubscribeOptions::new().progress(true);
        let options = after.into_iter().fold(options, SubscribeOptions::after);
        Ok(Box::new(RemoteChanges::begin(self, relation, options)?))
    }

    fn view(&self, name: &str) -> Fallible<Arc<dyn View>> {
        Ok(Arc::new(RemoteView::find(self, name)?))
    }

    fn table(&self, name: &str) -> Fallible<TableColumns> {
        catalog::table(self, name)
    }

    fn relations(&self) -> Fallible<Vec<RelationInfo>> {
        catalog::relations(self)
    }

    fn wait(&self, epoch: u64) -> Fallible<()> {
        while self.progress()?.committed < epoch {
            if call::is_asked_to_end() {
                return Err(Failure::interrupted());
            }
            thread::sleep(LOOK);
        }
        let views = catalog::views(self)?;
        // A query waits until all that was committed before is in what it reads.
        self.with(async |client| {
            for view in &views {
                let sql = format!("SELECT 1 FROM {} LIMIT 1", written(view));
                client.query(&sql, &[]).await?.collect().await?;
            }
            Ok(())
        })
    }

    fn wait_for_sources(&self) -> Fallible<()> {
        Err(elsewhere("wait_for_sources()", "a server reads its sources as they come"))
    }

    fn finish(&self) -> Fallible<()> {
        Err(elsewhere("finish()", "a server writes its outputs as it ends"))
    }

    fn checkpoint(&self) -> Fallible<()> {
        self.with(async |client| client.execute_batch("CHECKPOINT").await)
    }

    fn progress(&self) -> Fallible<Progress> {
        // A transaction that changes nothing has the epoch that it reads as of.
        let committed = self.with(async |client: &Client| {
            client.execute_batch("BEGIN; COMMIT").await?;
            pool::committed(client).await
        })?;
        Ok(Progress { committed: committed.unwrap_or(0), complete: None })
    }

    fn state(&self) -> Fallible<State> {
        Err(elsewhere("state()", "SELECT * FROM alluvium.arrangements lists the state of a server"))
    }
}

/// The failure of a call with the key of a transaction.
fn keys() -> Failure {
    Failure::not_supported(
        "a transaction over a connection has no key: over HTTP, rows that are sent with an Idempotency-Key are committed once",
    )
}

/// The failure of a call that only the process with the engine can make.
fn elsewhere(call: &str, instead: &str) -> Failure {
    Failure::not_supported(format!("{call} is for the process that has the engine: {instead}"))
}
