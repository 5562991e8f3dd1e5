//! `to_char` of times, with PostgreSQL's patterns: `to_char(t, 'YYYY-MM-DD HH24:MI')`.
//!
//! DataFusion's has formats such as `%Y-%m-%d`. A format without a percent sign is a pattern.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::types::TimestampMicrosecondType;
use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use chrono::{Datelike, NaiveDateTime, Timelike};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};
use datafusion_functions::datetime;

use super::around::as_others;
use super::duckdb::{TIMESTAMP, date_time};

/// The function.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(ToChar { others: datetime::to_char() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToChar {
    /// DataFusion's, for formats.
    others: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for ToChar {
    as_others!();

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [times, ColumnarValue::Scalar(format)] = &arguments.args[..] else {
            return self.others.invoke_with_args(arguments);
        };
        let is_time = matches!(times.data_type(), DataType::Date32 | DataType::Timestamp(..));
        let pattern = match format.try_as_str().flatten() {
            Some(pattern) if is_time && !pattern.contains('%') => pattern,
            _ => return self.others.invoke_with_args(arguments),
        };
        let pieces = pieces(pattern);
        match times {
            ColumnarValue::Array(times) => Ok(ColumnarValue::Array(written(times, &pieces)?)),
            ColumnarValue::Scalar(time) => {
                let text = written(&time.to_array()?, &pieces)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&text, 0)?))
            }
        }
    }
}

fn written(times: &ArrayRef, pieces: &[Piece<'_>]) -> Result<ArrayRef> {
    let zoned = matches!(times.data_type(), DataType::Timestamp(_, Some(_)));
    let times = cast(times, &TIMESTAMP)?;
    let texts = times.as_primitive::<TimestampMicrosecondType>().iter().map(|time| {
        let Some(time) = time else { return Ok(None) };
        let time = date_time(time)?;
        let mut text = String::new();
        for piece in pieces {
            piece
                .write(time, zoned, &mut text)
                .map_err(|_| exec_datafusion_err!("out of memory"))?;
        }
        Ok(Some(text))
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

/// A part of a pattern.
enum Piece<'a> {
    Text(&'a str),
    /// A field, in capitals; as it is written; whether it is padded; and the suffix of an ordinal number.
    Field {
        field: &'static str,
        written: &'a str,
        padded: bool,
        suffix: Suffix,
    },
}

/// The suffix of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suffix {
    None,
    /// `th`, or `st` and so on.
    Lower,
    Upper,
}

/// The fields, each before those that it begins with, and the formats that read them.
const FIELDS: [(&str, &str); 53] = [
    ("IYYY", "%G"),
    ("IYY", ""),
    ("IY", ""),
    ("IDDD", ""),
    ("Y,YYY", ""),
    ("YYYY", "%Y"),
    ("YYY", ""),
    ("YY", "%y"),
    ("Y", ""),
    ("MONTH", "%B"),
    ("MON", "%b"),
    ("MM", "%m"),
    ("MI", "%M"),
    ("MS", "%3f"),
    ("US", "%6f"),
    ("FF1", ""),
    ("FF2", ""),
    ("FF3", "%3f"),
    ("FF4", ""),
    ("FF5", ""),
    ("FF6", "%6f"),
    ("DDD", "%j"),
    ("DD", "%d"),
    ("DAY", "%A"),
    ("DY", "%a"),
    ("D", ""),
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("HH", "%I"),
    ("SSSSS", ""),
    ("SSSS", ""),
    ("SS", "%S"),
    ("A.M.", "%p"),
    ("P.M.", "%p"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("A.D.", ""),
    ("B.C.", ""),
    ("AD", ""),
    ("BC", ""),
    ("IW", "%V"),
    ("ID", "%u"),
    ("I", ""),
    ("WW", ""),
    ("W", ""),
    ("CC", ""),
    ("J", ""),
    ("Q", ""),
    ("RM", ""),
    ("TZH", ""),
    ("TZM", ""),
    ("TZ", ""),
    ("OF", ""),
];

fn pieces(pattern: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    let mut padded = true;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, behind) = quoted.split_once('"').unwrap_or((quoted, ""));
            pieces.push(Piece::Text(text));
            rest = behind;
            continue;
        }
        // Names in the language of the locale are not padded either.
        if rest.starts_with("FM") || rest.starts_with("TM") {
            padded = false;
            rest = &rest[2..];
            continue;
        }
        let begins = |field: &str| {
            rest.get(..field.len()).is_some_and(|start| start.eq_ignore_ascii_case(field))
        };
        match FIELDS.iter().find(|(field, _)| begins(field)) {
            Some((field, _)) => {
                let (written, behind) = rest.split_at(field.len());
                let (suffix, behind) = suffix(behind);
                pieces.push(Piece::Field { field, written, padded, suffix });
                padded = true;
                rest = behind;
            }
            None => {
                let (text, behind) = rest.split_at(first.len_utf8());
                pieces.push(Piece::Text(text));
                rest = behind;
            }
        }
    }
    pieces
}

/// The suffix with which the rest of a pattern begins, and what follows. `DDTHH24` is a day, the letter T and an hour, though
/// not in PostgreSQL.
fn suffix(rest: &str) -> (Suffix, &str) {
    let is_hour = |rest: &str| rest.starts_with(['H', 'h']);
    match rest.split_at_checked(2) {
        Some(("TH", behind)) if !is_hour(behind) => (Suffix::Upper, behind),
        Some(("th", behind)) if !is_hour(behind) => (Suffix::Lower, behind),
        _ => (Suffix::None, rest),
    }
}

impl Piece<'_> {
    /// The text of a time, which is one in UTC if it is `zoned`.
    fn write(&self, time: NaiveDateTime, zoned: bool, to: &mut String) -> std::fmt::Result {
        let (field, written, padded, suffix) = match *self {
            Piece::Text(text) => {
                to.push_str(text);
                return Ok(());
            }
            Piece::Field { field, written, padded, suffix } => (field, written, padded, suffix),
        };
        let start = to.len();
        // A number of so many digits, which are fewer without padding.
        let mut number = |value: i64, digits: usize| match padded {
            true => write!(to, "{value:0digits$}"),
            false => write!(to, "{value}"),
        };
        // There is no year 0: before 1 is 1 before Christ.
        let before = |year: i32| if year <= 0 { 1 - i64::from(year) } else { i64::from(year) };
        let (year, iso_year) = (before(time.year()), before(time.iso_week().year()));
        let microseconds = i64::from(time.nanosecond() / 1_000 % 1_000_000);
        match field {
            "YYYY" => number(year, 4),
            "YYY" => number(year % 1_000, 3),
            "YY" => number(year % 100, 2),
            "Y" => number(year % 10, 1),
            "Y,YYY" => write!(to, "{},{:03}", year / 1_000, year % 1_000),
            "IYYY" => number(iso_year, 4),
            "IYY" => number(iso_year % 1_000, 3),
            "IY" => number(iso_year % 100, 2),
            "I" => number(iso_year % 10, 1),
            "CC" if time.year() > 0 => number((year + 99) / 100, 2),
            "CC" => number(-((year + 99) / 100), 3),
            "MM" => number(time.month().into(), 2),
            "MI" => number(time.minute().into(), 2),
            "SS" => number(time.second().into(), 2),
            "SSSS" | "SSSSS" => write!(to, "{}", time.num_seconds_from_midnight()),
            "HH24" => number(time.hour().into(), 2),
            "HH12" | "HH" => number(time.hour12().1.into(), 2),
            "MS" | "FF3" => write!(to, "{:03}", microseconds / 1_000),
            "US" | "FF6" => write!(to, "{microseconds:06}"),
            "FF1" => write!(to, "{}", microseconds / 100_000),
            "FF2" => write!(to, "{:02}", microseconds / 10_000),
            "FF4" => write!(to, "{:04}", microseconds / 100),
            "FF5" => write!(to, "{:05}", microseconds / 10),
            "DDD" => number(time.ordinal().into(), 3),
            "DD" => number(time.day().into(), 2),
            "D" => number(i64::from(time.weekday().num_days_from_sunday()) + 1, 1),
            "ID" => number(time.weekday().number_from_monday().into(), 1),
            "IDDD" => {
                let week = i64::from(time.iso_week().week0());
                number(week * 7 + i64::from(time.weekday().number_from_monday()), 3)
            }
            "IW" => number(time.iso_week().week().into(), 2),
            "WW" => number(i64::from(time.ordinal0() / 7) + 1, 2),
            "W" => number(i64::from(time.day0() / 7) + 1, 1),
            "J" => number(i64::from(time.num_days_from_ce()) + 1_721_425, 1),
            "Q" => number(i64::from(time.month0() / 3) + 1, 1),
            "TZH" | "OF" => to.write_str("+00"),
            "TZM" => to.write_str("00"),
            "TZ" if !zoned => Ok(()),
            _ => self.write_name(field, written, padded, time, to),
        }?;
        let is_ordinal = to[start..].ends_with(|last: char| last.is_ascii_digit());
        match suffix {
            Suffix::None => Ok(()),
            Suffix::Lower if is_ordinal => to.write_str(ordinal(&to[start..])),
            Suffix::Upper if is_ordinal => to.write_str(&ordinal(&to[start..]).to_uppercase()),
            Suffix::Lower | Suffix::Upper => Ok(()),
        }
    }

    fn write_name(
        &self,
        field: &str,
        written: &str,
        padded: bool,
        time: NaiveDateTime,
        to: &mut String,
    ) -> std::fmt::Result {
        const ROMAN: [&str; 12] =
            ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        const DAYS: [&str; 7] =
            ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
        let (month, day) = (time.month0() as usize, time.weekday().num_days_from_monday() as usize);
        let name = match field {
            "MONTH" => MONTHS[month],
            "MON" => &MONTHS[month][..3],
            "DAY" => DAYS[day],
            "DY" => &DAYS[day][..3],
            "RM" => ROMAN[month],
            "AM" | "PM" => {
                if time.hour() < 12 {
                    "AM"
                } else {
                    "PM"
                }
            }
            "A.M." | "P.M." => {
                if time.hour() < 12 {
                    "A.M."
                } else {
                    "P.M."
                }
            }
            "AD" | "BC" => {
                if time.year() > 0 {
                    "AD"
                } else {
                    "BC"
                }
            }
            "A.D." | "B.C." => {
                if time.year() > 0 {
                    "A.D."
                } else {
                    "B.C."
                }
            }
            _ => "UTC",
        };
        let name = in_case(name.to_owned(), written);
        // Names are padded to the longest one.
        match field {
            "MONTH" | "DAY" if padded => write!(to, "{name:<9}"),
            "RM" if padded => write!(to, "{name:<4}"),
            _ => to.write_str(&name),
        }
    }
}

/// The suffix of an ordinal number.
fn ordinal(number: &str) -> &'static str {
    let digit = |place: usize| number.as_bytes().iter().rev().nth(place).copied();
    match (digit(1), digit(0)) {
        (Some(b'1'), _) => "th",
        (_, Some(b'1')) => "st",
        (_, Some(b'2')) => "nd",
        (_, Some(b'3')) => "rd",
        _ => "th",
    }
}

/// A name in the case in which its field is written: `MON`, `Mon` or `mon`.
fn in_case(name: String, written: &str) -> String {
    let mut letters = written.chars().filter(|letter| letter.is_alphabetic());
    let is_upper = |letter: Option<char>| letter.is_some_and(char::is_uppercase);
    match (is_upper(letters.next()), is_upper(letters.next())) {
        (true, true) => name.to_uppercase(),
        (true, false) => name,
        _ => name.to_lowercase(),
    }
}

/// The format that reads what a pattern writes; a format is one already.
pub(super) fn as_format(pattern: &str) -> String {
    if pattern.contains('%') || !pattern.contains(|letter: char| letter.is_ascii_alphabetic()) {
        return pattern.to_owned();
    }
    let mut format = String::new();
    for piece in pieces(pattern) {
        match piece {
            Piece::Text(text) => format.push_str(text),
            Piece::Field { field, .. } => {
                let known = FIELDS.iter().find(|(name, _)| *name == field);
                let known = known.map_or("", |(_, format)| *format);
                // Fractions are read together with the point before them.
                match (known, format.ends_with('.')) {
                    ("%3f" | "%6f", true) => {
                        format.pop();
                        format.push_str("%.f");
                    }
                    _ => format.push_str(known),
                }
            }
        }
    }
    format
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(time: &str, zoned: bool, pattern: &str) -> String {
        let time = crate::texts::cast_value(&ScalarValue::from(time), &TIMESTAMP);
        let Ok(ScalarValue::TimestampMicrosecond(Some(time), _)) = time else {
            return String::new();
        };
        let mut text = String::new();
        let time = date_time(time).unwrap_or_default();
        for piece in pieces(pattern) {
            assert!(piece.write(time, zoned, &mut text).is_ok());
        }
        text
    }

    /// Figures: PostgreSQL 15.
    #[test]
    fn all_patterns_are_those_of_postgresql() {
        const PATTERN: &str = "W|CC|J|D|WW|IDDD|IYYY|IYY|IY|I|ID|Y,YYY|YYY|Y|RM|rm|FMRM|Q|SSSS|SSSSS|MS|US|FF1|FF3|FF6|BC|ad|B.C.|\
            AM|a.m.|TZ|TZH|TZM|OF|DDD|FMDDD|DDth|DDTH|FMDDth|HH24|HH12|FMMonth|month|MON|YYYYth";
        for (time, expected) in [
            (
                "2024-03-05 14:07:09.123456",
                "1|21|2460375|3|10|065|2024|024|24|4|2|2,024|024|4|III |iii |III|1|50829|50829|123|123456|1|123|123456|AD|ad|A.D.|PM|p.m.||+00|00|+00|065|65|05th|05TH|5th|14|02|March|march    |MAR|2024th",
            ),
            (
                "0001-01-01",
                "1|01|1721426|2|01|001|0001|001|01|1|1|0,001|001|1|I   |i   |I|1|0|0|000|000000|0|000|000000|AD|ad|A.D.|AM|a.m.||+00|00|+00|001|1|01st|01ST|1st|00|12|January|january  |JAN|0001st",
            ),
            (
                "9999-12-31 23:59:59.999999",
                "5|100|5373484|6|53|362|9999|999|99|9|5|9,999|999|9|XII |xii |XII|4|86399|86399|999|999999|9|999|999999|AD|ad|A.D.|PM|p.m.||+00|00|+00|365|365|31st|31ST|31st|23|11|December|december |DEC|9999th",
            ),
            (
                "1999-01-03",
                "1|20|2451182|1|01|371|1998|998|98|8|7|1,999|999|9|I   |i   |I|1|0|0|000|000000|0|000|000000|AD|ad|A.D.|AM|a.m.||+00|00|+00|003|3|03rd|03RD|3rd|00|12|January|january  |JAN|1999th",
            ),
            (
                "2023-11-22 11:11:11",
                "4|21|2460271|4|47|325|2023|023|23|3|3|2,023|023|3|XI  |xi  |XI|4|40271|40271|000|000000|0|000|000000|AD|ad|A.D.|AM|a.m.||+00|00|+00|326|326|22nd|22ND|22nd|11|11|November|november |NOV|2023rd",
            ),
        ] {
            assert_eq!(text(time, false, PATTERN), expected, "{time}");
        }
        assert_eq!(text("2024-03-05", true, "TZ tz OF"), "UTC utc +00");
        assert_eq!(
            text("2024-03-05", false, "\"Day\" FMDay TMMonth, YYYY-MM-DDTHH24"),
            "Day Tuesday March, 2024-03-05T00"
        );
    }
}
