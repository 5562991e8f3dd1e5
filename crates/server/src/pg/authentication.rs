//! Logins: who a client is.

use std::net::IpAddr;
use std::time::Instant;

use alluvium::{Role, Roles};
use bytes::{Buf, Bytes, BytesMut};
use pgwire::api::auth::sasl::scram::ScramServerAuth;
use pgwire::api::auth::sasl::{SCRAM_SHA_256_METHOD, SCRAM_SHA_256_PLUS_METHOD};
use pgwire::error::PgWireError;
use pgwire::messages::startup::{Authentication, PasswordMessageFamily};
use pgwire::messages::{PgWireBackendMessage as Answer, PgWireFrontendMessage as Message};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time;

use super::failure::{Ended, Failure, code};
use super::wire::{Broken, Wire};
use crate::identity::Identity;
use crate::log;
use crate::password;
use crate::shared::Shared;

/// Where a client comes from, and over what.
pub(super) struct Origin {
    /// `None` is a socket of this machine, whose client is a process of the server's own user, or of root.
    pub(super) address: Option<IpAddr>,
    /// Checks passwords for clients over an encrypted connection.
    pub(super) encrypted: Option<ScramServerAuth>,
}

impl Origin {
    /// Whether it is this machine.
    fn is_here(&self) -> bool {
        self.address.is_none_or(|address| address.to_canonical().is_loopback())
    }
}

/// Who the client is that says to be `user`. As long as there are no roles it is everybody, if it is on this machine. Over a socket of this
/// machine it is the role that it says: the operating system has told who is there. Others prove it by a password.
pub(super) async fn authenticate<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    shared: &Shared,
    origin: &Origin,
    user: &str,
) -> Result<Identity, Ended> {
    let roles = shared.roles();
    if !origin.is_here() && !shared.is_insecure {
        check_safe(origin, &roles)?;
    }
    if roles.is_empty() {
        return Ok(Identity::everybody());
    }
    let role = roles.get(user);
    if origin.address.is_some() {
        let proven = prove(wire, shared, origin, user, role).await;
        if let Err(Ended::Failed(failure)) = &proven {
            log::failed_login(origin.address, user, failure.message());
            time::sleep(shared.guesses.fail(origin.address, Instant::now())).await;
        }
        proven?;
    }
    let Some(role) = role else {
        let message = format!("role \"{user}\" does not exist");
        log::failed_login(origin.address, user, "there is no such role");
        return Err(Failure::fatal(code::NO_LOGIN, message).into());
    };
    if !role.can_login {
        let message = format!(
            "role \"{user}\" is not permitted to log in: a superuser lets it by ALTER ROLE … LOGIN"
        );
        log::failed_login(origin.address, user, "it is not permitted to log in");
        return Err(Failure::fatal(code::NO_LOGIN, message).into());
    }
    if !roles.may_connect(user) {
        let message = format!(
            "permission denied for database \"alluvium\": a superuser lets \"{user}\" in by GRANT CONNECT ON DATABASE alluvium"
        );
        log::failed_login(origin.address, user, "it has no right to connect");
        return Err(Failure::fatal(code::NO_RIGHT, message).into());
    }
    Ok(Identity::of(role))
}

/// Fails if others could read what passes, or be who they like.
fn check_safe(origin: &Origin, roles: &Roles) -> Result<(), Failure> {
    let message = match (roles.is_empty(), &origin.encrypted) {
        (true, _) => "this server has no roles, and serves its own machine only: CREATE ROLE there",
        (false, None) => {
            "this server takes no connections in the clear from other machines: connect with sslmode=require"
        }
        (false, Some(_)) => return Ok(()),
    };
    Err(Failure::fatal(code::NO_LOGIN, message))
}

/// Has the client prove by SCRAM-SHA-256 that it knows the role's password. A role that is not there, or has no password that is valid,
/// takes the same messages and the same time as a password that is wrong.
async fn prove<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    shared: &Shared,
    origin: &Origin,
    user: &str,
    role: Option<&Role>,
) -> Result<(), Ended> {
    let decoy = shared.decoy.secret(user);
    let verifier =
        role.filter(|role| password::is_valid(role)).and_then(|role| role.verifier.as_deref());
    let known = verifier.and_then(password::secret);
    let is_known = known.is_some();
    let clear = ScramServerAuth::new();
    let scram = origin.encrypted.as_ref().unwrap_or(&clear);
    let bound = scram.supports_channel_binding().then_some(SCRAM_SHA_256_PLUS_METHOD);
    let methods = bound.into_iter().chain([SCRAM_SHA_256_METHOD]).map(str::to_owned).collect();
    wire.put(Answer::Authentication(Authentication::SASL(methods)))?;

    let (method, first) = initial(answer(wire).await?).ok_or_else(malformed)?;
    let is_bound = method.as_ref() == SCRAM_SHA_256_PLUS_METHOD.as_bytes();
    if !(is_bound && bound.is_some()) && method.as_ref() != SCRAM_SHA_256_METHOD.as_bytes() {
        return Err(Failure::fatal(
            code::PROTOCOL,
            "the client has chosen a method of authentication that was not offered",
        )
        .into());
    }
    // What the client says of the binding has to be what its method says.
    if first.starts_with(b"p=") != is_bound {
        return Err(malformed().into());
    }
    let (challenge, waiting) = scram
        .on_client_first_message_with_secret(&first, known.unwrap_or(decoy))
        .map_err(|_| malformed())?;
    wire.put(Answer::Authentication(Authentication::SASLContinue(challenge.into())))?;

    match waiting.on_client_final_message(&answer(wire).await?) {
        Ok(signature) if is_known => {
            wire.put(Answer::Authentication(Authentication::SASLFinal(signature.into())))?;
            Ok(())
        }
        Ok(_) | Err(PgWireError::InvalidPassword(_)) => {
            let message = format!("password authentication failed for user \"{user}\"");
            Err(Failure::fatal(code::WRONG_PASSWORD, message).into())
        }
        Err(_) => Err(malformed().into()),
    }
}

/// What the client answers.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(wire: &mut Wire<S>) -> Result<BytesMut, Ended> {
    match wire.next().await?.ok_or_else(Broken::gone)? {
        Message::PasswordMessageFamily(PasswordMessageFamily::Raw(body)) => Ok(body),
        _ => {
            let message = "another message has come than the answer to a request for a password";
            Err(Failure::fatal(code::PROTOCOL, message).into())
        }
    }
}

/// The method and the data of a client's first answer: a text that ends with a zero, a length of 4 bytes, and as many bytes. The decoder
/// of the library takes any length.
fn initial(mut body: BytesMut) -> Option<(Bytes, Bytes)> {
    let end = body.iter().position(|byte| *byte == 0)?;
    let method = body.split_to(end).freeze();
    body.advance(1);
    let length = body.try_get_u32().ok()?;
    (usize::try_from(length).ok()? == body.len()).then(|| (method, body.freeze()))
}

fn malformed() -> Failure {
    Failure::fatal(
        code::PROTOCOL,
        "the client's message of SCRAM-SHA-256 is not well formed, or not bound to this connection",
    )
}
