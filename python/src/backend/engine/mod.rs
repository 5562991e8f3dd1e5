//! An engine of this process.

mod changes;
mod session;
mod transaction;
mod view;

use std::sync::Arc;

use alluvium::{Engine, SubscribeOptions};

use super::{Backend, Changes, Session, Subscribing, TableColumns, Transaction, View};
use crate::failure::Fallible;
use crate::frames::Frames;
use crate::info::{Progress, RelationInfo, State};

/// An engine, and the frames that its statements read.
pub(crate) struct Embedded {
    engine: Engine,
    frames: Arc<Frames>,
}

impl Embedded {
    /// An engine that was opened by this process.
    pub(crate) fn new(engine: Engine, frames: Arc<Frames>) -> Self {
        Self { engine, frames }
    }
}

impl Backend for Embedded {
    fn session(&self) -> Fallible<Box<dyn Session>> {
        let mut session = self.engine.session();
        let frames = self.frames.clone();
        session.set_replacement_scan(move |name| frames.find(name));
        session.set_typed_parameters(true);
        Ok(Box::new(session))
    }

    fn begin(&self, key: Option<&str>) -> Fallible<Box<dyn Transaction>> {
        let mut begun = self.engine.begin()?;
        if let Some(key) = key {
            begun.set_key(key);
        }
        Ok(Box::new(begun))
    }

    fn committed(&self, key: &str) -> Fallible<Option<u64>> {
        Ok(self.engine.committed(key)?)
    }

    fn subscribe(&self, relation: &str, options: Subscribing) -> Fallible<Box<dyn Changes>> {
        let Subscribing { after, policy, epochs } = options;
        let mut options = SubscribeOptions::new().policy(policy);
        if let Some(after) = after {
            options = options.after(after);
        }
        if let Some(epochs) = epochs {
            options = options.epochs(epochs);
        }
        Ok(Box::new(self.engine.subscribe_with(relation, options)?))
    }

    fn view(&self, name: &str) -> Fallible<Arc<dyn View>> {
        Ok(Arc::new(self.engine.view(name)?))
    }

    fn table(&self, name: &str) -> Fallible<TableColumns> {
        let info = self.engine.relation(name)?;
        Ok(TableColumns { name: info.name, schema: info.schema, primary_key: info.primary_key })
    }

    fn relations(&self) -> Fallible<Vec<RelationInfo>> {
        Ok(self.engine.relations()?.into_iter().map(RelationInfo::from).collect())
    }

    fn wait(&self, epoch: u64) -> Fallible<()> {
        Ok(self.engine.wait(epoch)?)
    }

    fn wait_for_sources(&self) -> Fallible<()> {
        self.engine.start()?;
        Ok(self.engine.wait_for_sources()?)
    }

    fn finish(&self) -> Fallible<()> {
        Ok(self.engine.finish()?)
    }

    fn checkpoint(&self) -> Fallible<()> {
        Ok(self.engine.checkpoint()?)
    }

    fn progress(&self) -> Fallible<Progress> {
        Ok(self.engine.progress().into())
    }

    fn state(&self) -> Fallible<State> {
        Ok(self.engine.state().into())
    }
}
