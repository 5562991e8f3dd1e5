//! Sizes of memory on the command line.

/// Parses a number of bytes, such as `300000000`, `512M` or `512MiB` with powers of 1,024, or `512MB` with powers
/// of 1,000.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (power, base): (u32, usize) = match unit.as_str() {
        "" | "b" => (0, 1_024),
        "k" | "kib" => (1, 1_024),
        "m" | "mib" => (2, 1_024),
        "g" | "gib" => (3, 1_024),
        "t" | "tib" => (4, 1_024),
        "kb" => (1, 1_000),
        "mb" => (2, 1_000),
        "gb" => (3, 1_000),
        "tb" => (4, 1_000),
        _ => return Err(expected()),
    };
    let bytes = number
        .parse::<usize>()
        .ok()
        .and_then(|number| base.checked_pow(power).and_then(|unit| number.checked_mul(unit)));
    bytes.filter(|&bytes| bytes > 0).ok_or_else(expected)
}

fn expected() -> String {
    "expected a size such as 512M, 2GiB or 1500MB".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024_or_of_1000() {
        assert_eq!(parse("1"), Ok(1));
        assert_eq!(parse("512M"), Ok(512 << 20));
        assert_eq!(parse("2 GiB"), Ok(2 << 30));
        assert_eq!(parse("1500MB"), Ok(1_500_000_000));
        for wrong in ["", "M", "0", "-1", "1.5G", "2X", "99999999999T"] {
            assert_eq!(parse(wrong), Err(expected()), "{wrong}");
        }
    }
}
