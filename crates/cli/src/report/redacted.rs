//! Texts without what is somebody's data.

use crate::program::{Lexer, Place};

/// The text of a statement with `?` in place of each text and number, without comments.
pub(super) fn statement(text: &str) -> String {
    let (mut lexer, mut redacted, mut at) = (Lexer::default(), String::new(), 0);
    let (mut is_quoted, mut in_word, mut in_number) = (false, false, false);
    while let Some((place, length)) = lexer.next(&text[at..]) {
        let passed = &text[at..at + length];
        at += length;
        match place {
            Place::Comment => continue,
            Place::Quoted('\'') | Place::DollarQuoted => {
                if !std::mem::replace(&mut is_quoted, true) {
                    redacted.push('?');
                }
                continue;
            }
            Place::Quoted(_) => redacted.push_str(passed),
            Place::Code => {
                let is_digit = passed.starts_with(|character: char| character.is_ascii_digit());
                let is_word = passed.starts_with(is_word);
                let continues = in_number && (is_word || passed.starts_with('.'));
                match !in_word && (is_digit || continues) {
                    true if in_number => {}
                    true => redacted.push('?'),
                    false => redacted.push_str(passed),
                }
                in_number = !in_word && (is_digit || continues);
                in_word = is_word && !in_number;
            }
        }
        is_quoted = false;
    }
    redacted
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// The operation of an operator up to the first value or path in it: texts and paths are in quotation marks there, and all else begins with a digit.
pub(super) fn operation(text: &str) -> String {
    let begins = |character: char| character.is_ascii_digit() || matches!(character, '\'' | '"');
    match text.find(begins) {
        Some(end) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A sentence of an explanation without the paths of outputs.
pub(super) fn sentence(text: &str) -> String {
    const OUTPUT: &str = "output \"";
    let mut parts = text.split(OUTPUT);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let end = part.find("\" of ").or(part.find('"')).unwrap_or(part.len());
        text + OUTPUT + "…" + &part[end..]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_lose_their_values_and_comments() {
        for (text, expected) in [
            ("SELECT a1 + 17 FROM t2 -- secret", "SELECT a1 + ? FROM t2 "),
            ("WHERE b = 'it''s' AND c > 1.5e3", "WHERE b = '?' AND c > ?"),
            (
                "x = E'a\\'b' AND \"Col 5\" = $tag$secret$tag$",
                "x = E'?' AND \"Col 5\" = $tag$?$tag$",
            ),
            ("IN (1, 22, 0x3F)/* 4 */", "IN (?, ?, ?)"),
            ("a = ''", "a = ''"),
        ] {
            assert_eq!(statement(text), expected);
        }
    }

    #[test]
    fn operations_end_before_their_first_value() {
        assert_eq!(operation("join on a = b"), "join on a = b");
        assert_eq!(operation("map b where b = 'secret'"), "map b where b = …");
        assert_eq!(operation("map a + 17 AS x"), "map a + …");
        assert_eq!(operation("write changes to \"/secret.csv\""), "write changes to …");
    }

    #[test]
    fn sentences_lose_the_paths_of_outputs() {
        let said = "commits wait for the output \"/a \"b/c.csv\" of \"v\": 2 epochs wait";
        assert_eq!(sentence(said), "commits wait for the output \"…\" of \"v\": 2 epochs wait");
        assert_eq!(sentence("it keeps \"v\" twice"), "it keeps \"v\" twice");
    }
}
