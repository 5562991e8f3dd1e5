//! Secrets: what connectors need to know and nobody may see, such as passwords.
//!
//! A statement names a secret, `${secret:name}`, and never has its value. The value is in a file of the directory of
//! [`Builder::secrets`](crate::Builder::secrets), or in the environment, and is read when a connection is made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fmt, fs};

use crate::error::{Error, Result};

/// The variables of the environment that have secrets begin so, with the name in upper case behind.
const VARIABLE: &str = "ALLUVIUM_SECRET_";

/// How long a name may be.
const LONGEST: usize = 63;

/// A value that is not shown.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The value. It must not reach a log, a message or a file.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Secret(…)")
    }
}

/// Where secrets are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    directory: Option<Arc<PathBuf>>,
    /// What those are stored as that are known by other names.
    stored: Arc<BTreeMap<String, String>>,
}

impl Secrets {
    /// Those of a directory, and of the environment.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory: Some(Arc::new(directory)), ..Self::default() }
    }

    /// These, of which some are stored by other names than they are known by.
    pub(crate) fn known_as(&self, stored: BTreeMap<String, String>) -> Self {
        Self { directory: self.directory.clone(), stored: Arc::new(stored) }
    }

    /// The secret that a value refers to, as it is now.
    ///
    /// # Errors
    /// If the value is no reference, or there is no such secret.
    pub(crate) fn read(&self, value: &str) -> Result<Secret> {
        let known = reference(value)?;
        let name = self.stored.get(known).map_or(known, String::as_str);
        let variable = format!("{VARIABLE}{}", name.to_ascii_uppercase());
        if let Some(directory) = &self.directory {
            let path = directory.join(name);
            match fs::read_to_string(&path) {
                Ok(text) => return Ok(Secret(text.trim_end_matches(['\r', '\n']).to_owned())),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Error::source(format!(
                        "the secret \"{name}\" cannot be read: {error}"
                    )));
                }
            }
        }
        match env::var(&variable) {
            Ok(value) => Ok(Secret(value)),
            Err(_) => Err(Error::source(format!(
                "there is no secret \"{name}\": it is a file of the directory of secrets, or the variable {variable}"
            ))),
        }
    }
}

/// The name in `${secret:name}`. Fails if a text is another one.
pub(crate) fn reference(value: &str) -> Result<&str> {
    let name = value.strip_prefix(REFERENCE).and_then(|rest| rest.strip_suffix('}'));
    name.filter(|name| is_name(name)).ok_or_else(|| {
        Error::source(
            "a secret is not written here, but named: ${secret:name}, in lower-case letters, digits and _",
        )
    })
}

/// Whether a secret may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_named = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_named)
}

/// Whether a text is, or was meant to be, a reference to a secret.
pub(crate) fn is_reference(value: &str) -> bool {
    value.starts_with(REFERENCE)
}

const REFERENCE: &str = "${secret:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_where_it_is_now_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::new(folder.path().to_owned());
        fs::write(folder.path().join("kafka"), "hush\n").unwrap();
        let secret = secrets.read("${secret:kafka}").unwrap();
        assert_eq!(secret.reveal(), "hush");
        assert!(!format!("{secret:?}").contains("hush"));
        fs::write(folder.path().join("kafka"), "another").unwrap();
        assert_eq!(secrets.read("${secret:kafka}").unwrap().reveal(), "another");
        let error = secrets.read("${secret:postgres}").unwrap_err().to_string();
        assert!(error.contains("\"postgres\"") && error.contains("ALLUVIUM_SECRET_POSTGRES"));
        for text in ["hush", "${secret:}", "${secret:../kafka}", "${secret:A}", "${secret:kafka"] {
            let error = secrets.read(text).unwrap_err().to_string();
            assert!(error.contains("${secret:name}") && !error.contains("hush"), "{error}");
        }
    }
}
