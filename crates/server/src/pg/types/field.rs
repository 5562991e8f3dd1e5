//! A field: the bytes of one value, as a client has sent them.

use std::borrow::Cow;

use arrow::datatypes::IntervalMonthDayNano;

use super::bytea;
use super::format::Format;
use super::numbers::decimal::{Decimal, Digits};
use super::numbers::number;
use super::pg_type::Scalar;
use super::rejected::{Rejected, Result, utf8};
use super::time::zone::Zone;
use super::time::{interval_text, moment, moment_text};

/// A value that is not NULL, in one of the formats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) format: Format,
    pub(super) bytes: &'a [u8],
}

impl<'a> Field<'a> {
    /// The text of a value.
    pub(super) fn text(bytes: &'a [u8]) -> Self {
        Self { format: Format::Text, bytes }
    }

    /// The bytes of a value.
    pub(super) fn binary(bytes: &'a [u8]) -> Self {
        Self { format: Format::Binary, bytes }
    }

    /// A boolean.
    pub(super) fn boolean(self) -> Result<bool> {
        match self.format {
            Format::Text => number::boolean(self.bytes),
            Format::Binary => self.fixed::<1>(Scalar::Bool).map(|[byte]| byte != 0),
        }
    }

    /// An integer that was sent as one of `scalar`.
    pub(super) fn integer<T: TryFrom<i128>>(self, scalar: Scalar) -> Result<T> {
        let value = match (self.format, scalar) {
            (Format::Text, _) => return number::integer(self.bytes, scalar.name()),
            (Format::Binary, Scalar::Int2) => i128::from(i16::from_be_bytes(self.fixed(scalar)?)),
            (Format::Binary, Scalar::Int4) => i128::from(i32::from_be_bytes(self.fixed(scalar)?)),
            (Format::Binary, Scalar::Oid) => i128::from(u32::from_be_bytes(self.fixed(scalar)?)),
            (Format::Binary, Scalar::Numeric) => {
                Decimal::of_binary(self.bytes, Some((38, 0)))?.unscaled
            }
            (Format::Binary, _) => i128::from(i64::from_be_bytes(self.fixed(scalar)?)),
        };
        T::try_from(value).map_err(|_| Rejected::number_range(scalar.name(), value))
    }

    /// A number of 4 bytes.
    pub(super) fn float4(self) -> Result<f32> {
        match self.format {
            Format::Text => number::float4(self.bytes),
            Format::Binary => self.fixed(Scalar::Float4).map(f32::from_be_bytes),
        }
    }

    /// A number of 8 bytes.
    pub(super) fn float8(self) -> Result<f64> {
        match self.format {
            Format::Text => number::float8(self.bytes),
            Format::Binary => self.fixed(Scalar::Float8).map(f64::from_be_bytes),
        }
    }

    /// A decimal, rounded to a column if there is one.
    pub(super) fn decimal(self, column: Option<Digits>) -> Result<Decimal> {
        match self.format {
            Format::Text => Decimal::of_text(self.bytes, column),
            Format::Binary => Decimal::of_binary(self.bytes, column),
        }
    }

    /// A text that was sent as one of `scalar`.
    pub(super) fn string(self, scalar: Scalar) -> Result<Cow<'a, str>> {
        match (self.format, scalar) {
            (Format::Binary, Scalar::Uuid) => {
                Ok(uuid(u128::from_be_bytes(self.fixed(scalar)?)).into())
            }
            (Format::Text, Scalar::Uuid) => match uuid_of_text(self.bytes) {
                Some(value) => Ok(uuid(value).into()),
                None => Err(Rejected::text("uuid", self.bytes)),
            },
            // Its first byte is a version.
            (Format::Binary, Scalar::Jsonb) => match self.bytes {
                [1, text @ ..] => Ok(utf8(text)?.into()),
                _ => Err(Rejected::binary("jsonb")),
            },
            _ => Ok(utf8(self.bytes)?.into()),
        }
    }

    /// Bytes.
    pub(super) fn blob(self) -> Result<Cow<'a, [u8]>> {
        match self.format {
            Format::Text => bytea::read(self.bytes).map(Cow::Owned),
            Format::Binary => Ok(Cow::Borrowed(self.bytes)),
        }
    }

    /// The days of a date from 1970.
    pub(super) fn date(self) -> Result<i32> {
        match self.format {
            Format::Text => moment_text::date(self.bytes),
            Format::Binary => moment::date_from_2000(i32::from_be_bytes(self.fixed(Scalar::Date)?)),
        }
    }

    /// The microseconds of a time from midnight.
    pub(super) fn time(self) -> Result<i64> {
        match self.format {
            Format::Text => moment_text::time(self.bytes),
            Format::Binary => moment::time(i64::from_be_bytes(self.fixed(Scalar::Time)?)),
        }
    }

    /// The microseconds of a timestamp from 1970.
    pub(super) fn timestamp(self) -> Result<i64> {
        match self.format {
            Format::Text => moment_text::timestamp(self.bytes),
            Format::Binary => {
                moment::timestamp_from_2000(i64::from_be_bytes(self.fixed(Scalar::Timestamp)?))
            }
        }
    }

    /// The microseconds of an instant from 1970; a text that names no zone is one of `zone`.
    pub(super) fn instant(self, zone: Zone) -> Result<i64> {
        match self.format {
            Format::Text => moment_text::instant(self.bytes, zone),
            Format::Binary => self.timestamp(),
        }
    }

    /// An interval.
    pub(super) fn interval(self) -> Result<IntervalMonthDayNano> {
        match self.format {
            Format::Text => interval_text::read(self.bytes),
            Format::Binary => {
                let bytes = u128::from_be_bytes(self.fixed(Scalar::Interval)?);
                let microseconds = (bytes >> 64) as i64;
                let (days, months) = ((bytes >> 32) as i32, bytes as i32);
                interval_text::of_parts(i64::from(months), i64::from(days), microseconds)
            }
        }
    }

    /// The bytes of a value that always has as many.
    fn fixed<const N: usize>(self, scalar: Scalar) -> Result<[u8; N]> {
        self.bytes.try_into().map_err(|_| Rejected::binary(scalar.name()))
    }
}

/// The text of 16 bytes: `a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11`.
fn uuid(value: u128) -> String {
    let digits = format!("{value:032x}");
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

/// The 16 bytes of a text, with a hyphen or none after each four digits, and braces or none.
fn uuid_of_text(text: &[u8]) -> Option<u128> {
    let inside = match text {
        [b'{', inside @ .., b'}'] => inside,
        inside => inside,
    };
    let mut value = 0_u128;
    let mut digits = 0;
    let mut may_be_hyphen = false;
    for byte in inside {
        if *byte == b'-' && may_be_hyphen {
            may_be_hyphen = false;
            continue;
        }
        let digit = char::from(*byte).to_digit(16).filter(|_| digits < 32)?;
        value = value << 4 | u128::from(digit);
        digits += 1;
        may_be_hyphen = digits % 4 == 0 && digits < 32;
    }
    (digits == 32).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_texts() {
        let text = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for form in [text.to_owned(), text.replace('-', ""), format!("{{{}}}", text.to_uppercase())]
        {
            assert_eq!(Field::text(form.as_bytes()).string(Scalar::Uuid).unwrap(), text);
        }
        let bytes = uuid_of_text(text.as_bytes()).unwrap().to_be_bytes();
        assert_eq!(Field::binary(&bytes).string(Scalar::Uuid).unwrap(), text);
        for wrong in [
            "",
            "a0",
            "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1x",
        ] {
            assert!(Field::text(wrong.as_bytes()).string(Scalar::Uuid).is_err());
        }
        assert!(Field::binary(&bytes[1..]).string(Scalar::Uuid).is_err());
    }
}
