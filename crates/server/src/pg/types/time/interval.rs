//! Intervals: how they are written.

use arrow::datatypes::IntervalMonthDayNano;
use bytes::{BufMut, BytesMut};

use super::super::line::Line;
use super::moment::add_clock;

/// Writes an interval in the style of Postgres: `1 year -2 mons +3 days 04:05:06.789`.
pub(in super::super) fn put_text(interval: IntervalMonthDayNano, out: &mut BytesMut) {
    let microseconds = interval.nanoseconds / 1_000;
    let parts =
        [(interval.months / 12, "year"), (interval.months % 12, "mon"), (interval.days, "day")];
    let mut line = Line::new();
    let mut is_first = true;
    let mut is_before_negative = false;
    for (number, unit) in parts.into_iter().filter(|(number, _)| *number != 0) {
        if !is_first {
            line.byte(b' ');
        }
        if is_before_negative && number > 0 {
            line.byte(b'+');
        }
        line.signed(i64::from(number));
        line.byte(b' ');
        line.text(unit.as_bytes());
        if number != 1 {
            line.byte(b's');
        }
        is_before_negative = number < 0;
        is_first = false;
    }
    if is_first || microseconds != 0 {
        if !is_first {
            line.byte(b' ');
        }
        if microseconds < 0 {
            line.byte(b'-');
        } else if is_before_negative {
            line.byte(b'+');
        }
        add_clock(microseconds.unsigned_abs(), &mut line);
    }
    line.put(out);
}

/// Writes its microseconds, days and months.
pub(in super::super) fn put_binary(interval: IntervalMonthDayNano, out: &mut BytesMut) {
    out.put_i64(interval.nanoseconds / 1_000);
    out.put_i32(interval.days);
    out.put_i32(interval.months);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_zero_are_left_out() {
        let shown = |months, days, nanoseconds| {
            let mut out = BytesMut::new();
            put_text(IntervalMonthDayNano { months, days, nanoseconds }, &mut out);
            String::from_utf8(out.to_vec()).unwrap()
        };
        assert_eq!(shown(0, 0, 0), "00:00:00");
        assert_eq!(shown(14, 1, 0), "1 year 2 mons 1 day");
        assert_eq!(shown(-13, 3, 14_706_789_000_000), "-1 years -1 mons +3 days 04:05:06.789");
        assert_eq!(shown(0, -1, 1_000), "-1 days +00:00:00.000001");
        assert_eq!(shown(0, 0, -360_000_000_000_000), "-100:00:00");
    }
}
