//! The binary under test.

use std::path::PathBuf;

/// The binary that `ALLUVIUM_BINARY` names, or else the one built beside these tests, which has the features
/// of tests.
pub fn binary() -> PathBuf {
    std::env::var_os("ALLUVIUM_BINARY")
        .map_or_else(|| env!("CARGO_BIN_EXE_alluvium").into(), PathBuf::from)
}
