//! What a server logs, by [`tracing`].
//!
//! No line has a value of a statement, a password, a verifier or a token. What clients have said is quoted, up to 200 bytes.

use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use tracing::{debug, error, info, warn};

use crate::identity::Identity;
use crate::registry::Registered;

/// The most bytes of a text of a client in a line.
const MOST: usize = 200;

/// A door is open.
pub(crate) fn listening(door: &'static str, address: impl Display) {
    info!(door, %address, "listening");
}

/// A client has logged in.
pub(crate) fn connected(address: Option<IpAddr>, registered: &Registered, is_encrypted: bool) {
    let (number, role) = (registered.number, role(&registered.identity));
    info!(number, role, address = %place(address), is_encrypted, "connection opened");
}

/// A client that had logged in is gone.
pub(crate) fn disconnected(number: i32, identity: &Identity, address: Option<IpAddr>) {
    info!(number, role = role(identity), address = %place(address), "connection closed");
}

/// A client was not let in. Two lines may have the same reason for different users, whom the client does not tell apart.
pub(crate) fn failed_login(address: Option<IpAddr>, user: &str, reason: &str) {
    warn!(address = %place(address), user = quoted(user), reason = quoted(reason), "login failed");
}

/// A connection has ended before it had logged in.
pub(crate) fn refused(address: Option<IpAddr>, reason: &str) {
    warn!(address = %place(address), reason = quoted(reason), "connection refused");
}

/// A connection could not be encrypted, or ended in its middle.
pub(crate) fn broken(address: Option<IpAddr>, error: impl Display) {
    debug!(address = %place(address), reason = quoted(&error.to_string()), "connection broken before its login");
}

/// Connections cannot be accepted.
pub(crate) fn not_accepted(error: impl Display) {
    error!(%error, "cannot accept a connection");
}

/// A statement has taken long.
pub(crate) fn slow(number: i32, identity: &Identity, command: &str, time: Duration) {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    warn!(number, role = role(identity), command, milliseconds, "slow statement");
}

/// A statement has failed by a fault of the server.
pub(crate) fn fault(number: i32, identity: &Identity, command: &str) {
    error!(number, role = role(identity), command, "a statement failed by a fault of the server");
}

/// A certificate was read again.
pub(crate) fn certificate_read(certificate: &Path) {
    info!(certificate = %certificate.display(), "certificate read again");
}

/// A certificate was to be read again, and the old one stays.
pub(crate) fn certificate_refused(error: impl Display) {
    error!(%error, "the certificate stays the old one");
}

/// Who can connect, in a server that is open to more than it should be.
pub(crate) fn insecure(address: impl Display) {
    warn!(%address, "insecure: other machines may connect in the clear and, as long as there are no roles, do everything");
}

/// A server ends.
pub(crate) fn stopping(clients: usize) {
    info!(clients, "stopping");
}

fn role(identity: &Identity) -> &str {
    identity.role().map_or("everybody", |role| role)
}

fn place(address: Option<IpAddr>) -> String {
    address.map_or_else(|| "socket".to_owned(), |address| address.to_string())
}

/// A text without control characters, of at most 200 bytes.
fn quoted(text: &str) -> String {
    let end = text.floor_char_boundary(MOST);
    let quoted = text[..end].escape_debug();
    match end < text.len() {
        true => format!("{quoted}…"),
        false => quoted.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_have_one_line() {
        assert_eq!(quoted("ada"), "ada");
        assert_eq!(quoted("a\nb\u{1b}[0m"), "a\\nb\\u{1b}[0m");
        let long = "ä".repeat(1_000);
        assert_eq!(quoted(&long), format!("{}…", "ä".repeat(100)));
        assert_eq!(quoted(&format!("x{long}")), format!("x{}…", "ä".repeat(99)));
    }
}
