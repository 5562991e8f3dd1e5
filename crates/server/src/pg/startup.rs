//! The beginning of a connection, until the client has a session.

use std::collections::BTreeMap;

use alluvium::Session;
use alluvium::unstable::{ClientInfo, SessionParts};
use bytes::Bytes;
use pgwire::api::auth::sasl::scram::ScramServerAuth;
use pgwire::messages::response::{GssEncResponse, SslResponse};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use pgwire::messages::{
    PgWireBackendMessage as Answer, PgWireFrontendMessage as Message, ProtocolVersion,
    SslNegotiationMetaMessage as Encryption,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::authentication::{Origin, authenticate};
use super::failure::{Ended, Failure, code};
use super::parameters::Parameters;
use super::wire::Wire;
use crate::client::Client;
use crate::registry::{Registered, Registry, Stranger};
use crate::shared::Shared;
use crate::tls::{Stream, Tls};
use crate::traffic::Protocol;

/// The bytes of the secret by which a client cancels its statements, in version 3.2 and later of the protocol, and before.
const SECRET: usize = 32;
const SHORT_SECRET: usize = 4;
/// The parameters of a startup that are no settings of the session.
const NO_SETTINGS: [&str; 4] = ["user", "database", "options", "replication"];

/// A client that has logged in.
pub(super) struct LoggedIn {
    pub(super) client: Client,
    pub(super) registered: Registered,
    pub(super) parameters: Parameters,
}

/// The first byte of a connection that is encrypted from its beginning.
const HANDSHAKE: u8 = 0x16;

/// Answers what a client says until it has a session; `None` if it did not come for one.
pub(super) async fn start<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<Stream<S>>,
    shared: &Shared,
    stranger: Stranger,
) -> Result<Option<LoggedIn>, Ended> {
    let mut origin = Origin { address: stranger.address(), encrypted: None };
    let tls = shared.tls.as_ref().filter(|_| origin.address.is_some());
    if wire.first().await? == Some(HANDSHAKE)
        && let Some(tls) = tls
    {
        origin.encrypted = Some(wire.encrypt(tls).await?);
        if wire.stream().protocol().is_none() {
            let message = "a connection that is encrypted from its beginning has to name its protocol, by ALPN";
            return Err(Failure::fatal(code::PROTOCOL, message).into());
        }
    }
    loop {
        let Some(message) = wire.next().await? else { return Ok(None) };
        match message {
            Message::SslNegotiation(Encryption::PostgresSsl(_) | Encryption::PostgresGss(_))
                if wire.stream().is_encrypted() =>
            {
                let message = "the connection is encrypted already";
                return Err(Failure::fatal(code::PROTOCOL, message).into());
            }
            Message::SslNegotiation(Encryption::PostgresSsl(_)) => match tls {
                Some(tls) => origin.encrypted = Some(encrypt(wire, tls).await?),
                None => wire.put(Answer::SslResponse(SslResponse::Refuse))?,
            },
            Message::SslNegotiation(Encryption::PostgresGss(_)) => {
                wire.put(Answer::GssEncResponse(GssEncResponse::Refuse))?;
            }
            Message::SslNegotiation(Encryption::None) => wire.expect_startup(),
            Message::CancelRequest(request) => {
                cancel(&shared.registry, request.pid, &request.secret_key);
                return Ok(None);
            }
            Message::Startup(startup) => {
                let version = negotiated(wire, startup.protocol_number_minor, &startup.parameters)?;
                let logged_in =
                    log_in(wire, shared, stranger, &origin, version, &startup.parameters).await?;
                return Ok(Some(logged_in));
            }
            _ => {
                return Err(Failure::fatal(
                    code::PROTOCOL,
                    "a session begins with a startup message",
                )
                .into());
            }
        }
    }
}

/// Encrypts a connection whose client has asked for it. What it has sent after that in the clear may be another's, who would speak as the
/// client once it has logged in.
async fn encrypt<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<Stream<S>>,
    tls: &Tls,
) -> Result<ScramServerAuth, Ended> {
    if wire.is_ahead() {
        let message = "bytes in the clear have come after the request to encrypt the connection";
        return Err(Failure::fatal(code::PROTOCOL, message).into());
    }
    wire.put(Answer::SslResponse(SslResponse::Accept))?;
    wire.flush().await?;
    Ok(wire.encrypt(tls).await?)
}

fn cancel(registry: &Registry, number: i32, secret: &SecretKey) {
    registry.cancel(number, &secret.to_bytes());
}

/// The version of the protocol that both sides speak. A client that asks for more is told.
fn negotiated<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    minor: u16,
    parameters: &BTreeMap<String, String>,
) -> Result<ProtocolVersion, Ended> {
    let version = match minor {
        0 | 1 => ProtocolVersion::PROTOCOL3_0,
        _ => ProtocolVersion::PROTOCOL3_2,
    };
    wire.expect_messages(version);
    let unknown: Vec<String> =
        parameters.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    let (_, spoken) = version.version_number();
    if minor != spoken || !unknown.is_empty() {
        let answer = NegotiateProtocolVersion::new(i32::from(version), unknown);
        wire.put(Answer::NegotiateProtocolVersion(answer))?;
    }
    Ok(version)
}

async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<Stream<S>>,
    shared: &Shared,
    stranger: Stranger,
    origin: &Origin,
    version: ProtocolVersion,
    parameters: &BTreeMap<String, String>,
) -> Result<LoggedIn, Ended> {
    let Some(user) = parameters.get("user").filter(|user| !user.is_empty()) else {
        return Err(Failure::fatal(code::NO_LOGIN, "the startup message names no user").into());
    };
    if parameters.get("replication").is_some_and(|value| value != "false") {
        let message = "replication is not supported: SUBSCRIBE has the changes of a relation";
        return Err(Failure::fatal(code::NO_LOGIN, message).into());
    }
    let identity = authenticate(wire, shared, origin, user).await?;
    let fatal =
        |error: alluvium::Error| Failure::fatal(error.sqlstate().as_str(), error.to_string());
    let mut session = shared.session(&identity).map_err(fatal)?;
    set_up(&mut session, parameters)?;
    let reported = Parameters::of(&session);
    let mut client = Client::new(session, shared.pool.clone());
    let is_long = version == ProtocolVersion::PROTOCOL3_2;
    let secret_bytes = if is_long { SECRET } else { SHORT_SECRET };
    let address = stranger.address();
    let registered = stranger
        .admit(client.cancel().clone(), secret_bytes, identity)
        .map_err(|full| Failure::fatal(code::CONNECTIONS, full.to_string()))?;
    if let Ok(session) = client.session() {
        session.set_client(&ClientInfo {
            number: Some(registered.number),
            protocol: Protocol::Postgres.name(),
            address,
        });
    }
    wire.put(Answer::Authentication(Authentication::Ok))?;
    for (name, value) in reported.all() {
        wire.put(Answer::ParameterStatus(ParameterStatus::new(name.to_owned(), value.to_owned())))?;
    }
    let secret = SecretKey::Bytes(Bytes::copy_from_slice(&registered.secret));
    wire.put(Answer::BackendKeyData(BackendKeyData::new(registered.number, secret)))?;
    wire.admit(shared.registry.limits().message_bytes);
    Ok(LoggedIn { client, registered, parameters: reported })
}

/// Gives the session the settings of the startup message: its parameters, and those in its options.
fn set_up(session: &mut Session, parameters: &BTreeMap<String, String>) -> Result<(), Failure> {
    let mut set = |name: &str, value: &str| {
        session.set(name, value).map_err(|error| {
            Failure::fatal(
                error.sqlstate().as_str(),
                format!("the startup message sets {name}: {error}"),
            )
        })
    };
    for (name, value) in options(parameters.get("options").map_or("", String::as_str))? {
        set(&name, &value)?;
    }
    for (name, value) in parameters {
        if name == "client_encoding" {
            set(name, &encoding(value))?;
        } else if !NO_SETTINGS.contains(&name.as_str()) && !name.starts_with("_pq_.") {
            set(name, value)?;
        }
    }
    Ok(())
}

/// The name of an encoding as Postgres compares it: letters and digits alone. asyncpg sends `'utf-8'`, quotes included.
fn encoding(value: &str) -> String {
    value.chars().filter(|letter| letter.is_ascii_alphanumeric()).collect()
}

/// The settings in the options of a startup message: `-c name=value` and `--name=value`, where a backslash stands before a space that is
/// part of a value.
fn options(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut words = vec![String::new()];
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => words.last_mut().into_iter().for_each(|word| word.extend(letters.next())),
            letter if letter.is_whitespace() => words.push(String::new()),
            letter => words.last_mut().into_iter().for_each(|word| word.push(letter)),
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(setting), _) => setting.replace('-', "_"),
            (None, Some("")) => words.next().unwrap_or_default(),
            (None, Some(setting)) => setting.to_owned(),
            (None, None) => word.clone(),
        };
        let Some((name, value)) = setting.split_once('=') else {
            let message =
                format!("the options of the startup message have \"{word}\": write -c name=value");
            return Err(Failure::fatal("22023", message));
        };
        settings.push((name.to_owned(), value.to_owned()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_settings() {
        let read = |text: &str| options(text).unwrap_or_default();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read(""), []);
        assert_eq!(read("-c a=1 -cb=2"), [pair("a", "1"), pair("b", "2")]);
        assert_eq!(read("--statement-timeout=5s"), [pair("statement_timeout", "5s")]);
        assert_eq!(read(r"-c search_path=a,\ b"), [pair("search_path", "a, b")]);
        assert!(options("-c").is_err());
        assert!(options("-d").is_err());
    }

    #[test]
    fn the_name_of_an_encoding_has_no_quotes() {
        assert_eq!(["UTF8", "'utf-8'", "SQL_ASCII"].map(encoding), ["UTF8", "utf8", "SQLASCII"]);
    }
}
