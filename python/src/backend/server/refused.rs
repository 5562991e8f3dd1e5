//! What a server says of a failure.

use alluvium_client::Error;

use crate::failure::{Failure, class};

/// The failure of a call that is about no text.
pub(super) fn failure(error: Error) -> Failure {
    failure_in(error, "", (1, 1))
}

/// The failure of a statement of this text, which begins there in the text of the call.
pub(super) fn failure_in(error: Error, text: &str, begins: (u64, u64)) -> Failure {
    let message = error.to_string();
    match error {
        Error::Server(refusal) => {
            let mut message = refusal.message;
            for (what, more) in [("detail", refusal.detail), ("hint", refusal.hint)] {
                if let Some(more) = more {
                    message.push_str(&format!("; {what}: {more}"));
                }
            }
            let kind = refusal.kind.as_deref().unwrap_or_default();
            let position = refusal.position.filter(|_| !text.is_empty());
            Failure {
                class: class(kind, &refusal.sqlstate),
                message,
                position: position.map(|character| place(text, begins, character)),
                sqlstate: Some(refusal.sqlstate),
            }
        }
        Error::Address(_) => Failure::new("InterfaceError", message),
        Error::Connection(_) => lost(format!(
            "the connection to the server was lost: {message}; what ran may have been committed"
        )),
        Error::Unreached(_) => lost(message),
        Error::Value(_) | Error::Arrow(_) => Failure::new("DataError", message),
        _ => Failure::new("InternalError", message),
    }
}

/// There is no connection.
fn lost(message: String) -> Failure {
    let sqlstate = Some("08006".to_owned());
    Failure { sqlstate, ..Failure::new("OperationalError", message) }
}

/// The line and the column of a character of a text, counted from one, if the text begins there.
fn place(text: &str, begins: (u64, u64), character: u32) -> (u64, u64) {
    let before = text.chars().take((character as usize).saturating_sub(1));
    before.fold(begins, |(line, column), character| match character {
        '\n' => (line + 1, 1),
        _ => (line, column + 1),
    })
}
