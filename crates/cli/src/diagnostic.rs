//! What went wrong, and where, for people.

use std::fmt;

use alluvium::{Error, Refusal};

use crate::program::Program;

/// An error of a program: `error: name:line:column: message`, then the line with a caret.
pub struct Diagnostic<'a> {
    pub program: &'a Program,
    pub error: &'a Error,
}

impl fmt::Display for Diagnostic<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, error } = self;
        let Some((line, column)) = error.position() else {
            return writeln!(to, "error: {}: {error}", program.name);
        };
        writeln!(to, "error: {}:{line}:{column}: {error}", program.name)?;
        let (line, column) = (line.saturating_sub(1) as usize, column.saturating_sub(1) as usize);
        if let Some(line) = program.text.lines().nth(line) {
            let blank = |character| if character == '\t' { '\t' } else { ' ' };
            let indent: String = line.chars().take(column).map(blank).collect();
            writeln!(to, "{line}\n{indent}^")?;
        }
        Ok(())
    }
}

/// Input rows that were refused, over all files.
#[derive(Default)]
pub struct Refused {
    count: u64,
    /// The first few.
    told: Vec<Refusal>,
}

impl Refused {
    /// The number of rows that are told of.
    const TOLD: usize = 10;

    /// Adds rows of one file, of which the first ones are told of.
    pub fn add(&mut self, count: u64, first: Vec<Refusal>) {
        self.count += count;
        self.told.extend(first.into_iter().take(Self::TOLD - self.told.len()));
    }

    /// Whether there is nothing to warn of.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = if self.count == 1 { "input row was" } else { "input rows were" };
        writeln!(to, "warning: {} {rows} refused:", self.count)?;
        for Refusal { file, line, message } in &self.told {
            writeln!(to, "  {}:{line}: {message}", file.display())?;
        }
        match self.count.saturating_sub(self.told.len() as u64) {
            0 => Ok(()),
            more => writeln!(to, "  and {more} more"),
        }
    }
}
