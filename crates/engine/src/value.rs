//! Values of parameters and keys.

use std::fmt;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, IntervalMonthDayNanoType};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::scalar::ScalarValue;

use crate::error::{Error, Result};

/// The zone of instants: they are counted in UTC.
const UTC: &str = "UTC";

/// A value of SQL: of a parameter of a [statement](crate::Session::execute_with), or of a key of a [`View`](crate::View).
///
/// Numbers, texts, bytes and booleans of Rust become values with `into`, and `None` becomes NULL. Other types have a function
/// here, and [`Value::from_array`] makes one of each type, nested ones among them.
///
/// ```
/// use alluvium::Value;
///
/// let values: [Value; 4] = [7_i64.into(), "seven".into(), None::<i64>.into(), Value::date(20_000)];
/// assert_eq!(values[3].to_string(), "2024-10-04");
/// assert!(values[2].is_null());
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Value(ScalarValue);

impl Value {
    /// NULL, of the type that its place has.
    pub const NULL: Self = Self(ScalarValue::Null);

    /// The value of a row of an Arrow array, of any type that columns can have.
    ///
    /// # Errors
    ///
    /// Fails if the array has no such row, or if it is one of milliseconds that is beyond the days that DATE has.
    pub fn from_array(array: &dyn Array, row: usize) -> Result<Self> {
        if row >= array.len() {
            let rows = array.len();
            return Err(Error::data(format!("there is no row {row} in an array of {rows}")));
        }
        match ScalarValue::try_from_array(array, row)? {
            ScalarValue::Date64(milliseconds) => match milliseconds.map(days).transpose()? {
                Some(days) => Ok(Self::date(days)),
                None => Ok(Self(ScalarValue::Date32(None))),
            },
            value => Ok(Self(value)),
        }
    }

    /// A DECIMAL: `unscaled` by ten to the power of `-scale`.
    ///
    /// # Errors
    ///
    /// Fails if `unscaled` has more digits than `precision`, or if no DECIMAL has this precision, 1 to 38, or this scale, 0 to
    /// the precision.
    pub fn decimal(unscaled: i128, precision: u8, scale: u8) -> Result<Self> {
        if !(1..=38).contains(&precision) || scale > precision {
            return Err(Error::data(format!("there is no type DECIMAL({precision}, {scale})")));
        }
        if unscaled.unsigned_abs() >= 10_u128.pow(u32::from(precision)) {
            let message = format!("{unscaled} has more than the {precision} digits of its type");
            return Err(Error::data(message));
        }
        Ok(Self(ScalarValue::Decimal128(Some(unscaled), precision, scale as i8)))
    }

    /// A DATE: days since 1970-01-01.
    pub fn date(days: i32) -> Self {
        Self(ScalarValue::Date32(Some(days)))
    }

    /// A TIME: microseconds since midnight.
    pub fn time(microseconds: i64) -> Self {
        Self(ScalarValue::Time64Microsecond(Some(microseconds)))
    }

    /// A TIMESTAMP, of no time zone: microseconds since 1970-01-01 00:00:00.
    pub fn timestamp(microseconds: i64) -> Self {
        Self(ScalarValue::TimestampMicrosecond(Some(microseconds), None))
    }

    /// A TIMESTAMP WITH TIME ZONE: microseconds since 1970-01-01 00:00:00 UTC.
    pub fn instant(microseconds: i64) -> Self {
        Self(ScalarValue::TimestampMicrosecond(Some(microseconds), Some(UTC.into())))
    }

    /// An INTERVAL.
    pub fn interval(months: i32, days: i32, nanoseconds: i64) -> Self {
        let interval = IntervalMonthDayNanoType::make_value(months, days, nanoseconds);
        Self(ScalarValue::IntervalMonthDayNano(Some(interval)))
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Its type; `Null` of [`Value::NULL`].
    pub fn data_type(&self) -> DataType {
        self.0.data_type()
    }

    /// An array of one row that has it.
    ///
    /// # Errors
    ///
    /// Fails if Arrow has no array of its type.
    pub fn to_array(&self) -> Result<ArrayRef> {
        Ok(self.0.to_array()?)
    }

    /// A value as DataFusion has it.
    pub(crate) fn new(scalar: ScalarValue) -> Self {
        Self(scalar)
    }

    /// The values as DataFusion has them.
    pub(crate) fn scalars(values: &[Self]) -> &[ScalarValue] {
        // SAFETY: a `Value` is `repr(transparent)` over a `ScalarValue`, so slices of both have the same layout.
        unsafe { &*(values as *const [Self] as *const [ScalarValue]) }
    }
}

/// The day that milliseconds since 1970 are in.
fn days(milliseconds: i64) -> Result<i32> {
    let days = milliseconds.div_euclid(24 * 60 * 60 * 1_000);
    i32::try_from(days).map_err(|_| Error::data(format!("{milliseconds} ms are no date")))
}

/// As a query shows it.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_null() {
            return formatter.write_str("NULL");
        }
        let array = self.0.to_array().map_err(|_| fmt::Error)?;
        let options = FormatOptions::new().with_display_error(true).with_null("NULL");
        let texts = ArrayFormatter::try_new(&array, &options).map_err(|_| fmt::Error)?;
        write!(formatter, "{}", texts.value(0))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self} ({})", self.data_type())
    }
}

macro_rules! from_scalars {
    ($($native:ty),*) => {
        $(impl From<$native> for Value {
            fn from(value: $native) -> Self {
                Self(ScalarValue::from(value))
            }
        })*
    };
}

from_scalars!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, &str, String);

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self(ScalarValue::Binary(Some(bytes)))
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Self {
        value.clone()
    }
}

/// `None` is NULL.
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::NULL, T::into)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Date64Array, Int64Array, ListArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn values_are_shown_with_their_types() {
        let shown = |value: Value| format!("{value:?}");
        assert_eq!(shown(7.into()), "7 (Int32)");
        assert_eq!(shown("x".into()), "x (Utf8)");
        assert_eq!(shown(None::<i64>.into()), "NULL (Null)");
        assert_eq!(shown(Value::decimal(-150, 4, 2).unwrap()), "-1.50 (Decimal128(4, 2))");
        assert_eq!(shown(Value::time(1)), "00:00:00.000001 (Time64(µs))");
        assert_eq!(shown(Value::timestamp(0)), "1970-01-01T00:00:00 (Timestamp(µs))");
        assert_eq!(shown(Value::interval(1, 2, 0)), "1 mons 2 days (Interval(MonthDayNano))");
        assert_eq!(shown(Value::instant(i64::MIN)).split(' ').next_back(), Some("\"UTC\"))"));
    }

    #[test]
    fn any_row_of_an_array_is_a_value() {
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None])]);
        let list = Value::from_array(&lists, 0).unwrap();
        let array: ArrayRef = Arc::new(lists);
        assert_eq!(&list.to_array().unwrap(), &array);
        assert_eq!(list.to_string(), "[1, NULL]");
        let error = Value::from_array(&array, 1).unwrap_err();
        assert_eq!(error.to_string(), "there is no row 1 in an array of 1");
        let null = Value::from_array(&Int64Array::from(vec![None]), 0).unwrap();
        assert_eq!((null.is_null(), null.data_type()), (true, DataType::Int64));
    }

    #[test]
    fn milliseconds_of_dates_become_days() {
        let dates = Date64Array::from(vec![Some(-1), None, Some(i64::MIN)]);
        assert_eq!(Value::from_array(&dates, 0).unwrap(), Value::date(-1));
        assert!(Value::from_array(&dates, 1).unwrap().is_null());
        let error = Value::from_array(&dates, 2).unwrap_err();
        assert_eq!(error.to_string(), "-9223372036854775808 ms are no date");
    }

    #[test]
    fn decimals_have_digits_of_their_type() {
        let most = 10_i128.pow(38) - 1;
        let array = Value::decimal(most, 38, 0).unwrap().to_array().unwrap();
        let values = array.as_primitive::<arrow::datatypes::Decimal128Type>();
        assert_eq!(values.value(0), most);
        for (unscaled, precision, scale) in
            [(i128::MIN, 38, 0), (100, 2, 0), (0, 0, 0), (0, 39, 0), (1, 2, 3)]
        {
            assert!(Value::decimal(unscaled, precision, scale).is_err());
        }
    }
}
