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
            Answer::Done(text) => text,
            // It is followed, not written.
            Answer::Changes(_) => return Ok(Ok(())),
        };
        match self.is_prompt {
            true => self.output.text(&confirmation).map(Ok).map_err(unwritten),
            false => Ok(Ok(())),
        }
    }
}
