//! Timestamps whose seconds are left out.

use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;

/// The literal `'2024-01-01 10:00'` with seconds, if it is one that is cast to a timestamp: Arrow asks for them.
pub(super) fn with_seconds(literal: &Expr, target: &DataType) -> Option<Expr> {
    let Expr::Literal(
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)),
        _,
    ) = literal
    else {
        return None;
    };
    if !matches!(target, DataType::Timestamp(_, _)) {
        return None;
    }
    let (minutes, rest) = text.split_at_checked("2024-01-01 10:00".len())?;
    let time = minutes.as_bytes().get("2024-01-01".len()..)?;
    let is_time = matches!(
        time,
        [b' ' | b'T' | b't', hour @ .., b':', tens, ones]
            if hour.len() == 2 && hour.iter().chain([tens, ones]).all(u8::is_ascii_digit)
    );
    let ends = !rest.starts_with(|next: char| next == ':' || next == '.' || next.is_ascii_digit());
    (is_time && ends).then(|| datafusion_expr::lit(format!("{minutes}:00{rest}")))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;
    use datafusion_expr::lit;

    use super::*;

    #[test]
    fn seconds_are_added_where_they_are_missing() {
        let timestamp = DataType::Timestamp(TimeUnit::Nanosecond, None);
        for (text, expected) in [
            ("2024-01-01 10:00", Some("2024-01-01 10:00:00")),
            ("2024-01-01T10:00Z", Some("2024-01-01T10:00:00Z")),
            ("2024-01-01 10:00+02:00", Some("2024-01-01 10:00:00+02:00")),
            ("2024-01-01 10:00:01", None),
            ("2024-01-01 100001", None),
            ("2024-01-01", None),
            ("2024-01-01 1ä:00", None),
        ] {
            assert_eq!(with_seconds(&lit(text), &timestamp), expected.map(lit), "{text}");
        }
        assert_eq!(with_seconds(&lit("2024-01-01 10:00"), &DataType::Date32), None);
    }
}
