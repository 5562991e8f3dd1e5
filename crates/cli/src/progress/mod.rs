//! The progress line on terminals.
//!
//! [`waits`] tells beside it for what the engine waits, and [`ticker`] has both look at it from time to time.

mod ticker;
pub(crate) mod waits;

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use alluvium::Engine;
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::ticker::Ticker;
use crate::process::memory::Memory;

/// The interval between updates.
const INTERVAL: Duration = Duration::from_millis(100);

/// A line at the bottom of standard error if that is a terminal, hidden otherwise.
#[derive(Clone)]
pub(crate) struct ProgressLine(ProgressBar);

/// Updates a [`ProgressLine`] until dropped, and then clears it.
pub(crate) struct Drawing {
    line: ProgressLine,
    ticker: Option<Ticker>,
}

impl ProgressLine {
    /// A line that is never drawn.
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// A line that is drawn if standard error is a terminal.
    pub(crate) fn on_terminal() -> Self {
        match io::stderr().is_terminal() {
            true => Self(ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())),
            false => Self::hidden(),
        }
    }

    /// Calls `write`, which writes to the terminal, with the line cleared.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.0.suspend(write)
    }

    /// Starts to show the progress of an engine.
    pub(crate) fn draw(&self, engine: Engine) -> Drawing {
        let mut drawing = Drawing { line: self.clone(), ticker: None };
        if self.0.is_hidden() {
            return drawing;
        }
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            self.0.set_style(style);
        }
        let line = self.clone();
        let start = Instant::now();
        drawing.ticker = Some(Ticker::start(INTERVAL, move || {
            line.0.set_message(message(&engine, start.elapsed()));
            line.0.tick();
        }));
        drawing
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        drop(self.ticker.take());
        self.line.0.finish_and_clear();
    }
}

/// Rows, rows per second, epoch and memory.
fn message(engine: &Engine, elapsed: Duration) -> String {
    let progress = engine.progress();
    let rows: u64 = progress.sources.iter().map(|source| source.rows).sum();
    let rate = (rows as f64 / elapsed.as_secs_f64()) as u64;
    let memory = Memory::of_this_process()
        .map_or(String::new(), |memory| format!(", {} of memory", HumanBytes(memory.now)));
    format!(
        "{} rows, {} rows/s, epoch {}{memory}",
        grouped(rows),
        grouped(rate),
        grouped(progress.complete)
    )
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A writer that clears the line while it writes.
pub(crate) struct Aside<W> {
    pub(crate) to: W,
    pub(crate) line: ProgressLine,
}

impl<W: Write> Write for Aside<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.aside(|| self.to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.line.aside(|| self.to.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")]
        {
            assert_eq!(grouped(number), expected);
        }
    }
}
