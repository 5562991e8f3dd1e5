//! What the kernels of Alluvium cost in instructions: see the benchmark `instructions`.
