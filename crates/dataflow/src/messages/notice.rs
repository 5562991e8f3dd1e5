//! DataFusion's notice about errors that it takes for its own faults.

/// The beginning of the notice that ends such a message.
const NOTICE: &str = "This issue was likely caused by a bug";

/// Names of kinds of errors that mean nothing to a user.
const KINDS: [&str; 2] = ["Internal error: ", "DataFusion error: "];

/// The message without the notice and such names. One that had the notice says instead that the cause is Alluvium, which
/// let DataFusion come so far.
pub fn without_notice(message: String) -> String {
    let cut = message.find(NOTICE);
    if cut.is_none() && !KINDS.iter().any(|kind| message.contains(kind)) {
        return message;
    }
    let mut text =
        message[..cut.unwrap_or(message.len())].trim_end_matches(['.', '\n', ' ']).to_owned();
    for kind in KINDS {
        text = text.replace(kind, "");
    }
    match cut {
        Some(_) => format!("this cannot be done yet: {text}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use datafusion_common::DataFusionError;

    use super::*;

    #[test]
    fn users_read_what_is_wrong_and_not_whom_to_tell() {
        let error = DataFusionError::Internal("a column is missing".to_owned());
        for text in [error.message().into_owned(), error.strip_backtrace()] {
            assert_eq!(without_notice(text), "this cannot be done yet: a column is missing");
        }
        let nested = "External error: Internal error: no".to_owned();
        assert_eq!(without_notice(nested), "External error: no");
        assert_eq!(without_notice("a: b".to_owned()), "a: b");
    }
}
