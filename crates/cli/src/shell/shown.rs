//! Answers on the output.

use std::io::Write;

use super::backend::{Answer, Failure};
use super::stop::{Stop, unwritten};
use crate::diagnostic::Refused;
use crate::output::{Output, Unwritten};

/// Where answers are written, and what is noted of them.
pub(super) struct Shown<'a, W> {
    pub(super) output: &'a mut Output<W>,
    pub(super) refused: &'a mut Refused,
    /// The numbers of rows that COPY has inserted and refused.
    pub(super) copied: &'a mut (u64, u64),
    /// Whether statements without a result are confirmed.
    pub(super) is_prompt: bool,
    /// The command of the statement.
    pub(super) command: &'static str,
    /// Whether a statement has failed since the last transaction began.
    pub(super) has_failed: &'a mut bool,
}

impl<W: Write> Shown<'_, W> {
    /// Writes the answer to a statement that is no subscription; at a prompt, also a confirmation of statements without a result.
    /// The rows of a query are computed meanwhile: their failure is returned as the statement's.
    pub(super) fn write(self, answer: Answer<'_>) -> Result<Result<(), Failure>, Stop> {
        let confirmation = match answer {
            Answer::Rows(schema, rows) => {
                return match self.output.rows(&schema, rows) {
                    Ok(()) => Ok(Ok(())),
                    Err(Unwritten::Read(failure)) => Ok(Err(failure)),
                    Err(Unwritten::Write(error)) => Err(unwritten(error)),
                };
            }
            Answer::Text(text) => return self.output.text(&text).map(Ok).map_err(unwritten),
            Answer::Copied { rows, refused, messages } => {
                self.copied.0 += rows;
                self.copied.1 += refused;
                self.refused.add(refused, messages);
                format!("{rows} rows copied")
            }
            Answer::Changed(rows) => format!("{rows} rows changed"),
            Answer::Moved(rows) => format!("{rows} rows passed"),
            Answer::RolledBack => "rolled back: an error had aborted the transaction".to_owned(),
            Answer::Done => done(self.command, self.has_failed).to_owned(),
            // It is followed, not written.
            Answer::Changes(_) => return Ok(Ok(())),
        };
        match self.is_prompt {
            true => self.output.text(&confirmation).map(Ok).map_err(unwritten),
            false => Ok(Ok(())),
        }
    }
}

/// What a command without a result has done, in words; a transaction that begins or ends has no failures yet.
fn done(command: &str, has_failed: &mut bool) -> &'static str {
    match command {
        "COMMIT" if std::mem::take(has_failed) => "committed, without what has failed",
        "COMMIT" => "committed",
        "BEGIN" | "START TRANSACTION" | "ROLLBACK" => {
            *has_failed = false;
            if command == "ROLLBACK" { "rolled back" } else { "done" }
        }
        _ => "done",
    }
}

#[cfg(test)]
mod tests {
    use super::done;

    /// A COMMIT after a failure was "done", as if all of the transaction were.
    #[test]
    fn the_end_of_a_transaction_says_what_became_of_it() {
        let mut has_failed = true;
        let mut told = |commands: &[&str]| {
            let of = |command: &&str| match *command {
                "a failure" => {
                    has_failed = true;
                    "-"
                }
                command => done(command, &mut has_failed),
            };
            commands.iter().map(of).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(told(&["BEGIN", "COMMIT"]), "done; committed");
        assert_eq!(told(&["BEGIN", "a failure", "ROLLBACK"]), "done; -; rolled back");
        let failed =
            ["BEGIN", "a failure", "SAVEPOINT", "ROLLBACK TO", "COMMIT", "BEGIN", "COMMIT"];
        assert_eq!(
            told(&failed),
            "done; -; done; done; committed, without what has failed; done; committed"
        );
        assert_eq!(told(&["a failure", "START TRANSACTION", "COMMIT"]), "-; done; committed");
    }
}
