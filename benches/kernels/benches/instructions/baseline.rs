//! The stored counts, and how far a run may be from them.

use gungraun::{Callgrind, EventKind, LibraryBenchmarkConfig, OutputFormat};

/// How much more than its baseline a kernel may take, in hundredths. Another processor may have other versions of the C
/// library's functions, and tables that hash have other seeds in each run.
const TOLERANCE: u64 = 10;

/// A kernel that executes so many thousand instructions.
///
/// After a change that is meant, replace the number by the new one.
pub fn thousands(instructions: u64) -> LibraryBenchmarkConfig {
    let limit = instructions * 10 * (100 + TOLERANCE);
    let mut callgrind = Callgrind::default();
    callgrind.hard_limits([(EventKind::Ir, limit)]);
    let mut output = OutputFormat::default();
    output.tolerance(0.5);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind).output_format(output);
    config
}
