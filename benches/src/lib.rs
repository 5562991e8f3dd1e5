//! Alluvium's benchmarks: each file of `benches/` is a chapter. `docs/benchmarks.md` has the figures.
