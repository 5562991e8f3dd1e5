//! Reductions whose output is in a typed spine.

use differential_dataflow::hashable::Hashable;
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::{BatchCursor, Cursor, Navigable, TraceReader};
use differential_dataflow::{Data, ExchangeData, VecCollection};

use super::arrange::{ArrangeTyped, TypedArrangement};
use super::builder::TypedBuilder;
use super::codec::Codec;
use super::encoded::{Encoded, EncodedList};
use super::spine::TypedSpine;
use super::updates::TypedUpdates;
use super::weight::Weight;
use crate::time::PageTime;

/// `reduce_abelian` of a typed arrangement, into a [`TypedSpine`].
pub trait ReduceTyped<'scope, K: Codec, V: Codec, T: PageTime, R: Weight>: Sized {
    /// Applies `logic` to each key and its values, in ascending order and with their weights. It adds the results.
    fn reduce_typed<V2, R2, L>(
        self,
        name: &str,
        logic: L,
    ) -> TypedArrangement<'scope, K, V2, T, R2>
    where
        V2: Codec + Data,
        R2: Weight,
        L: FnMut(Encoded<'_, K>, &[(Encoded<'_, V>, R)], &mut Vec<(V2, R2)>) + 'static;
}

impl<'scope, K, V, R, Tr> ReduceTyped<'scope, K, V, Tr::Time, R> for Arranged<'scope, Tr>
where
    K: Codec,
    V: Codec,
    R: Weight,
    Tr: TraceReader<Batch: Navigable, Time: PageTime> + 'static,
    BatchCursor<Tr>: Cursor<Time = Tr::Time, Diff = R, KeyContainer = EncodedList<K>>,
    for<'a> BatchCursor<Tr>: Cursor<Key<'a> = Encoded<'a, K>, Val<'a> = Encoded<'a, V>>,
{
    fn reduce_typed<V2, R2, L>(
        self,
        name: &str,
        logic: L,
    ) -> TypedArrangement<'scope, K, V2, Tr::Time, R2>
    where
        V2: Codec + Data,
        R2: Weight,
        L: FnMut(Encoded<'_, K>, &[(Encoded<'_, V>, R)], &mut Vec<(V2, R2)>) + 'static,
    {
        self.reduce_abelian::<
            L,
            TypedBuilder<K, V2, Tr::Time, R2>,
            TypedSpine<K, V2, Tr::Time, R2>,
            EncodedList<K>,
            _,
        >(name, logic, TypedUpdates::fill)
    }
}

/// `distinct`, with both of its traces in [typed spines](TypedSpine).
pub trait DistinctTyped<'scope, K, T: PageTime>: Sized {
    /// Each element that has a weight other than zero, once.
    fn distinct_typed(self) -> VecCollection<'scope, T, K, isize>;
}

impl<'scope, K, T, R> DistinctTyped<'scope, K, T> for VecCollection<'scope, T, K, R>
where
    K: Codec + ExchangeData + Hashable,
    T: PageTime,
    R: Weight + ExchangeData,
{
    fn distinct_typed(self) -> VecCollection<'scope, T, K, isize> {
        self.map(|key| (key, ()))
            .arrange_typed_named("Arrange: DistinctTyped")
            .reduce_typed("DistinctTyped", |_, _, output| output.push(((), 1_isize)))
            .as_collection(|key, _| key.decode())
    }
}
