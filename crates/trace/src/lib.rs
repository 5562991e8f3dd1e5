//! Alluvium's state: pages, batches, merges and spines of sorted Z-sets.

/// The time of a plain dataflow: a set of whole transactions that become visible together.
pub type Epoch = u64;
