//! Roles, and their rights.

use super::{Persisted, SavePoint, Saving};
use crate::durable::checkpoint::Checkpoint;
use crate::durable::record::Record;
use crate::error::Result;
use crate::roles::LiveRoles;

impl Persisted for LiveRoles {
    /// As statements after those that define the objects of rights.
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let roles = self.get();
        Box::new(move |checkpoint: &mut Checkpoint| {
            let statements = roles.statements().into_iter();
            let statements = statements.map(|(name, text)| (name, Record::role(text)));
            checkpoint.definitions.extend(statements);
        })
    }

    /// They are executed again.
    fn restore(&mut self, _: &mut Checkpoint) -> Result<()> {
        Ok(())
    }
}
