//! Printing errors and warnings.

use std::fmt::{self, Display};

use alluvium::Refusal;

use crate::program::{Position, Program};

/// An error of a program: `error: name:line:column: message`, then the line with a caret.
pub(crate) struct Diagnostic<'a> {
    pub(crate) program: &'a Program,
    pub(crate) position: Option<Position>,
    pub(crate) message: &'a dyn Display,
}

impl Display for Diagnostic<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, position, message } = self;
        let Some((line, column)) = *position else {
            return writeln!(to, "error: {}: {message}", program.name);
        };
        writeln!(to, "error: {}:{line}:{column}: {message}", program.name)?;
        if let Some(line) = program.line(line) {
            let column = column.saturating_sub(1) as usize;
            let blank = |character| if character == '\t' { '\t' } else { ' ' };
            let indent: String = line.chars().take(column).map(blank).collect();
            writeln!(to, "{line}\n{indent}^")?;
        }
        Ok(())
    }
}
/// Refused input rows by source.
#[derive(Default)]
pub(crate) struct Refused(Vec<(u64, Vec<Refusal>)>);

impl Refused {
    /// Adds the rows of one source: their number, and the first of them.
    pub(crate) fn add(&mut self, count: u64, first: Vec<Refusal>) {
        if count > 0 {
            self.0.push((count, first));
        }
    }

    /// Whether no rows were refused.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: u64 = self.0.iter().map(|(count, _)| count).sum();
        let rows = if count == 1 { "input row was" } else { "input rows were" };
        writeln!(to, "warning: {count} {rows} refused:")?;
        for (count, first) in &self.0 {
            for Refusal { file, line, message } in first {
                writeln!(to, "  {}:{line}: {message}", file.display())?;
            }
            let more = count.saturating_sub(first.len() as u64);
            if more > 0 {
                writeln!(to, "  … and {more} more in alluvium.errors")?;
            }
        }
        Ok(())
    }
}
