//! Times on the command line.

use std::time::Duration;

/// Parses a number of seconds, such as `10`, or a number with a unit: `500ms`, `10s`, `5min`, `1h`.
pub(crate) fn parse(text: &str) -> Result<Duration, &'static str> {
    let expected = "expected a time such as 500ms, 10s, 5min or 1h";
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u32 = number.parse().map_err(|_| expected)?;
    let unit = match unit.trim_start() {
        "ms" => Duration::from_millis(1),
        "" | "s" => Duration::from_secs(1),
        "min" => Duration::from_secs(60),
        "h" => Duration::from_secs(60 * 60),
        _ => return Err(expected),
    };
    Ok(unit * number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_is_of_seconds() {
        for (text, milliseconds) in [
            ("0", 0),
            ("10", 10_000),
            ("500ms", 500),
            ("1 s", 1_000),
            ("5min", 300_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for wrong in ["", "s", "-1", "1.5s", "1d", "99999999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
