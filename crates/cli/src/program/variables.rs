//! `${NAME}` and `${NAME:-default}` in programs.

use std::collections::BTreeMap;
use std::ops::Range;

use super::lexer::{Lexer, Place};

/// The values of variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, String>);

/// A text whose variables have been filled in.
#[derive(Debug, Default)]
pub(crate) struct Filled {
    pub(crate) text: String,
    /// Ascending and disjoint.
    edits: Vec<Edit>,
}

/// A variable in the text as it was written, and its value in the text as it is run.
#[derive(Debug)]
struct Edit {
    written: Range<usize>,
    filled: Range<usize>,
}

/// A variable without a value.
#[derive(Debug, PartialEq)]
pub(crate) struct Unknown {
    /// The byte of its `${`.
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl From<String> for Filled {
    /// A text without variables.
    fn from(text: String) -> Self {
        Self { text, edits: Vec::new() }
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl Variables {
    /// Replaces variables by their values in code and between quotation marks, but not in comments. Between
    /// quotation marks, the same marks in a value are doubled.
    pub(crate) fn fill(&self, written: &str) -> Result<Filled, Unknown> {
        let mut lexer = Lexer::default();
        let mut filled = Filled::default();
        let mut at = 0;
        while let Some((place, length)) = lexer.next(&written[at..]) {
            let found = match place {
                Place::Comment => None,
                _ => Variable::at_start(&written[at..]),
            };
            let Some(variable) = found else {
                filled.text.push_str(&written[at..at + length]);
                at += length;
                continue;
            };
            let value = self.value(&variable).map_err(|message| Unknown { at, message })?;
            let from = filled.text.len();
            match place {
                Place::Quoted(mark) => {
                    filled.text.push_str(&value.replace(mark, &format!("{mark}{mark}")));
                }
                _ => filled.text.push_str(value),
            }
            let end = at + variable.length;
            filled.edits.push(Edit { written: at..end, filled: from..filled.text.len() });
            // The lexer skips the value: it does not change the context of the following text.
            at = end;
        }
        Ok(filled)
    }

    fn value<'a>(&'a self, variable: &Variable<'a>) -> Result<&'a str, String> {
        let name = variable.name;
        if let Some(value) = self.0.get(name).map(String::as_str).or(variable.default) {
            return Ok(value);
        }
        let known: Vec<_> = self.0.keys().map(String::as_str).collect();
        let known = match known[..] {
            [] => String::new(),
            _ => format!("; these are set: {}", known.join(", ")),
        };
        Err(format!("${{{name}}} has no value: add --set {name}=VALUE{known}"))
    }
}

impl Filled {
    /// The byte of the original text that a byte of the filled text comes from; for a byte of a value, the byte of
    /// the variable.
    pub(crate) fn written(&self, at: usize) -> usize {
        let before = self.edits.partition_point(|edit| edit.filled.start <= at);
        match before.checked_sub(1).map(|last| &self.edits[last]) {
            None => at,
            Some(edit) if at < edit.filled.end => edit.written.start,
            Some(edit) => at - edit.filled.end + edit.written.end,
        }
    }
}

struct Variable<'a> {
    name: &'a str,
    default: Option<&'a str>,
    /// All of it, in bytes.
    length: usize,
}

impl<'a> Variable<'a> {
    fn at_start(text: &'a str) -> Option<Self> {
        let (inside, _) = text.strip_prefix("${")?.split_once('}')?;
        let length = inside.len() + "${}".len();
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        is_name(name).then_some(Self { name, default, length })
    }
}

/// Whether a variable can have this name: letters, digits and `_`, no digit first.
pub(crate) fn is_name(name: &str) -> bool {
    let word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    name.chars().all(word)
        && !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        let pairs = [("DATA", "/o'brien"), ("K", "10"), ("EMPTY", "")];
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn variables_are_filled_in_code_and_in_quotes() {
        for (written, expected) in [
            ("LIMIT ${K}", "LIMIT 10"),
            ("'${DATA}/x${EMPTY}.csv' ${K}", "'/o''brien/x.csv' 10"),
            ("\"${DATA}\" $$${DATA}$$", "\"/o'brien\" $$/o'brien$$"),
            ("${OTHER:-a b}${K:-5}${OTHER:-}.", "a b10."),
            ("-- ${OTHER}\n/* ${K} */ ${K}", "-- ${OTHER}\n/* ${K} */ 10"),
            ("${ K} ${} ${1} ${a-b} ${K", "${ K} ${} ${1} ${a-b} ${K"),
        ] {
            assert_eq!(variables().fill(written).unwrap().text, expected, "{written}");
        }
    }

    #[test]
    fn an_unknown_name_is_found_where_it_stands() {
        let unknown = variables().fill("SELECT '${K} ${k}'").unwrap_err();
        let message = "${k} has no value: add --set k=VALUE; these are set: DATA, EMPTY, K";
        assert_eq!(unknown, Unknown { at: 13, message: message.to_string() });
    }

    #[test]
    fn places_are_those_of_the_text_as_it_was_written() {
        let written = "a ${K} b ${EMPTY} c";
        let filled = variables().fill(written).unwrap();
        assert_eq!(filled.text, "a 10 b  c");
        for (in_filled, in_written) in
            [(0, 0), (2, 2), (3, 2), (4, 6), (5, 7), (7, 17), (8, 18), (9, 19)]
        {
            assert_eq!(filled.written(in_filled), in_written, "{in_filled}");
        }
    }
}
