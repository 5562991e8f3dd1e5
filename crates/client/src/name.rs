//! Names in SQL.

/// A name as SQL writes it, whatever is in it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
