//! Two programs over graphs, each on typed spines and on differential-dataflow's own: the tests compare their answers, the
//! benchmark their time and memory.

use alluvium_trace::typed::{Codec, Encoded};
use differential_dataflow::Data;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};
use timely::progress::Timestamp;

/// A vertex.
pub type Node = u32;

/// Writes the programs with these ways to arrange, to reduce, and to read what a cursor shows.
macro_rules! programs {
    ($spine:ident: $arrange:ident, $reduce:ident, $read:ident; $($import:path),*) => {
        pub mod $spine {
            use alluvium_trace::PageTime;
            use differential_dataflow::VecCollection;
            use differential_dataflow::operators::Iterate;
            use super::{$read, Node};
            $(use $import;)*

            /// Each vertex that can be reached from the roots, with its distance.
            pub fn bfs<'scope, T: PageTime>(
                edges: VecCollection<'scope, T, (Node, Node)>,
                roots: VecCollection<'scope, T, Node>,
            ) -> VecCollection<'scope, T, (Node, u32)> {
                let edges = edges.$arrange();
                let starts = roots.map(|root| (root, 0));
                starts.clone().iterate(|scope, reached| {
                    let (edges, starts) = (edges.enter(scope), starts.enter(scope));
                    let further = reached
                        .$arrange()
                        .join_core(edges, |_, distance, to| [($read(to), $read(distance) + 1)]);
                    least(further.concat(starts))
                })
            }

            /// The edges whose ends are in one strongly connected component.
            pub fn scc<'scope, T: PageTime>(
                edges: VecCollection<'scope, T, (Node, Node)>,
            ) -> VecCollection<'scope, T, (Node, Node)> {
                edges.iterate(|_, edges| reversed_within_labels(reversed_within_labels(edges)))
            }

            /// The edges whose ends can be reached from the same least vertex, reversed.
            fn reversed_within_labels<T: PageTime>(
                edges: VecCollection<'_, T, (Node, Node)>,
            ) -> VecCollection<'_, T, (Node, Node)> {
                let ends = edges.clone().map(|(_, to)| (to, to));
                let edges = edges.$arrange();
                let labels = ends.clone().iterate(|scope, labels| {
                    let (edges, ends) = (edges.clone().enter(scope), ends.enter(scope));
                    let passed = labels
                        .$arrange()
                        .join_core(edges, |_, label, to| [($read(to), $read(label))]);
                    least(passed.concat(ends))
                });
                let labels = labels.$arrange();
                edges
                    .join_core(labels.clone(), |from, to, label| {
                        [($read(to), ($read(from), $read(label)))]
                    })
                    .$arrange()
                    .join_core(labels, |to, labelled, other| {
                        let (from, label) = $read(labelled);
                        (label == $read(other)).then(|| ($read(to), from))
                    })
            }

            /// The least value of each vertex.
            fn least<T: PageTime>(
                values: VecCollection<'_, T, (Node, u32)>,
            ) -> VecCollection<'_, T, (Node, u32)> {
                values
                    .$arrange()
                    .$reduce("Least", |_, values, least| least.push(($read(values[0].0), 1_isize)))
                    .as_collection(|node, value| ($read(node), $read(value)))
            }
        }
    };
}

programs!(typed: arrange_typed, reduce_typed, decode;
    alluvium_trace::typed::ArrangeTyped, alluvium_trace::typed::ReduceTyped);
programs!(plain: arrange_by_key, reduce_plain, clone; super::ReducePlain);

fn decode<C: Codec>(value: Encoded<'_, C>) -> C {
    value.decode()
}

fn clone<C: Clone>(value: &C) -> C {
    value.clone()
}

/// `reduce_abelian` on differential-dataflow's own spines.
trait ReducePlain<'scope, K: Data, V: Data, T: Timestamp + Lattice> {
    fn reduce_plain(
        self,
        name: &str,
        logic: impl FnMut(&K, &[(&V, isize)], &mut Vec<(V, isize)>) + 'static,
    ) -> Arranged<'scope, TraceAgent<ValSpine<K, V, T, isize>>>;
}

impl<'scope, K: Data, V: Data, T: Timestamp + Lattice> ReducePlain<'scope, K, V, T>
    for Arranged<'scope, TraceAgent<ValSpine<K, V, T, isize>>>
{
    fn reduce_plain(
        self,
        name: &str,
        logic: impl FnMut(&K, &[(&V, isize)], &mut Vec<(V, isize)>) + 'static,
    ) -> Arranged<'scope, TraceAgent<ValSpine<K, V, T, isize>>> {
        self.reduce_abelian::<_, ValBuilder<K, V, T, isize>, ValSpine<K, V, T, isize>, _, _>(
            name,
            logic,
            |rows, key, updates| {
                rows.clear();
                let row = |(value, time, weight)| ((key.clone(), value), time, weight);
                rows.extend(updates.drain(..).map(row));
            },
        )
    }
}
