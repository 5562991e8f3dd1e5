//! What sources make of files.

mod csv;
