//! The token of the server, the tokens of roles, and the cookies of browsers that have shown one.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::identity::Identity;

/// The random bytes of a secret: 256 bits.
const BYTES: usize = 32;
/// How many secrets of a kind a holder has: the first one ends.
const MOST: usize = 64;
/// How long a secret that was handed out can be used.
pub(super) const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// A random text, which only its owners know.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    /// A new one; fails if the system has no random numbers.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0_u8; BYTES];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let mut text = String::with_capacity(2 * BYTES);
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// The text itself.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether the text is this one; takes as long for each text of its length.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(text).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Secret")
    }
}

/// How a secret is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As `Authorization: Bearer`.
    Token,
    /// By a browser.
    Cookie,
}

/// A secret that was handed out.
#[derive(Debug)]
struct Issued {
    secret: Secret,
    kind: Kind,
    /// Who was given it.
    holder: Identity,
    /// By which it is known to streams.
    number: u64,
    /// The token for which a browser has got it.
    parent: Option<u64>,
    until: Instant,
}

/// What lets a client in.
#[derive(Debug)]
pub(super) struct Tokens {
    token: Secret,
    /// Those that were handed out, the latest last.
    issued: Mutex<VecDeque<Issued>>,
    last: AtomicU64,
}

impl Tokens {
    /// With a new token of the server.
    pub(super) fn random() -> io::Result<Self> {
        let (issued, last) = Default::default();
        Ok(Self { token: Secret::random()?, issued, last })
    }

    /// The token of the server.
    pub(super) fn token(&self) -> &str {
        self.token.text()
    }

    /// Whether this is the token of the server.
    pub(super) fn is_token(&self, text: &[u8]) -> bool {
        self.token.is(text)
    }

    /// The holder of a secret, who has shown it, unless it is unknown, of the other kind, or too old.
    pub(super) fn find(&self, text: &[u8], kind: Kind) -> Option<Identity> {
        let now = Instant::now();
        let mut issued = self.issued.lock();
        issued.retain(|one| one.until > now);
        // All are looked at, so that the time tells nothing.
        issued.iter().fold(None, |found, one| match one.secret.is(text) && one.kind == kind {
            true => Some(Identity { token: Some(one.number), ..one.holder.clone() }),
            false => found,
        })
    }

    /// Whether a secret may still be used.
    pub(super) fn is_issued(&self, number: u64) -> bool {
        let now = Instant::now();
        self.issued.lock().iter().any(|one| one.number == number && one.until > now)
    }

    /// A new token. The oldest one of a holder with too many ends.
    pub(super) fn issue(&self, holder: Identity) -> io::Result<Secret> {
        self.add(Kind::Token, holder)
    }

    /// A cookie for a browser that has shown a token, with which it ends.
    pub(super) fn log_in(&self, holder: Identity) -> io::Result<Secret> {
        self.add(Kind::Cookie, holder)
    }

    fn add(&self, kind: Kind, holder: Identity) -> io::Result<Secret> {
        let secret = Secret::random()?;
        let mut issued = self.issued.lock();
        let same = |one: &Issued| one.kind == kind && one.holder.role() == holder.role();
        if issued.iter().filter(|one| same(one)).count() >= MOST
            && let Some(oldest) = issued.iter().position(same)
        {
            issued.remove(oldest);
        }
        let parent = holder.token;
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let of_parent = issued.iter().find(|one| Some(one.number) == parent);
        let until = of_parent.map_or_else(|| Instant::now() + LIFETIME, |one| one.until);
        issued.push_back(Issued { secret: secret.clone(), kind, holder, number, parent, until });
        Ok(secret)
    }

    /// Ends one secret, or all of a role. Returns how many they were.
    pub(super) fn revoke(&self, number: Option<u64>, role: &str) -> usize {
        let mut issued = self.issued.lock();
        let count = issued.len();
        issued.retain(|one| match number {
            Some(number) => one.number != number && one.parent != Some(number),
            None => one.holder.role().is_none_or(|name| **name != *role),
        });
        count - issued.len()
    }

    /// Writes the token to a file that only its owner can read, in place of one that an earlier server has left.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => (),
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{}", self.token())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_random_and_no_other() {
        let (one, other) = (Tokens::random().expect("one"), Tokens::random().expect("another"));
        assert_ne!(one.token(), other.token());
        assert_eq!(one.token().len(), 64);
        assert!(one.is_token(one.token().as_bytes()) && !one.is_token(b""));
        assert!(!one.is_token(other.token().as_bytes()));
        assert!(!format!("{one:?}").contains(one.token()));
    }

    #[test]
    fn secrets_are_of_a_kind_and_a_holder_has_so_many() {
        let tokens = Tokens::random().expect("a token");
        let holder = |name: &str| Identity::named(name, false, None);
        let first = tokens.log_in(holder("ada")).expect("a cookie");
        let of_bob = tokens.issue(holder("bob")).expect("a token");
        let found = |secret: &Secret, kind| tokens.find(secret.text().as_bytes(), kind);
        let shown = found(&first, Kind::Cookie).expect("it is there");
        assert_eq!(Identity { token: None, ..shown }, holder("ada"));
        assert_eq!(found(&first, Kind::Token), None);
        assert_eq!(tokens.find(b"", Kind::Cookie), None);
        for _ in 0..MOST {
            tokens.log_in(holder("ada")).expect("a cookie");
        }
        assert_eq!(found(&first, Kind::Cookie), None);
        let shown = found(&of_bob, Kind::Token).expect("it is there");
        let number = shown.token.expect("a number");
        assert!(tokens.is_issued(number));
        tokens.revoke(None, "ada");
        assert!(tokens.is_issued(number));
        let cookie = tokens.log_in(shown).expect("a cookie");
        assert_eq!(tokens.revoke(Some(number), "bob"), 2);
        assert!(found(&cookie, Kind::Cookie).is_none());
        assert!(!tokens.is_issued(number) && found(&of_bob, Kind::Token).is_none());
    }

    #[test]
    fn a_token_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, "left").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("permissions");
        let tokens = Tokens::random().expect("a token");
        tokens.write(&path).expect("a file");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).expect("a file").trim(), tokens.token());
    }
}
