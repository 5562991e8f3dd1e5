//! A random graph, and its changes: the same for every run.

use std::iter;

/// The edges that leave a vertex.
const DEGREE: usize = 4;

/// The size of a graph and of the run over it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Graph {
    pub(crate) edges: usize,
    pub(crate) workers: usize,
    pub(crate) changes: usize,
}

/// Where an edge starts and ends, and its length.
pub(crate) type Edge = (i64, i64, i64);

impl Graph {
    /// Its edges.
    pub(crate) fn edges(self) -> impl Iterator<Item = Edge> {
        let mut random = fastrand::Rng::with_seed(1);
        iter::repeat_with(move || self.edge(&mut random)).take(self.edges)
    }

    /// The edge of each change, and whether it comes, which is 1, or goes, which is -1, by turns.
    pub(crate) fn changes(self) -> impl Iterator<Item = (Edge, i64)> {
        let mut random = fastrand::Rng::with_seed(2);
        let come = iter::repeat_with(move || (self.edge(&mut random), 1));
        let go = self.edges().map(|edge| (edge, -1));
        come.zip(go).flat_map(|(come, go)| [come, go]).take(self.changes)
    }

    fn edge(self, random: &mut fastrand::Rng) -> Edge {
        let vertices = (self.edges / DEGREE).max(1) as i64;
        (random.i64(0..vertices), random.i64(0..vertices), random.i64(1..10))
    }
}
