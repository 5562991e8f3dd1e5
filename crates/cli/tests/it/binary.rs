//! The binary under test.

use std::path::PathBuf;

/// The binary named by `ALLUVIUM_BINARY`, or else the one built with these tests and their features.
pub fn binary() -> PathBuf {
    std::env::var_os("ALLUVIUM_BINARY")
        .map_or_else(|| env!("CARGO_BIN_EXE_alluvium").into(), PathBuf::from)
}
