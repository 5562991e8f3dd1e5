//! Arranging a collection in a typed spine.

use differential_dataflow::hashable::Hashable;
use differential_dataflow::operators::arrange::arrangement::arrange_core;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::{ExchangeData, VecCollection};
use timely::dataflow::channels::pact::Exchange;

use super::batcher::TypedBatcher;
use super::builder::TypedBuilder;
use super::codec::Codec;
use super::spine::TypedSpine;
use super::updates::TypedChunker;
use super::weight::Weight;
use crate::time::PageTime;

/// A collection that is arranged in a [`TypedSpine`].
pub type TypedArrangement<'scope, K, V, T, R = isize> =
    Arranged<'scope, TraceAgent<TypedSpine<K, V, T, R>>>;

/// `arrange_by_key`, into a [`TypedSpine`].
pub trait ArrangeTyped<'scope, K: Codec, V: Codec, T: PageTime, R: Weight>: Sized {
    /// Arranges pairs by their first parts.
    fn arrange_typed(self) -> TypedArrangement<'scope, K, V, T, R> {
        self.arrange_typed_named("ArrangeTyped")
    }

    /// Arranges pairs by their first parts, with an operator of this name.
    fn arrange_typed_named(self, name: &str) -> TypedArrangement<'scope, K, V, T, R>;
}

impl<'scope, K, V, T, R> ArrangeTyped<'scope, K, V, T, R> for VecCollection<'scope, T, (K, V), R>
where
    K: Codec + ExchangeData + Hashable,
    V: Codec + ExchangeData,
    T: PageTime,
    R: Weight + ExchangeData,
{
    fn arrange_typed_named(self, name: &str) -> TypedArrangement<'scope, K, V, T, R> {
        let by_key = Exchange::new(|((key, _), _, _): &((K, V), T, R)| key.hashed().into());
        arrange_core::<
            _,
            _,
            TypedChunker<K, V, T, R>,
            TypedBatcher<K, V, T, R>,
            TypedBuilder<K, V, T, R>,
            TypedSpine<K, V, T, R>,
        >(self.inner, by_key, name)
    }
}
