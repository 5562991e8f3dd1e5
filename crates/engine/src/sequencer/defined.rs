//! The definitions of a transaction, and their place among the epochs.

use alluvium_trace::Epoch;

use super::state::State;
use super::{Comments, Committed, Sequencer};
use crate::catalog::{Catalog, Entries};
use crate::durable::record::{Record, Recorded};
use crate::error::Result;
use crate::roles::Roles;
use crate::worker::DataflowId;

/// A change of the existing relations, from an epoch on.
type Exchanged<'a> = Box<dyn FnOnce(&mut Entries, Epoch) + 'a>;

/// Definitions that take effect together.
pub(crate) struct Defined<'a> {
    /// The statements, in an order in which they can be executed; none without a journal.
    pub(crate) statements: Vec<Record>,
    /// The names of dropped relations, indexes and schemas.
    pub(crate) forgotten: Vec<String>,
    /// The definitions in force from now on; none without a journal.
    pub(crate) recorded: Vec<Recorded>,
    /// The relations whose places others take, by their names before and then.
    pub(crate) moved: Vec<(String, String)>,
    /// The comments from now on.
    pub(crate) comments: Comments,
    /// The roles from now on.
    pub(crate) roles: Roles,
    /// The dataflows of these that were candidates.
    pub(crate) candidates: Vec<DataflowId>,
    pub(crate) catalog: &'a Catalog,
    /// Changes the existing relations to those from an epoch on.
    pub(crate) change: Exchanged<'a>,
}

impl Defined<'_> {
    /// The one record of all, with that of an epoch.
    pub(super) fn record(&self, epoch: Option<&Record>) -> Result<Record> {
        match (&self.statements[..], epoch) {
            ([statement], None) => Ok(statement.clone()),
            (statements, epoch) => Record::transaction(statements, epoch),
        }
    }

    /// Takes effect with an epoch of this number, which `make` makes.
    pub(super) fn take_place<R>(
        self,
        (sequencer, state): (&Sequencer, &mut State),
        epoch: Epoch,
        make: impl FnOnce(&mut State) -> R,
    ) -> R {
        let Self {
            forgotten, recorded, moved, comments, roles, candidates, catalog, change, ..
        } = self;
        let failed = moved
            .iter()
            .filter_map(|(before, name)| Some((name, state.failed.reason(before)?.to_owned())));
        let failed: Vec<_> = failed.collect();
        forgotten.iter().for_each(|name| state.forget(name));
        recorded.iter().for_each(|recorded| state.define(recorded));
        failed.iter().for_each(|(name, reason)| state.failed.fail(name, reason));
        state.comments = comments;
        state.roles.set(roles);
        candidates.into_iter().for_each(|id| state.promote(id));
        // From then on statements read what is defined here.
        sequencer.report(epoch);
        catalog.exchange(|| make(state), |entries| change(entries, epoch))
    }
}

impl Sequencer {
    /// Has definitions take effect after the last epoch. The caller holds the write lock and the definitions' lock.
    pub(crate) fn define(&self, defined: Defined<'_>) -> Result<Committed> {
        self.poison.check()?;
        let mut state = self.state.lock();
        let record = self.durable.append(&defined.record(None)?)?;
        let epoch = self.last();
        defined.take_place((self, &mut state), epoch, |_| ());
        Ok(Committed { epoch, record })
    }
}
