//! The cost of Alluvium's kernels in instructions: see the benchmark `instructions`.
