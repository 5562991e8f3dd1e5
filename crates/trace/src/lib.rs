//! Alluvium's state: pages, batches, merges and spines of sorted Z-sets.
