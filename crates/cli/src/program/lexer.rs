//! The little of SQL's lexical structure that decides where a statement ends.

/// Where in a text something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Outside of quotes and comments. Quotation marks themselves count as here.
    Code,
    /// In a comment.
    Comment,
    /// Between quotation marks of this kind.
    Quoted(char),
    /// In a dollar-quoted string.
    DollarQuoted,
}

/// Walks over a text, which may come in pieces as long as each ends with the end of a line.
#[derive(Debug, Default)]
pub struct Lexer {
    state: State,
    /// How many characters of a word there are just before, and whether the last one is an E.
    word: usize,
    after_e: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Code,
    LineComment,
    /// Comments nest: how deep.
    BlockComment(usize),
    Quoted {
        mark: char,
        /// Whether a backslash takes away the meaning of what follows, as in `E'\''`.
        backslash: bool,
    },
    /// Ends with the tag that it began with, such as `$$` or `$body$`.
    DollarQuoted(String),
}

impl Lexer {
    /// Passes over the next character, or the few that belong together, at the start of `rest`: where they
    /// stand, and how many bytes they take. `None` at the end.
    pub fn next(&mut self, rest: &str) -> Option<(Place, usize)> {
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

    /// Whether there are quotes or a comment to be closed.
    pub fn is_open(&self) -> bool {
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

    /// The characters of `text` that stand in code.
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
    fn quotes_and_comments_are_passed_over() {
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
