//! How a file spells numbers, dates and times, if not as SQL does.

use std::sync::Arc;

use alluvium::{Error, Result};
use arrow::array::{ArrayRef, AsArray, Date32Array, StringArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use chrono::format::{Item, StrftimeItems};
use chrono::{NaiveDate, NaiveDateTime};

/// How a file spells numbers, dates and times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spelling {
    /// `DECIMAL_SEPARATOR`: whether a comma, not a point, stands before the digits of a fraction.
    has_decimal_comma: bool,
    /// `DATE_FORMAT` and `TIMESTAMP_FORMAT`: patterns of `strptime`.
    date: Option<String>,
    timestamp: Option<String>,
}

impl Spelling {
    /// `DECIMAL_SEPARATOR`: a comma or a point.
    pub fn set_decimal_separator(&mut self, value: &str) -> Result<()> {
        self.has_decimal_comma = match value {
            "," => true,
            "." => false,
            _ => {
                let message = format!("DECIMAL_SEPARATOR is ',' or '.', not \"{value}\"");
                return Err(Error::source(message));
            }
        };
        Ok(())
    }

    /// `DATE_FORMAT`, such as `%d.%m.%Y`.
    pub fn set_date_format(&mut self, value: &str) -> Result<()> {
        self.date = Some(pattern("DATE_FORMAT", value)?);
        Ok(())
    }

    /// `TIMESTAMP_FORMAT`, such as `%d/%m/%Y %H:%M`.
    pub fn set_timestamp_format(&mut self, value: &str) -> Result<()> {
        self.timestamp = Some(pattern("TIMESTAMP_FORMAT", value)?);
        Ok(())
    }

    /// Whether `DATE_FORMAT` is given.
    pub fn has_date_format(&self) -> bool {
        self.date.is_some()
    }

    /// Whether `TIMESTAMP_FORMAT` is given.
    pub fn has_timestamp_format(&self) -> bool {
        self.timestamp.is_some()
    }

    /// Texts of this spelling as texts or values that are cast to `kind` as usual; `None` if they are those already. Texts
    /// that have another spelling become what is no value of `kind`.
    pub fn usual(
        &self,
        texts: &ArrayRef,
        kind: &DataType,
    ) -> std::result::Result<Option<ArrayRef>, ArrowError> {
        let strings = || texts.as_string::<i32>().iter();
        let usual: ArrayRef = match (kind, &self.date, &self.timestamp) {
            (kind, ..) if self.has_decimal_comma && has_fraction(kind) => {
                Arc::new(strings().map(|text| text.map(swapped)).collect::<StringArray>())
            }
            (DataType::Date32, Some(pattern), _) => {
                let date = |text| {
                    let date = NaiveDate::parse_from_str(text, pattern).ok()?;
                    i32::try_from((date - NaiveDate::default()).num_days()).ok()
                };
                Arc::new(strings().map(|text| date(text?)).collect::<Date32Array>())
            }
            (DataType::Timestamp(..), _, Some(pattern)) => {
                let time = |text| {
                    let time = NaiveDateTime::parse_from_str(text, pattern).ok();
                    let day =
                        || NaiveDate::parse_from_str(text, pattern).ok()?.and_hms_opt(0, 0, 0);
                    Some(time.or_else(day)?.and_utc().timestamp_micros())
                };
                let times: TimestampMicrosecondArray = strings().map(|text| time(text?)).collect();
                cast(&times, kind)?
            }
            _ => return Ok(None),
        };
        Ok(Some(usual))
    }
}

fn has_fraction(kind: &DataType) -> bool {
    kind.is_floating() || matches!(kind, DataType::Decimal128(..) | DataType::Decimal256(..))
}

/// A number with the other separator. One that has a point, which is none, becomes no number.
fn swapped(text: &str) -> String {
    text.chars()
        .map(|char| match char {
            ',' => '.',
            '.' => ',',
            char => char,
        })
        .collect()
}

/// A pattern of `strptime` as chrono has it: `%f` are the digits of a fraction, of which there may be fewer than six.
fn pattern(name: &str, value: &str) -> Result<String> {
    let pattern = value.replace(".%f", "%.f").replace("%f", "%6f");
    match StrftimeItems::new(&pattern).any(|item| matches!(item, Item::Error)) {
        true => Err(Error::source(format!(
            "{name} \"{value}\" is no pattern of strptime, such as %d.%m.%Y %H:%M:%S"
        ))),
        false => Ok(pattern),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;
    use arrow::datatypes::TimeUnit;
    use arrow::util::display::array_value_to_string;

    use super::*;

    fn usual(spelling: &Spelling, kind: DataType, texts: &[&str]) -> Vec<String> {
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let usual = spelling.usual(&texts, &kind).unwrap().unwrap();
        let text = |row| match usual.is_null(row) {
            true => "none".to_owned(),
            false => array_value_to_string(&usual, row).unwrap(),
        };
        (0..usual.len()).map(text).collect()
    }

    #[test]
    fn dates_and_times_are_read_by_their_patterns() {
        let mut spelling = Spelling::default();
        spelling.set_date_format("%d.%m.%Y").unwrap();
        spelling.set_timestamp_format("%m/%d/%Y %H:%M:%S.%f").unwrap();
        let dates = usual(&spelling, DataType::Date32, &["29.02.2024", "2024-02-29", "30.02.2024"]);
        assert_eq!(dates, ["2024-02-29", "none", "none"]);
        let kind = DataType::Timestamp(TimeUnit::Microsecond, None);
        let times = usual(&spelling, kind, &["02/29/2024 10:11:12.5", "02/29/2024"]);
        assert_eq!(times, ["2024-02-29T10:11:12.500", "none"]);
        assert!(spelling.set_date_format("%Q").is_err());
    }

    #[test]
    fn a_point_is_no_decimal_comma() {
        let mut spelling = Spelling::default();
        spelling.set_decimal_separator(",").unwrap();
        assert_eq!(usual(&spelling, DataType::Float64, &["1,5", "1.5"]), ["1.5", "1,5"]);
        assert!(spelling.set_decimal_separator(";").is_err());
    }
}
