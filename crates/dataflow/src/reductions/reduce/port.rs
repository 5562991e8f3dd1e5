//! Emitting the messages of a reduction.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursor, Epoch};
use timely::Container;
use timely::container::NoopBuilder;
use timely::dataflow::Stream;
use timely::dataflow::operators::generic::{OutputBuilder, builder_rc::OperatorBuilder};
use timely::dataflow::operators::{Capability, InputCapability};

use crate::movement::delta::EncodedDelta;
use crate::movement::fuel::{Emission, Emitted, Fuel, Produced};

/// The outputs of an operator.
pub(crate) trait Port<M>: 'static {
    /// Rows have arrived with this capability. Their output can be emitted at its time until it is [released](Self::release).
    fn hold(&mut self, capability: &InputCapability<Epoch>);

    /// Takes a message, with the capability of output 0.
    fn emit(&mut self, capability: &Capability<Epoch>, message: M);

    /// Emits waiting messages, as far as the fuel reaches; returns whether nothing waits any more.
    fn advance(&mut self, fuel: &mut Fuel) -> bool;

    /// Nothing will be emitted before `least` but what waits; nothing at all without it.
    fn release(&mut self, least: Option<Epoch>);
}

/// One output, for the messages as they are.
pub(super) struct Plain<M: Container>(OutputBuilder<Epoch, NoopBuilder<M>>);

impl<M: Container + Clone> Plain<M> {
    /// The output of an operator that has its inputs.
    pub(super) fn open<'scope>(
        builder: &mut OperatorBuilder<'scope, Epoch>,
    ) -> (Self, Stream<'scope, Epoch, M>) {
        let (output, stream) = builder.new_output();
        (Self(OutputBuilder::from(output)), stream)
    }
}

impl<M: Container + Clone> Port<M> for Plain<M> {
    fn hold(&mut self, _capability: &InputCapability<Epoch>) {}

    fn emit(&mut self, capability: &Capability<Epoch>, mut message: M) {
        self.0.activate().session_with_builder(capability).give_container(&mut message);
    }

    fn advance(&mut self, _fuel: &mut Fuel) -> bool {
        true
    }

    fn release(&mut self, _least: Option<Epoch>) {}
}

/// The rows and the errors that batches are decoded to.
pub(super) struct Decoding<F> {
    emission: Emission<Epoch, Cursor<Epoch>, F>,
    /// The earliest capability of the errors.
    held: Option<Capability<Epoch>>,
}

/// The outputs of an operator that has its inputs. `decode` must take all rows of the delta it is given.
pub(super) fn decoding<'scope, F>(
    builder: &mut OperatorBuilder<'scope, Epoch>,
    mut decode: F,
    context: &StateContext,
) -> (impl Port<Vec<Batch<Epoch>>> + use<F>, Emitted<'scope, Epoch>)
where
    F: FnMut(&mut EncodedDelta<Epoch>) -> Produced<Epoch> + 'static,
{
    let mut encoded = EncodedDelta::new(context);
    let advance =
        move |cursor: &mut Cursor<Epoch>| encoded.fill(cursor).then(|| decode(&mut encoded));
    let (emission, streams) = Emission::new(builder, advance);
    (Decoding { emission, held: None }, streams)
}

impl<F> Port<Vec<Batch<Epoch>>> for Decoding<F>
where
    F: FnMut(&mut Cursor<Epoch>) -> Option<Produced<Epoch>> + 'static,
{
    fn hold(&mut self, capability: &InputCapability<Epoch>) {
        if self.held.as_ref().is_none_or(|held| capability.time() < held.time()) {
            self.held = Some(capability.retain(1));
        }
    }

    fn emit(&mut self, capability: &Capability<Epoch>, batches: Vec<Batch<Epoch>>) {
        let held = self.held.as_ref().expect("it is held while rows wait");
        for batch in batches {
            let capabilities = [capability.clone(), held.delayed(capability.time())];
            self.emission.push(capabilities, batch.scan());
        }
    }

    fn advance(&mut self, fuel: &mut Fuel) -> bool {
        self.emission.advance(fuel)
    }

    fn release(&mut self, least: Option<Epoch>) {
        match (&mut self.held, least) {
            (Some(held), Some(least)) if *held.time() < least => held.downgrade(&least),
            (Some(_), Some(_)) => {}
            _ => self.held = None,
        }
    }
}
