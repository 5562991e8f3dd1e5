//! Alluvium's benchmarks, one file per topic in `benches/`. `docs/benchmarks.md` lists the results.
