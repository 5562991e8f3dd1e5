//! SQL text as tokens, blanks included: joined, they are the text.

/// Splits text into words, numbers, quoted texts, runs of blanks, and symbols.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '\'' | '"' => quoted(rest, first),
            first if first.is_whitespace() => run(rest, char::is_whitespace),
            first if first.is_alphanumeric() || first == '_' => {
                run(rest, |other| other.is_alphanumeric() || other == '_' || other == '.')
            }
            _ => {
                let two =
                    ["::", "||", "<=", ">=", "<>", "!=", "->", "=>", "--", "/*", "*/", "$$", ":="];
                if two.iter().any(|symbol| rest.starts_with(symbol)) { 2 } else { first.len_utf8() }
            }
        };
        let (token, tail) = rest.split_at(end);
        tokens.push(token);
        rest = tail;
    }
    tokens
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|other| !belongs(other)).unwrap_or(text.len())
}

/// The length of a quoted text with its quotes, or to the end.
fn quoted(text: &str, quote: char) -> usize {
    text[1..].find(quote).map_or(text.len(), |end| end + 2)
}

/// Whether a token is a number or a text.
pub(crate) fn is_literal(token: &str) -> bool {
    token.starts_with(|first: char| first == '\'' || first.is_ascii_digit())
}

/// Whether a token is a keyword or a name.
pub(crate) fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_' || first == '"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_make_up_the_text() {
        let text = "SELECT t.a::INT, 'it''s' || \"n\n\", 1.5e3 é≠(\t-- x\n'open";
        assert_eq!(tokens(text).concat(), text);
        assert_eq!(tokens("a::INT>=1.5"), ["a", "::", "INT", ">=", "1.5"]);
    }
}
