//! Transactions, as Postgres's clients begin and end them.
//!
//! Several statements that are sent together, in one text or before one Sync, are one transaction. It begins with the first of them that
//! others follow, and is committed after the last, unless a BEGIN among them makes it the client's.

use std::mem;

use tokio::io::{AsyncRead, AsyncWrite};

use super::completion::complete;
use super::connection::Connection;
use super::failure::{Ended, warning};

/// Commands that are never part of a transaction that they do not begin.
const ALONE: [&str; 4] = ["CHECKPOINT", "DISCARD ALL", "START", "SUBSCRIBE"];

/// What is left to do of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// Nothing: it has been answered.
    Done,
    /// It has to run.
    Run {
        /// Whether a transaction begins before it.
        begins: bool,
    },
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// What has to be done for a command, which others may follow, because of the transaction that is open or is not. As in Postgres,
    /// BEGIN in a transaction and COMMIT without one only warn.
    pub(super) fn control(
        &mut self,
        command: &'static str,
        others_follow: bool,
    ) -> Result<Control, Ended> {
        self.command = command;
        let is_open = self.client.is_in_transaction();
        let warned = match command {
            "BEGIN" | "START TRANSACTION" if is_open && !self.client.is_aborted() => {
                match mem::take(&mut self.is_implicit) {
                    true => None,
                    false => Some(("25001", "there is already a transaction in progress")),
                }
            }
            "COMMIT" | "ROLLBACK" if !is_open => {
                Some(("25P01", "there is no transaction in progress"))
            }
            "COMMIT" | "ROLLBACK" => {
                // It is no other's to commit.
                self.is_implicit = false;
                self.portals.clear();
                return Ok(Control::Run { begins: false });
            }
            _ => {
                let begins = others_follow
                    && !is_open
                    && !matches!(command, "BEGIN" | "START TRANSACTION")
                    && !ALONE.contains(&command);
                self.is_implicit |= begins;
                return Ok(Control::Run { begins });
            }
        };
        if let Some((code, message)) = warned {
            self.wire.put(warning(code, message))?;
        }
        self.wire.put(complete(command, None))?;
        Ok(Control::Done)
    }
}
