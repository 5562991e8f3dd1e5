//! Connectors: the formats an engine knows, and the inputs and outputs made of them.
//!
//! [`parse`] turns a connector as SQL writes it into an input or an output, [`connected`] adds what its connection says, [`source`](crate::source) reads inputs, and
//! [`sink`](crate::sink) writes outputs.

mod connected;
mod parse;

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_trace::memory::MemoryBudget;

pub(crate) use connected::Reached;
pub(crate) use parse::{Asked, FormatOption, checked};

use crate::error::Result;
use crate::poison::Poison;
use crate::sink::Outputs;
use crate::source::{Inputs, Refusals, Registered, Registry};

/// The part of an engine that ties tables to sources and views to sinks.
pub(crate) struct Connectors {
    pub(crate) formats: Arc<Registry>,
    pub(crate) inputs: Arc<Inputs>,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) refusals: Arc<Refusals>,
}

impl Connectors {
    pub(crate) fn new(registered: Registered, poison: Arc<Poison>, budget: &MemoryBudget) -> Self {
        Self {
            formats: Arc::new(Registry::new(registered, poison.clone())),
            inputs: Inputs::new(poison),
            outputs: Arc::default(),
            refusals: Arc::new(Refusals::new(budget)),
        }
    }

    /// The relations whose inputs or outputs use a secret.
    pub(crate) fn users_of_secret(&self, name: &str) -> BTreeSet<String> {
        let mut users = self.inputs.users_of_secret(name);
        users.extend(self.outputs.users_of_secret(name));
        users
    }

    /// Ends the inputs and outputs of a relation that is dropped. Waits until its outputs have written what was
    /// delivered to them, and fails if one could not.
    pub(crate) fn forget(&self, relation: &str) -> Result<()> {
        self.inputs.remove(relation);
        self.refusals.forget(relation);
        self.outputs.remove(relation)
    }
}
