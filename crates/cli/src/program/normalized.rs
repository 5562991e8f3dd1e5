//! The text of a statement without the parts that have no meaning.

use super::lexer::{Lexer, Place};

/// The text in lower case, without comments, and without white space except for a single space between words; what is
/// between quotation marks stays as it is.
pub(crate) fn normalized(text: &str) -> String {
    let mut lexer = Lexer::default();
    let mut normal = String::with_capacity(text.len());
    let (mut at, mut is_apart) = (0, false);
    while let Some((place, length)) = lexer.next(&text[at..]) {
        let passed = &text[at..at + length];
        at += length;
        if place == Place::Comment || place == Place::Code && passed.trim().is_empty() {
            is_apart = true;
            continue;
        }
        let is_word = |character: char| {
            character.is_alphanumeric() || matches!(character, '_' | '$' | '\'' | '"')
        };
        if is_apart && normal.ends_with(is_word) && passed.starts_with(is_word) {
            normal.push(' ');
        }
        is_apart = false;
        match place {
            Place::Code => normal.extend(passed.chars().flat_map(char::to_lowercase)),
            _ => normal.push_str(passed),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_layout_and_the_case_of_words_are_left_out() {
        let written = "\n-- one\nCREATE  VIEW V /* two */AS\n SELECT 'A  b', \"C\" FROM T WHERE f ( * )>1 -- three";
        assert_eq!(normalized(written), "create view v as select 'A  b',\"C\" from t where f(*)>1");
        assert_ne!(normalized("SELECT 'a' 'b'"), normalized("SELECT 'a''b'"));
        assert_eq!(normalized(" -- nothing"), "");
    }
}
