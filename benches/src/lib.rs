//! Alluvium's benchmarks.
