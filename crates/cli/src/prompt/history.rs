//! The history of the prompt.

use std::env;
use std::fs;
use std::path::PathBuf;

/// The history file in the user's data folder, which is created if missing. `None` if there is no such folder; the
/// history then lasts as long as the prompt.
pub(crate) fn file() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = if cfg!(windows) {
        set("APPDATA")
    } else {
        set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))
    };
    let folder = data?.join("alluvium");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// Whether a text may have a password in it, which no file is to have.
pub(crate) fn has_password(text: &str) -> bool {
    text.to_ascii_lowercase().contains("password")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_kept() {
        assert!(has_password("CREATE ROLE ada LOGIN\n  Password 'pencil'"));
        assert!(!has_password("SELECT * FROM t"));
    }
}
