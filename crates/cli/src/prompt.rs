//! Statements typed in at a terminal.

use std::io::{self, Write};

use alluvium::Outcome;

use crate::program::Program;
use crate::shell::{Shell, Stop};

/// A prompt: takes statements line by line, runs them, and goes on after an error.
pub struct Prompt<'a, W> {
    shell: &'a mut Shell<W>,
}

impl<'a, W: Write> Prompt<'a, W> {
    pub fn new(shell: &'a mut Shell<W>) -> Self {
        Self { shell }
    }

    /// Runs until the input ends, or the user interrupts.
    pub fn run(self) -> Result<(), Stop> {
        println!(
            "Alluvium {}. Statements end with a semicolon; Ctrl-D ends.",
            env!("CARGO_PKG_VERSION")
        );
        while let Some(text) = self.read() {
            let stop =
                self.shell.run_statements(
                    &Program::from_line(text),
                    |output, outcome| match outcome {
                        Outcome::Rows { schema, batches } => output.rows(schema, batches),
                        Outcome::Text(text) => output.text(text),
                        Outcome::Changed { rows, .. } => {
                            output.text(&format!("{rows} rows changed"))
                        }
                        Outcome::Copied { rows, .. } => output.text(&format!("{rows} rows copied")),
                        Outcome::Done => output.text("done"),
                    },
                );
            self.shell.warn();
            match stop {
                Ok(()) | Err(Stop::Failed) => {}
                Err(stop) => return Err(stop),
            }
        }
        println!();
        Ok(())
    }

    /// Lines up to one that ends a statement; `None` at the end of the input.
    fn read(&self) -> Option<String> {
        let mut text = String::new();
        loop {
            print!("{}", if text.is_empty() { "alluvium> " } else { "     ...> " });
            io::stdout().flush().ok()?;
            let read = self.shell.interrupt.while_idle(|| io::stdin().read_line(&mut text));
            if read.ok()? == 0 {
                return None;
            }
            if text.trim().is_empty() {
                text.clear();
            } else if ends_statement(&text) {
                return Some(text);
            }
        }
    }
}

/// Whether the last thing in `text`, but for comments, is a semicolon outside of quotes.
fn ends_statement(text: &str) -> bool {
    let mut ended = false;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let skipped = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            match rest.find("*/") {
                Some(end) => end + 2,
                None => return false,
            }
        } else if matches!(character, '\'' | '"') {
            ended = false;
            match rest[1..].find(character) {
                Some(end) => end + 2,
                None => return false,
            }
        } else {
            if !character.is_whitespace() {
                ended = character == ';';
            }
            character.len_utf8()
        };
        rest = &rest[skipped..];
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_ends_a_statement_unless_it_is_quoted_or_a_comment() {
        for text in
            ["SELECT 1;", "SELECT ';'; \n", "SELECT 1; -- one\n", "a; /* b */\n", "'it''s';"]
        {
            assert!(ends_statement(text), "{text}");
        }
        for text in
            ["SELECT 1", "SELECT ';\n", "SELECT 1 -- one;\n", "/* ; */", "\";", "/* a ;", ""]
        {
            assert!(!ends_statement(text), "{text}");
        }
    }
}
