//! Texts with holes.

/// A text as it comes and as it should be. Each `{}` of the first stands for any text; `{0}`, `{1}` of the second are what
/// they stand for, in order.
pub type Rewording = (&'static str, &'static str);

/// The message as the first rewording has it that fits; `None` if none does.
pub fn reworded(rewordings: &[Rewording], message: &str) -> Option<String> {
    rewordings.iter().find_map(|(pattern, text)| Some(filled(text, &holes(pattern, message)?)))
}

/// The texts that the holes of a pattern stand for, if the message is of its form: each as little as possible, the last the rest.
fn holes<'a>(pattern: &str, message: &'a str) -> Option<Vec<&'a str>> {
    let mut pieces = pattern.split("{}");
    let mut rest = message.strip_prefix(pieces.next()?)?;
    let mut holes = Vec::new();
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let hole = match pieces.peek() {
            None => rest.strip_suffix(piece)?,
            Some(_) => rest.split_once(piece)?.0,
        };
        holes.push(hole);
        rest = &rest[hole.len() + piece.len()..];
    }
    rest.is_empty().then_some(holes)
}

fn filled(text: &str, holes: &[&str]) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (number, after) = behind.split_once('}').unwrap_or((behind, ""));
        let hole = number.parse::<usize>().ok().and_then(|number| holes.get(number));
        filled.push_str(before);
        filled.push_str(hole.copied().unwrap_or_default());
        rest = after;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_reworded_around_its_values() {
        let table = &[("no {} of {} here", "{1} has no {0}"), ("nothing", "something")];
        assert_eq!(reworded(table, "no leaf of a {tree} here").unwrap(), "a {tree} has no leaf");
        assert_eq!(reworded(table, "nothing").unwrap(), "something");
        for other in ["", "no leaf of a tree", "no leaf here", "nothing at all", "so nothing"] {
            assert_eq!(reworded(table, other), None, "{other}");
        }
        assert_eq!(reworded(&[("{} and {}", "{0}, {1}")], "a and b and c").unwrap(), "a, b and c");
    }
}
