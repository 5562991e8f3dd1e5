//! Errors and warnings as text.

use std::fmt::{self, Display};

use alluvium::Refusal;

use crate::console::{escaped, shortened};
use crate::program::{Position, Program};

/// The most characters of a line that are shown, about half of them before the caret.
const SHOWN: usize = 200;

/// An error of a program: `error: name:line:column: message`, then the line, or the part of it around the column, with a
/// caret.
pub(crate) struct Diagnostic<'a> {
    pub(crate) program: &'a Program,
    pub(crate) position: Option<Position>,
    pub(crate) message: &'a dyn Display,
}

impl Display for Diagnostic<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, position, message } = self;
        let message = shortened(message);
        let Some((line, column)) = *position else {
            return writeln!(to, "error: {}: {message}", program.name);
        };
        writeln!(to, "error: {}:{line}:{column}: {message}", program.name)?;
        match program.line(line) {
            Some(line) => writeln!(to, "{}", marked(line, column.saturating_sub(1) as usize)),
            None => Ok(()),
        }
    }
}

/// A line, or the part of it around a column, counted from zero, and a caret below the column.
fn marked(line: &str, column: usize) -> String {
    let start = match line.chars().nth(SHOWN) {
        Some(_) => column.saturating_sub(SHOWN / 2),
        None => 0,
    };
    let mut characters = line.chars().skip(start);
    let before: String = characters.by_ref().take(column - start).collect();
    let after: String = characters.by_ref().take(SHOWN - before.chars().count()).collect();
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    // Tabs stay, so that the caret is below its column.
    let before = format!("{}{}", cut(start > 0), escaped(&before, &['\t']));
    let after = format!("{}{}", escaped(&after, &['\t']), cut(characters.next().is_some()));
    let blank = |character| if character == '\t' { '\t' } else { ' ' };
    let indent: String = before.chars().map(blank).collect();
    format!("{before}{after}\n{indent}^")
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

    /// Adds those of others.
    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
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
            for Refusal { file, line, message, .. } in first {
                let file = file.display().to_string();
                // One line for each: a row's values may have several.
                writeln!(to, "  {}:{line}: {}", escaped(&file, &[]), escaped(message, &[]))?;
            }
            let more = count.saturating_sub(first.len() as u64);
            if more > 0 {
                writeln!(to, "  … and {more} more in alluvium.errors")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_is_shown_as_it_is() {
        assert_eq!(marked("\tSELECT x", 8), "\tSELECT x\n\t       ^");
        assert_eq!(marked("a", 1), "a\n ^");
        assert_eq!(marked("a", 9), "a\n ^");
    }

    #[test]
    fn of_a_long_line_the_part_around_the_column_is_shown() {
        let line = format!("{}!{}", "a".repeat(5000), "b".repeat(5000));
        let shown = marked(&line, 5000);
        let (text, caret) = shown.split_once('\n').unwrap();
        assert_eq!(text, format!("…{}!{}…", "a".repeat(100), "b".repeat(99)));
        assert_eq!(caret.chars().count(), 102);
        assert_eq!(text.chars().nth(101), Some('!'));
        let start = marked(&line, 3);
        assert!(start.starts_with("aaa") && start.ends_with("…\n   ^"), "{start}");
    }

    #[test]
    fn a_caret_is_below_its_column_behind_escapes() {
        assert_eq!(marked("a\x1Bb", 2), "a\\x1Bb\n     ^");
    }
}
