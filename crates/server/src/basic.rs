//! Names and passwords, as `Authorization: Basic` has them.

use std::net::IpAddr;
use std::time::Instant;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tokio::time;

use crate::identity::Identity;
use crate::log;
use crate::password;
use crate::shared::Shared;

/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The role that a name and a password show, encoded; `None` if they show none. After a wrong password that takes some time, as long for
/// roles that are not there.
pub(crate) async fn role_of(
    shared: &Shared,
    address: Option<IpAddr>,
    encoded: &[u8],
) -> Option<Identity> {
    let decoded = BASE64.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let (name, password) = decoded.as_deref().and_then(|text| text.split_once(':'))?;
    let roles = shared.roles();
    let role = roles.get(name);
    let verifier =
        role.filter(|role| password::is_valid(role)).and_then(|role| role.verifier.as_deref());
    let verifier = verifier.and_then(password::secret);
    let is_there = verifier.is_some();
    let secret = verifier.unwrap_or_else(|| shared.decoy.secret(name));
    let password = password.to_owned();
    // It is made to take long.
    let fits = tokio::task::spawn_blocking(move || password::fits(&password, &secret)).await;
    let is_right = fits.is_ok_and(|fits| fits) && is_there && roles.may_connect(name);
    match role.filter(|_| is_right) {
        Some(role) => Some(Identity::of(role)),
        None => {
            log::failed_login(address, name, "the password does not fit");
            time::sleep(shared.guesses.fail(address, Instant::now())).await;
            None
        }
    }
}
