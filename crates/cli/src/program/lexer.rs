//! The part of SQL's lexical structure that decides where a statement ends.

/// The lexical context of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Outside of quotes and comments, including the quotation marks themselves.
    Code,
    /// In a comment.
    Comment,
    /// Between quotation marks of this kind.
    Quoted(char),
    /// In a dollar-quoted string.
    DollarQuoted,
}

/// Scans a text, which may be passed in parts that end at the end of a line.
#[derive(Debug, Default)]
pub(crate) struct Lexer {
    state: State,
    /// The number of word characters directly before, and whether the last one is an E.
    word: usize,
    after_e: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Code,
    LineComment,
    /// Nested comments, with their depth.
    BlockComment(usize),
    Quoted {
        mark: char,
        /// Whether a backslash escapes the next character, as in `E'\''`.
        backslash: bool,
    },
    /// Ends with the same tag, such as `$$` or `$body$`.
    DollarQuoted(String),
}

impl Lexer {
    /// Scans the next character, or a token of a few characters, at the start of `rest`. Returns its context and
    /// its length in bytes; `None` at the end.
    pub(crate) fn next(&mut self, rest: &str) -> Option<(Place, usize)> {
        let character = rest.chars().next()?;
        let one = character.len_utf8();
        let (word, after_e) = (self.word, self.after_e);
        (self.word, self.after_e) = (0, false);
        let step = match &mut self.state {
            State::Code if rest.starts_with("--") => {
                self.state = State::LineComment;
                (Place::Comment, 2)
            }
            State::Code if rest.starts_with("/*") => {
                self.state = State::BlockComment(1);
                (Place::Comment, 2)
            }
            State::Code if matches!(character, '\'' | '"') => {
                let backslash = character == '\'' && word == 1 && after_e;
                self.state = State::Quoted { mark: character, backslash };
                (Place::Code, one)
            }
            State::Code => match dollar_tag(rest).filter(|_| word == 0) {
                Some(tag) => {
                    self.state = State::DollarQuoted(tag.to_string());
                    (Place::Code, tag.len())
                }
                None => {
                    if character.is_alphanumeric() || matches!(character, '_' | '$') {
                        self.word = word + 1;
                        self.after_e = matches!(character, 'e' | 'E');
                    }
                    (Place::Code, one)
                }
            },
            State::LineComment => {
                if character == '\n' {
                    self.state = State::Code;
                }
                (Place::Comment, one)
            }
            State::BlockComment(depth) => {
                let length = match () {
                    () if rest.starts_with("/*") => {
                        *depth += 1;
                        2
                    }
                    () if rest.starts_with("*/") => {
                        *depth -= 1;
                        2
                    }
                    () => one,
                };
                if *depth == 0 {
                    self.state = State::Code;
                }
                (Place::Comment, length)
            }
            State::Quoted { mark, backslash } => {
                let (mark, backslash) = (*mark, *backslash);
                if character == '\\' && backslash {
                    let escaped = rest[one..].chars().next().map_or(0, char::len_utf8);
                    (Place::Quoted(mark), one + escaped)
                } else if character != mark {
                    (Place::Quoted(mark), one)
                } else if rest[one..].starts_with(mark) {
                    (Place::Quoted(mark), 2 * one)
                } else {
                    self.state = State::Code;
                    (Place::Code, one)
                }
            }
            State::DollarQuoted(tag) if rest.starts_with(tag.as_str()) => {
                let length = tag.len();
                self.state = State::Code;
                (Place::Code, length)
            }
            State::DollarQuoted(_) => (Place::DollarQuoted, one),
        };
        Some(step)
    }

    /// Whether a quote or a block comment is open.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.state, State::Code | State::LineComment)
    }
}

/// The `$tag$` at the start of a text.
fn dollar_tag(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('$')?;
    let length =
        inner.find(|character: char| !(character.is_alphanumeric() || character == '_'))?;
    inner[length..].starts_with('$').then(|| &text[..length + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The characters of `text` in code.
    fn code(text: &str) -> String {
        let (mut lexer, mut code, mut at) = (Lexer::default(), String::new(), 0);
        while let Some((place, length)) = lexer.next(&text[at..]) {
            if place == Place::Code {
                code.push_str(&text[at..at + length]);
            }
            at += length;
        }
        code
    }

    #[test]
    fn quotes_and_comments_are_skipped() {
        for (text, expected) in [
            ("a ';' b", "a '' b"),
            ("'it''s;' b", "'' b"),
            ("\";\" b", "\"\" b"),
            ("a -- ;\nb", "a b"),
            ("a /* ; /* ; */ ; */ b", "a  b"),
            ("E'\\';' b", "E'' b"),
            ("e'a\\\\' b", "e'' b"),
            ("like'\\' b", "like'' b"),
            ("'\\' b", "'' b"),
            ("$$ ; ' $$ b", "$$$$ b"),
            ("$x$ ; $$ $x$ b", "$x$$x$ b"),
            ("a$1$ b $1 ${c}", "a$1$ b $1 ${c}"),
            ("'é;' ü", "'' ü"),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
    }
}
