//! Programs: text that is split into statements as it is read.

mod lexer;
mod lines;
mod normalized;
mod variables;

use std::fs;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

pub(crate) use lexer::{Lexer, Place};
pub(crate) use lines::Idle;
use lines::Lines;
pub(crate) use normalized::normalized;
pub(crate) use variables::{Filled, Variables, is_name};

/// A text of statements and shell commands.
pub(crate) struct Program {
    /// Its name in messages.
    pub(crate) name: String,
    /// The folder that its paths are relative to.
    pub(crate) base: PathBuf,
    lines: Lines,
    /// The text read so far, from the line on which the last piece begins.
    text: String,
    /// The number of the first line in `text`, counted from one.
    line: u64,
    /// The byte of `text` at which the last piece begins.
    started: usize,
    /// The byte of `text` at which the next piece begins.
    taken: usize,
}

/// A piece that is run at once.
#[derive(Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) kind: PieceKind,
    pub(crate) text: String,
    /// The byte of the program's retained text at which it begins.
    start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// A statement with the comments before it, up to its semicolon.
    Statement,
    /// The text after the last semicolon.
    Unfinished,
    /// A shell command: a line that begins with a dot.
    Command,
}

/// A line and a column, both counted from one.
pub(crate) type Position = (u64, u64);

impl Program {
    /// The contents of a file; paths are relative to the file's folder.
    pub(crate) fn from_file(path: &Path) -> io::Result<Self> {
        let base = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let bytes = fs::read(path)?;
        if let Err(error) = std::str::from_utf8(&bytes) {
            return Err(not_text(1, &bytes[..error.valid_up_to()]));
        }
        Ok(Self { base, ..Self::of_text(path.display().to_string(), bytes) })
    }

    /// An argument; paths are relative to the working directory, as for standard input.
    pub(crate) fn from_argument(text: String) -> Self {
        Self::of_text("<command>".into(), text)
    }

    /// Standard input, which is read only as needed.
    pub(crate) fn from_stdin() -> io::Result<Self> {
        Ok(Self::new("<stdin>".into(), Lines::stdin()?))
    }

    /// Text typed at a prompt.
    pub(crate) fn from_prompt(text: String) -> Self {
        Self::of_text("<stdin>".into(), text)
    }

    fn of_text(name: String, text: impl Into<Vec<u8>>) -> Self {
        Self::new(name, Lines::Text(Cursor::new(text.into())))
    }

    fn new(name: String, lines: Lines) -> Self {
        let base = PathBuf::new();
        Self { name, base, lines, text: String::new(), line: 1, started: 0, taken: 0 }
    }

    /// The next piece; waits only for the line on which it ends. `None` at the end of the text.
    pub(crate) fn next(&mut self) -> io::Result<Option<Piece>> {
        self.next_while(None)
    }

    /// As [`Program::next`]. While standard input is waited for, does something else again and again.
    pub(crate) fn next_while(&mut self, mut idle: Option<Idle<'_>>) -> io::Result<Option<Piece>> {
        self.drop_lines();
        let mut lexer = Lexer::default();
        let mut at = self.taken;
        // Whether there are only white space and comments so far.
        let mut is_blank = true;
        loop {
            let line = &self.text[at..];
            if is_blank && !lexer.is_open() && line.trim_start().starts_with('.') {
                return Ok(Some(self.command(at)));
            }
            while let Some((place, length)) = lexer.next(&self.text[at..]) {
                let passed = &self.text[at..at + length];
                at += length;
                if place != Place::Comment && !passed.trim().is_empty() {
                    is_blank = false;
                }
                if place == Place::Code && passed == ";" {
                    return Ok(Some(self.statement(PieceKind::Statement, at)));
                }
            }
            if !self.read_line(&mut idle)? {
                let nothing = is_blank && !lexer.is_open();
                return Ok((!nothing).then(|| self.statement(PieceKind::Unfinished, at)));
            }
        }
    }

    /// The piece from the end of the last one to `end`.
    fn statement(&mut self, kind: PieceKind, end: usize) -> Piece {
        let start = std::mem::replace(&mut self.taken, end);
        Piece { kind, text: self.text[start..end].to_string(), start }
    }

    /// The rest of a line.
    fn command(&mut self, from: usize) -> Piece {
        let blank = self.text[from..].len() - self.text[from..].trim_start().len();
        let start = from + blank;
        self.taken = self.text[start..].find('\n').map_or(self.text.len(), |end| start + end + 1);
        let text = self.text[start..self.taken].trim_end().to_string();
        Piece { kind: PieceKind::Command, text, start }
    }

    /// Drops the lines before the one on which the next piece begins.
    fn drop_lines(&mut self) {
        // There is no line's end before the last piece: lines before it are dropped already.
        let last = &self.text[self.started..self.taken];
        let start = last.rfind('\n').map_or(0, |end| self.started + end + 1);
        self.line += self.text[..start].matches('\n').count() as u64;
        self.text.drain(..start);
        self.taken -= start;
        self.started = self.taken;
    }

    /// Reads one more line; `false` at the end.
    fn read_line(&mut self, idle: &mut Option<Idle<'_>>) -> io::Result<bool> {
        let mut bytes = Vec::new();
        if self.lines.read(&mut bytes, idle)? == 0 {
            return Ok(false);
        }
        let line = String::from_utf8(bytes).map_err(|error| {
            let known = self.line + self.text.matches('\n').count() as u64;
            not_text(known, &error.as_bytes()[..error.utf8_error().valid_up_to()])
        })?;
        self.text.push_str(&line);
        Ok(true)
    }

    /// The position in the program of a byte of the last piece.
    pub(crate) fn position(&self, piece: &Piece, at: usize) -> Position {
        let before = &self.text[..piece.start + at];
        position_after((self.line, 1), before)
    }

    /// A line of the retained text.
    pub(crate) fn line(&self, number: u64) -> Option<&str> {
        self.text.lines().nth(number.checked_sub(self.line)? as usize)
    }
}

/// The position after a text that begins at `start`.
pub(crate) fn position_after((line, column): Position, text: &str) -> Position {
    let (breaks, last) = (text.matches('\n').count(), text.rsplit('\n').next().unwrap_or_default());
    let first = if breaks == 0 { column } else { 1 };
    (line + breaks as u64, first + last.chars().count() as u64)
}

/// The byte of `text` at a line and column; its end for positions past it.
pub(crate) fn offset(text: &str, (line, column): Position) -> usize {
    let mut start = 0;
    for _ in 1..line {
        match text[start..].find('\n') {
            Some(end) => start += end + 1,
            None => return text.len(),
        }
    }
    let rest = &text[start..];
    rest.char_indices()
        .nth(column.saturating_sub(1) as usize)
        .map_or(text.len(), |(at, _)| start + at)
}

/// Whether `text` is complete: empty, or ending with a complete statement or a command.
pub(crate) fn is_complete(text: &str) -> bool {
    let mut program = Program::from_prompt(text.to_string());
    let mut closed = true;
    // Reading from memory does not fail.
    while let Ok(Some(piece)) = program.next() {
        closed = piece.kind != PieceKind::Unfinished;
    }
    closed
}

fn not_text(first_line: u64, valid: &[u8]) -> io::Error {
    let line = first_line + valid.iter().filter(|&&byte| byte == b'\n').count() as u64;
    io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<(PieceKind, String, Position)> {
        let mut program = Program::from_prompt(text.into());
        let mut pieces = Vec::new();
        while let Some(piece) = program.next().unwrap() {
            pieces.push((piece.kind, piece.text.clone(), program.position(&piece, 0)));
        }
        pieces
    }

    #[test]
    fn a_program_is_split_after_semicolons_and_after_lines_that_begin_with_a_dot() {
        let text =
            "-- One;\nSELECT ';'; SELECT 2;\n\n.mode csv\n  /* ; */ .tables; \nSELECT\n.5; a";
        let of = |kind, text: &str, position| (kind, text.to_string(), position);
        let expected = [
            of(PieceKind::Statement, "-- One;\nSELECT ';';", (1, 1)),
            of(PieceKind::Statement, " SELECT 2;", (2, 12)),
            of(PieceKind::Command, ".mode csv", (4, 1)),
            of(PieceKind::Statement, "  /* ; */ .tables;", (5, 1)),
            of(PieceKind::Statement, " \nSELECT\n.5;", (5, 19)),
            of(PieceKind::Unfinished, " a", (7, 4)),
        ];
        assert_eq!(pieces(text), expected);
    }

    #[test]
    fn a_text_is_complete_when_its_last_statement_has_ended() {
        for text in [
            "",
            " \n",
            "SELECT 1;",
            "SELECT ';'; \n",
            "SELECT 1; -- one\n",
            "SELECT 1; -- one",
            "a; /* b */",
            "'it''s';",
            ".tables",
        ] {
            assert!(is_complete(text), "{text}");
        }
        for text in
            ["SELECT 1", "SELECT ';\n", "SELECT 1 -- one;\n", "/* ; ", "\";", "/* a ;", "1; 2"]
        {
            assert!(!is_complete(text), "{text}");
        }
    }

    #[test]
    fn positions_refer_to_the_whole_text_though_earlier_lines_are_dropped() {
        let mut program = Program::from_prompt("a;\nb; cé\n d;\ne".into());
        let _a = program.next().unwrap();
        let _b = program.next().unwrap();
        let c = program.next().unwrap().unwrap();
        assert_eq!(c.text, " cé\n d;");
        assert_eq!(program.position(&c, offset(&c.text, (1, 2))), (2, 4));
        assert_eq!(program.position(&c, offset(&c.text, (2, 2))), (3, 2));
        assert_eq!(program.line(2), Some("b; cé"));
        assert_eq!(program.line(1), None);
        assert_eq!(program.text, "b; cé\n d;\n");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_reported_with_their_line() {
        let mut program = Program::of_text("x".into(), b"a;\nb;\n\xFF;".to_vec());
        assert!(program.next().unwrap().is_some());
        assert!(program.next().unwrap().is_some());
        assert_eq!(program.next().unwrap_err().to_string(), "line 3 is not UTF-8");
    }
}
