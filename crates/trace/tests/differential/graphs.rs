//! Iterative programs: times are products, and frontiers have several elements.

use proptest::prelude::*;

use super::programs::{plain, typed};
use super::{History, Pair, Program, Setting, any_history, any_setting, run, with_memory};

const BFS: Program<(u32, u32)> = |edges| typed::bfs(edges.clone(), super::roots(edges));
const PLAIN_BFS: Program<(u32, u32)> = |edges| plain::bfs(edges.clone(), super::roots(edges));
const SCC: Program<Pair> = |edges| typed::scc(edges);
const PLAIN_SCC: Program<Pair> = |edges| plain::scc(edges);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bfs_has_the_distances_that_it_has_on_the_spine_of_differential(
        history in any_history(12, 24), setting in any_setting(),
    ) {
        prop_assert_eq!(run(BFS, &history, &setting), run(PLAIN_BFS, &history, &setting));
    }

    #[test]
    fn scc_has_the_components_that_it_has_on_the_spine_of_differential(
        history in any_history(9, 16), setting in any_setting(),
    ) {
        prop_assert_eq!(run(SCC, &history, &setting), run(PLAIN_SCC, &history, &setting));
    }
}

/// A random graph of so many nodes and edges, and then rounds in which edges are replaced.
fn random_graph(nodes: u32, edges: usize, rounds: usize, replaced: usize) -> History {
    let mut random = fastrand::Rng::with_seed(17);
    let mut edge = || (random.u32(..nodes), random.u32(..nodes));
    let mut held: Vec<Pair> = (0..edges).map(|_| edge()).collect();
    let mut history = vec![(held.iter().map(|edge| (*edge, 1)).collect(), true)];
    for round in 0..rounds {
        let first = round * replaced % edges;
        let changes = held[first..first + replaced].iter_mut().flat_map(|place| {
            let gone = std::mem::replace(place, edge());
            [(gone, -1), (*place, 1)]
        });
        history.push((changes.collect(), round % 2 == 0));
    }
    history
}

/// Files of many pages, merged while the program iterates.
#[test]
fn large_graphs_with_little_memory_have_the_same_answers() {
    let history = random_graph(3_000, 6_000, 2, 20);
    let state = with_memory(256 << 10);
    let setting = Setting { workers: 2, state: state.clone() };
    let distances = run(BFS, &history, &setting);
    assert!(distances.len() > 1_000 && distances.iter().any(|(_, epoch, _)| *epoch > 0));
    assert_eq!(distances, run(PLAIN_BFS, &history, &setting));
    assert!(state.budget().written() > 0, "state goes to files");
    let components = run(SCC, &history, &setting);
    assert!(components.len() > 1_000 && components.iter().any(|(_, epoch, _)| *epoch > 0));
    assert_eq!(components, run(PLAIN_SCC, &history, &setting));
    assert_eq!((state.budget().files(), state.budget().used()), (0, 0), "nothing is left behind");
}
