//! Operators that do not iterate: join, reduce, count, distinct, and arrangements read in other ways.

use alluvium_trace::typed::{
    ArrangeTyped, CountTotalTyped, DistinctTyped, OrderedFloat, ReduceTyped, TypedBatch,
    TypedBatcher, TypedBuilder, TypedChunker, TypedSpine, TypedUpdates,
};
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::operators::arrange::arrangement::{Arranged, arrange_core};
use differential_dataflow::operators::{CountTotal, Iterate};
use differential_dataflow::trace::implementations::spine_fueled;
use differential_dataflow::{AsCollection, VecCollection};
use proptest::prelude::*;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::vec::Map;

use super::{Pair, Program, any_history, any_setting, run};

/// A key with bytes that have to be escaped.
type Name = (Option<String>, i16);

/// A value of several parts.
type Detail = (Vec<u8>, OrderedFloat<f64>, ());

fn name(node: u32) -> Name {
    let text = ["", "\0", "\0\u{ff}", "a", "a\0", "ab"][node as usize % 6];
    ((!node.is_multiple_of(7)).then(|| text.to_owned()), 2 - node as i16)
}

fn detail(node: u32) -> Detail {
    (vec![0xFF, 0, node as u8], OrderedFloat(1.0 - f64::from(node)), ())
}

fn named(pairs: VecCollection<'_, u64, Pair>) -> VecCollection<'_, u64, (Name, Detail)> {
    pairs.map(|(from, to)| (name(from), detail(to)))
}

const JOIN: Program<(Name, Detail, Detail)> = |pairs| {
    let rows = named(pairs.clone()).arrange_typed();
    let others = named(pairs.map(|(from, to)| (to, from))).arrange_typed();
    rows.join_core(others, |key, one, other| [(key.decode(), one.decode(), other.decode())])
};

const PLAIN_JOIN: Program<(Name, Detail, Detail)> = |pairs| {
    let rows = named(pairs.clone()).arrange_by_key();
    let others = named(pairs.map(|(from, to)| (to, from))).arrange_by_key();
    rows.join_core(others, |key, one, other| [(key.clone(), one.clone(), other.clone())])
};

/// The sum of the weights, and the greatest value.
const REDUCE: Program<(Name, (i64, Detail))> = |pairs| {
    named(pairs)
        .arrange_typed()
        .reduce_typed("Summary", |_, values, output| {
            let sum: isize = values.iter().map(|(_, weight)| weight).sum();
            let greatest = values.iter().map(|(value, _)| value).max().unwrap();
            output.push(((sum as i64, greatest.decode()), 1_i64));
        })
        .as_collection(|key, value| (key.decode(), value.decode()))
        .inner
        .map(|(row, time, weight)| (row, time, weight as isize))
        .as_collection()
};

const PLAIN_REDUCE: Program<(Name, (i64, Detail))> = |pairs| {
    named(pairs).reduce(|_, values, output| {
        let sum: isize = values.iter().map(|(_, weight)| weight).sum();
        let greatest = values.iter().map(|(value, _)| *value).max().unwrap();
        output.push(((sum as i64, greatest.clone()), 1));
    })
};

const COUNT: Program<(Name, isize)> =
    |pairs| named(pairs).map(|(key, _)| (key, ())).arrange_typed().count_total_typed();

const PLAIN_COUNT: Program<(Name, isize)> = |pairs| named(pairs).map(|(key, _)| key).count_total();

const DISTINCT: Program<(Name, Detail)> = |pairs| named(pairs).distinct_typed();

const PLAIN_DISTINCT: Program<(Name, Detail)> = |pairs| named(pairs).distinct();

/// The transitive closure: `distinct` within `iterate`.
const CLOSURE: Program<Pair> = |pairs| {
    pairs.iterate(|_, paths| {
        let starts = paths.clone().arrange_typed();
        let ends = paths.clone().map(|(from, to)| (to, from)).arrange_typed();
        let longer = ends.join_core(starts, |_, from, to| [(from.decode(), to.decode())]);
        paths.concat(longer).distinct_typed()
    })
};

const PLAIN_CLOSURE: Program<Pair> = |pairs| {
    pairs.iterate(|_, paths| {
        let starts = paths.clone().arrange_by_key();
        let ends = paths.clone().map(|(from, to)| (to, from)).arrange_by_key();
        let longer = ends.join_core(starts, |_, from, to| [(*from, *to)]);
        paths.concat(longer).distinct()
    })
};

/// The same as a join, with batches of ours in the spine of differential-dataflow, spelled out.
const IN_FUELED_SPINES: Program<(u32, u32)> = |pairs| {
    type Batch = TypedBatch<u32, u32, u64>;
    type Fueled<'scope> = Arranged<'scope, TraceAgent<spine_fueled::Spine<Batch>>>;
    fn arrange(pairs: VecCollection<'_, u64, Pair>) -> Fueled<'_> {
        arrange_core::<
            _,
            _,
            TypedChunker<u32, u32, u64>,
            TypedBatcher<u32, u32, u64>,
            TypedBuilder<u32, u32, u64>,
            _,
        >(pairs.inner, Pipeline, "Fueled")
    }
    // All rows on one worker, as nothing is exchanged.
    let pairs = pairs.arrange_typed().as_collection(|from, to| (from.decode(), to.decode()));
    let greatest = arrange(pairs.clone())
        .reduce_abelian::<_, TypedBuilder<u32, u32, u64>, TypedSpine<u32, u32, u64>, _, _>(
            "Greatest",
            |_, values, output| output.push((values[values.len() - 1].0.decode(), 1)),
            TypedUpdates::fill,
        );
    arrange(pairs).join_core(greatest, |_, to, greatest| [(to.decode(), greatest.decode())])
};

const PLAIN_OF_FUELED: Program<(u32, u32)> = |pairs| {
    let greatest = pairs.clone().reduce(|_, values, output| {
        output.push((*values[values.len() - 1].0, 1));
    });
    pairs.join_map(greatest, |_, to, greatest| (*to, *greatest))
};

/// A test that both programs have the same output.
macro_rules! same {
    ($($name:ident: $ours:ident, $plain:ident;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(40))]
            $(#[test]
            fn $name(history in any_history(10, 30), setting in any_setting()) {
                prop_assert_eq!(run($ours, &history, &setting), run($plain, &history, &setting));
            })*
        }
    };
}

same! {
    joins_find_the_same_pairs: JOIN, PLAIN_JOIN;
    reductions_have_the_same_results: REDUCE, PLAIN_REDUCE;
    counts_are_the_same: COUNT, PLAIN_COUNT;
    the_same_rows_are_distinct: DISTINCT, PLAIN_DISTINCT;
    closures_are_the_same: CLOSURE, PLAIN_CLOSURE;
    batches_serve_in_the_spine_of_differential: IN_FUELED_SPINES, PLAIN_OF_FUELED;
}
