//! How many instructions the kernels of Alluvium execute, counted by Callgrind; see `docs/benchmarks.md`.
//!
//! Each count has a [`baseline`], and the run fails if it is exceeded. Instructions do not depend on what else a machine
//! does, so a change of some hundredths is a change of the code.

mod baseline;
mod operators;
mod rows;
mod state;

use gungraun::main;

use self::operators::of_operators;
use self::state::of_state;

main!(library_benchmark_groups = of_state, of_operators);
