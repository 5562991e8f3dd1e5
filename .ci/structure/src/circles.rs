//! Circles of imports.

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;

use crate::imports::Imports;
use crate::modules::Crate;

/// The files of the largest set in which each imports each other, directly or through others of the set.
pub fn largest(code: &Crate, imports: &Imports) -> Vec<String> {
    let mut graph = DiGraph::<usize, ()>::new();
    let nodes: Vec<_> = (0..code.files.len()).map(|file| graph.add_node(file)).collect();
    for (from, targets) in imports {
        for to in targets {
            graph.add_edge(nodes[*from], nodes[*to], ());
        }
    }
    let largest = tarjan_scc(&graph).into_iter().max_by_key(Vec::len).unwrap_or_default();
    let mut files: Vec<String> =
        largest.into_iter().map(|node| code.files[graph[node]].clone()).collect();
    files.sort();
    files
}
