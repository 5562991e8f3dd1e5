//! Arrays as Postgres writes them: `{a,"b c",NULL}`.
//!
//! They are read where a list is expected and a text without a type is written: beside a list in a comparison, and in ANY. In CAST a
//! text is a list as DuckDB writes it.

/// The elements of an array of one dimension; `None` stands for NULL. `None` if the text is no such array.
pub(crate) fn elements(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut elements = Vec::new();
    if inner.trim().is_empty() {
        return Some(elements);
    }
    let mut rest = inner;
    loop {
        let (element, after) = element(rest.trim_start())?;
        elements.push(element);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return after.is_empty().then_some(elements),
        }
    }
}

/// The first element, and the text after it and the blanks that follow.
fn element(text: &str) -> Option<(Option<String>, &str)> {
    let is_quoted = text.starts_with('"');
    let mut value = String::new();
    let mut letters = text.char_indices().skip(usize::from(is_quoted));
    let mut has_escape = false;
    let end = loop {
        match letters.next() {
            Some((_, '\\')) => {
                value.push(letters.next()?.1);
                has_escape = true;
            }
            Some((place, '"')) if is_quoted => break place + 1,
            Some((_, '{' | '}' | '"')) if !is_quoted => return None,
            Some((place, ',')) if !is_quoted => break place,
            Some((_, letter)) => value.push(letter),
            None if is_quoted => return None,
            None => break text.len(),
        }
    };
    let after = text.get(end..)?.trim_start();
    if is_quoted {
        return Some((Some(value), after));
    }
    let value = value.trim_end();
    match value {
        "" => None,
        _ if !has_escape && value.eq_ignore_ascii_case("null") => Some((None, after)),
        _ => Some((Some(value.to_owned()), after)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_read_as_postgres_reads_them() {
        let read = |text: &str| {
            let elements = elements(text)?;
            let shown = elements.into_iter().map(|it| it.unwrap_or_else(|| "NULL!".to_owned()));
            Some(shown.collect::<Vec<_>>().join("|"))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("{}"), some(""));
        assert_eq!(read(" { a , b c } "), some("a|b c"));
        assert_eq!(read(r#"{"a,b","",null,"null",\null}"#), some("a,b||NULL!|null|null"));
        assert_eq!(read(r#"{"a\"\\", é}"#), some("a\"\\|é"));
        for wrong in ["", "a", "{a", "{,}", "{a,}", "{{a}}", r#"{"a}"#, r#"{"a"b}"#, "{a}b}"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
