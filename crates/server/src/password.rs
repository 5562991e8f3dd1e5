//! Passwords, of which a server has verifiers only.

use std::time::{SystemTime, UNIX_EPOCH};

use alluvium::Role;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgwire::api::auth::sasl::scram::{SCRAM_ITERATIONS, ScramSecret, gen_salted_password};
use subtle::ConstantTimeEq;

/// How verifiers begin.
const METHOD: &str = "SCRAM-SHA-256";
/// The bytes of a salt, and of a key.
const SALT: usize = 16;
const KEY: usize = 32;
/// A verifier with more iterations would have the server compute for as long as its role likes.
const MOST_ITERATIONS: usize = 100_000;

/// The verifier of a password, as Postgres writes and keeps it: `SCRAM-SHA-256$4096:salt$StoredKey:ServerKey`. Passwords can be checked
/// against it, and it lets nobody log in who finds it. The password is normalized by SASLprep, or is taken as it is where that cannot be.
/// A password that is a verifier already stays as it is. The salt is random: each call returns another verifier. Where the system has no
/// random numbers the verifier is empty, and no password fits it.
pub fn password_verifier(password: &str) -> String {
    if secret(password).is_some() {
        return password.to_owned();
    }
    let mut salt = [0; SALT];
    if getrandom::fill(&mut salt).is_err() {
        return String::new();
    }
    let salted = gen_salted_password(password, &salt, SCRAM_ITERATIONS);
    let secret = ScramSecret::verifier_from_salted_password(salt.into(), salted, SCRAM_ITERATIONS);
    text(&secret)
}

fn text(secret: &ScramSecret) -> String {
    match secret {
        ScramSecret::Verifier { salt, iterations, stored_key, server_key } => {
            let [salt, stored_key, server_key] =
                [salt, stored_key, server_key].map(|bytes| STANDARD.encode(bytes));
            format!("{METHOD}${iterations}:{salt}${stored_key}:{server_key}")
        }
        // Verifiers are made of no others.
        ScramSecret::SaltedPassword { .. } => String::new(),
    }
}

/// What passwords are checked against, of the text of a verifier; `None` if it is none.
pub(crate) fn secret(verifier: &str) -> Option<ScramSecret> {
    let rest = verifier.strip_prefix(METHOD)?.strip_prefix('$')?;
    let (iterations, rest) = rest.split_once(':')?;
    let (salt, keys) = rest.split_once('$')?;
    let (stored_key, server_key) = keys.split_once(':')?;
    let key = |text: &str| STANDARD.decode(text).ok().filter(|key| key.len() == KEY);
    Some(ScramSecret::Verifier {
        salt: STANDARD.decode(salt).ok()?,
        iterations: iterations.parse().ok().filter(|iterations| *iterations > 0)?,
        stored_key: key(stored_key)?,
        server_key: key(server_key)?,
    })
}

/// Whether the role's password is valid at this time.
pub(crate) fn is_valid(role: &Role) -> bool {
    let Some(until) = role.valid_until else { return true };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).is_ok_and(|now| now < until)
}

/// Whether a password is the one of a verifier. That takes long, on purpose.
pub(crate) fn fits(password: &str, secret: &ScramSecret) -> bool {
    let ScramSecret::Verifier { salt, iterations, stored_key, .. } = secret else { return false };
    if *iterations > MOST_ITERATIONS {
        return false;
    }
    let salted = gen_salted_password(password, salt, *iterations);
    match ScramSecret::verifier_from_salted_password(salt.clone(), salted, *iterations) {
        ScramSecret::Verifier { stored_key: made, .. } => made.ct_eq(stored_key).into(),
        ScramSecret::SaltedPassword { .. } => false,
    }
}

/// What the passwords of unknown roles are checked against, so that nobody learns from an answer which roles there are. A name has the
/// same salt each time, as roles have; no password fits.
pub(crate) struct Decoy {
    for_salts: [u8; KEY],
    for_keys: [u8; KEY],
}

impl Decoy {
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut decoy = Self { for_salts: [0; KEY], for_keys: [0; KEY] };
        getrandom::fill(&mut decoy.for_salts)?;
        getrandom::fill(&mut decoy.for_keys)?;
        Ok(decoy)
    }

    /// Of a role of this name.
    pub(crate) fn secret(&self, name: &str) -> ScramSecret {
        let mut salt = gen_salted_password(name, &self.for_salts, 1);
        salt.truncate(SALT);
        let salted = gen_salted_password(name, &self.for_keys, 1);
        ScramSecret::verifier_from_salted_password(salt, salted, SCRAM_ITERATIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Postgres 15, of two passwords. In the second one SASLprep removes one letter and replaces another.
    const OF_POSTGRES: [(&str, &str); 2] = [
        (
            "pencil",
            "SCRAM-SHA-256$4096:0aez83I/ieY32PZ/abYJkA==$PXonUyAdLeWyT1Fwc8ooDQzPzmmAHGx1NinO8gIXXgY=:ac1bqeYmYSW/+7o6v4IIx9GXHRhGDf7feKeNmZFg/Bk=",
        ),
        (
            "I\u{AD}X\u{2168}",
            "SCRAM-SHA-256$4096:SIIWG030uhU+2OfPSDit1A==$6iWNSLI2gD2q7lYgJqpJXEz2pwmOLTYUDMNfNbx0Ncw=:I/QSpwrEbLqFJ409GrJoNnViS1C/0EElTrJdKeFeBl4=",
        ),
    ];

    #[test]
    fn verifiers_are_read_as_they_are_written() {
        let verifier = password_verifier("pencil");
        assert!(verifier.starts_with("SCRAM-SHA-256$4096:"), "{verifier}");
        assert_eq!(secret(&verifier).map(|secret| text(&secret)).as_ref(), Some(&verifier));
        assert_ne!(password_verifier("pencil"), verifier);
        assert_eq!(password_verifier(&verifier), verifier);
    }

    #[test]
    fn a_verifier_is_that_of_postgres() {
        for (password, verifier) in OF_POSTGRES {
            let Some(ScramSecret::Verifier { salt, iterations, .. }) = secret(verifier) else {
                panic!("{verifier} is a verifier")
            };
            let salted = gen_salted_password(password, &salt, iterations);
            let made = ScramSecret::verifier_from_salted_password(salt, salted, iterations);
            assert_eq!(text(&made), verifier);
        }
    }

    #[test]
    fn a_password_fits_its_verifier_alone() {
        for (password, verifier) in OF_POSTGRES {
            let Some(secret) = secret(verifier) else { panic!("{verifier} is a verifier") };
            assert!(fits(password, &secret));
            assert!(!fits("another", &secret) && !fits("", &secret) && !fits(verifier, &secret));
        }
    }

    #[test]
    fn other_texts_are_no_verifiers() {
        let verifier = password_verifier("pencil");
        for wrong in [
            "",
            "pencil",
            "SCRAM-SHA-256$4096",
            "SCRAM-SHA-256$0:c2FsdA==$c2FsdA==:c2FsdA==",
            "SCRAM-SHA-256$4096:c2FsdA==$c2FsdA==:c2FsdA==",
            &verifier.replace("$4096", "$x"),
            &verifier.replace("$4096", "$-1"),
            &verifier[..verifier.len() - 4],
        ] {
            assert!(secret(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_decoy_has_one_salt_for_a_name() {
        let Ok(decoy) = Decoy::new() else { panic!("random numbers") };
        assert_eq!(text(&decoy.secret("ada")), text(&decoy.secret("ada")));
        assert_ne!(text(&decoy.secret("ada")), text(&decoy.secret("bob")));
        assert!(secret(&text(&decoy.secret("ada"))).is_some());
    }
}
