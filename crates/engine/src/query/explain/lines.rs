//! The lines of an operator's box in a picture.

use super::explanation::{Explanation, Node};
use super::text::{figures_of, state_of, summary, waiting_of};

/// The most letters of a line.
const LETTERS: usize = 48;

/// The lines of an operator, and of what is known of it.
pub(super) struct Lines {
    pub(super) operation: Vec<String>,
    pub(super) known: Vec<String>,
}

impl Lines {
    pub(super) fn of(node: &Node) -> Self {
        let mut known = Vec::new();
        known.extend(node.clause.clone());
        known.extend(node.details.iter().cloned());
        if let Some(figures) = &node.figures {
            known.push(figures_of(figures));
        }
        known.extend(node.waiting.as_ref().map(waiting_of));
        for state in &node.states {
            known.push(state_of(state));
            known.extend(state.sentences.iter().cloned());
        }
        known.extend(node.sentences.iter().cloned());
        let rank = node.rank.map(|rank| format!("{rank}. ")).unwrap_or_default();
        Self {
            operation: wrapped(&format!("{rank}{}", node.operation)),
            known: known.iter().flat_map(|text| wrapped(text)).collect(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &String> {
        self.operation.iter().chain(&self.known)
    }
}

/// The sentences about the whole.
pub(super) fn heading(explanation: &Explanation) -> Vec<String> {
    summary(explanation).into_iter().chain(explanation.notes.iter().cloned()).collect()
}

/// How many letters wide a text is.
pub(super) fn width(text: &str) -> usize {
    // Letters of East Asia take two places.
    text.chars().map(|letter| if letter >= '\u{1100}' { 2 } else { 1 }).sum()
}

/// A text in lines, which end between words where there are any. It has no control characters.
fn wrapped(text: &str) -> Vec<String> {
    let text: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let mut word = word;
        loop {
            let line = lines.last_mut().expect("there is one");
            if width(line) + width(word.trim_end()) <= LETTERS {
                line.push_str(word);
                break;
            }
            if !line.is_empty() && line.trim() != "" {
                lines.push("  ".to_owned());
                continue;
            }
            // A word longer than a line.
            let mut room = LETTERS - width(line);
            let end = word.char_indices().find_map(|(place, letter)| {
                let wide = width(letter.encode_utf8(&mut [0; 4]));
                match room.checked_sub(wide) {
                    Some(rest) => {
                        room = rest;
                        None
                    }
                    None => Some(place),
                }
            });
            let (first, rest) = word.split_at(end.unwrap_or(word.len()));
            line.push_str(first);
            word = rest;
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words() {
        let word = "a".repeat(100);
        for text in ["", "a b", &"ab ".repeat(100), &word, &format!("x {word} y"), "ö\n\t\0"] {
            let lines = wrapped(text);
            assert!(lines.iter().all(|line| width(line) <= LETTERS), "{lines:?}");
            let letters = |text: &str| -> String {
                text.chars().filter(|letter| !letter.is_whitespace() && *letter != '\0').collect()
            };
            assert_eq!(letters(&lines.concat()), letters(text));
        }
        assert_eq!(wrapped(&"ab ".repeat(20)).len(), 2);
    }
}
