//! Generating values: few distinct ones with a skewed distribution, so that rows join and group.

use super::Maker;
use crate::query::{Expr, Kind, Value};

/// 2024-01-01 00:00:00
const NEW_YEAR: i64 = 1_704_067_200;

/// When clocks change in 2024: in Berlin, New York, Berlin, New York, and on Lord Howe Island; and two midnights in Berlin.
const CHANGES: [i64; 7] = [
    1_711_846_800,
    1_730_613_600,
    1_729_990_800,
    1_710_054_000,
    1_712_415_600,
    1_711_839_600,
    1_729_980_000,
];

impl Maker {
    /// A value of a type; sometimes NULL.
    pub(super) fn value(&mut self, kind: Kind) -> Value {
        match self.once_in(6) {
            true => Value::Null,
            false => self.known(kind),
        }
    }

    /// A value of a type that is not NULL.
    pub(super) fn known(&mut self, kind: Kind) -> Value {
        // The smaller of two numbers, for a skewed distribution.
        let (one, other) = (self.below(7), self.below(7));
        let (place, larger) = (one.min(other), one.max(other));
        let number = place as i128;
        match kind {
            Kind::Boolean => Value::Boolean(place < 2),
            Kind::Unsigned => Value::Whole(number * 3),
            kind if kind.is_whole() => Value::Whole(number - 2),
            Kind::Float | Kind::Real => Value::Float(match (place, larger) {
                (0, 5..) if self.has_nan => f64::NAN,
                (1, 4..) if self.has_nan => -0.0,
                _ => [0.5, 0.0, -1.25, 2.0, 1e10, 3.5, -7.0][place],
            }),
            Kind::Decimal => Value::Decimal([150, 0, -25, 1999, 100, 7, -10_000][place], 2),
            Kind::Text => {
                let texts = ["a", "b", "", "B", "abcdefghij", "abcdefghik", "it's"];
                Value::Text(texts[place].to_owned())
            }
            Kind::Bytes => Value::Bytes(
                [&[][..], &[0], &[0, 255], &[1], &[1, 2, 3], &[255], &[7]][place].to_vec(),
            ),
            Kind::Date => Value::Date(19_723 + [0, 1, 31, -1, 59, 60, 366][place]),
            Kind::Clock => Value::Clock([0, 1, 3600, 86_399, 43_200, 60, 12_345][place]),
            Kind::Moment => {
                let step = [0, 5, 12, 60, 3600, 7, 61][place] + 10 * self.below(4) as i64;
                Value::Moment(NEW_YEAR + step)
            }
            // Half of them around the hours in which clocks change.
            Kind::Zoned => Value::Zoned(match larger % 2 {
                0 => NEW_YEAR + [0, 5, 12, 60, 3600, -1, 61][place],
                _ => CHANGES[place] + [0, -1, 1_800, -1_800][larger / 2],
            }),
            Kind::List => {
                let length = self.below(4);
                Value::List((0..length).map(|_| self.value(Kind::Integer)).collect())
            }
            Kind::Struct => Value::Struct(vec![
                ("x".to_owned(), self.value(Kind::Integer)),
                ("y".to_owned(), self.value(Kind::Text)),
            ]),
            Kind::Map => {
                let keys = ["k", "l"];
                let length = 1 + self.below(2);
                let entry = |key: &&str| ((*key).to_owned(), self.value(Kind::Integer));
                Value::Map(keys[..length].iter().map(entry).collect())
            }
            _ => Value::Null,
        }
    }

    /// A constant.
    pub(super) fn constant(&mut self, kind: Kind) -> Expr {
        Expr::literal(self.known(kind), kind)
    }
}
