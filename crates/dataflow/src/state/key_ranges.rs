//! Ranges of keys, to be read without the rest of an arrangement.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::fault::{self, Fault};
use crate::rows::codec::{CodecError, Encoded, KeyCodec};
use crate::rows::layout::{Layout, types_of};

/// The most ranges that conditions become. Beyond that one range spans them all.
const MOST_RANGES: usize = 1 << 16;

/// The keys from `low` on and below `high`, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyRange {
    low: Vec<u8>,
    /// `None` without an upper end.
    high: Option<Vec<u8>>,
}

impl KeyRange {
    /// The keys that start with these bytes.
    fn of_prefix(prefix: Vec<u8>) -> Self {
        Self { high: successor(&prefix), low: prefix }
    }

    fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }
}

/// Ascending ranges of encoded keys; no key is in two of them. Clones share them.
#[derive(Clone, Debug)]
pub struct KeyRanges(Arc<[KeyRange]>);

impl KeyRanges {
    /// All keys.
    pub fn all() -> Self {
        Self(Arc::new([KeyRange::of_prefix(Vec::new())]))
    }

    /// These encoded keys, each of all columns of a key.
    pub fn of_keys<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self::new(keys.into_iter().map(|key| KeyRange::of_prefix(key.to_vec())).collect())
    }

    /// Sorts the ranges, and makes one of those that meet.
    fn new(mut ranges: Vec<KeyRange>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by(|one, other| one.low.cmp(&other.low));
        let mut apart: Vec<KeyRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match apart.last_mut() {
                Some(last) if last.high.as_ref().is_none_or(|high| *high >= range.low) => {
                    if order_of_ends(&last.high, &range.high).is_lt() {
                        last.high = range.high;
                    }
                }
                _ => apart.push(range),
            }
        }
        Self(apart.into())
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether they hold no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ends of each range: the lower one, which is in it, and the upper one, which is not, if it has one.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.0.iter().map(|KeyRange { low, high }| (low.as_slice(), high.as_deref()))
    }

    /// The ends of one range; `None` if there is no such range.
    pub(crate) fn get(&self, number: usize) -> Option<(&[u8], Option<&[u8]>)> {
        let KeyRange { low, high } = self.0.get(number)?;
        Some((low, high.as_deref()))
    }
}

/// The least bytes above all that start with `prefix`.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut successor = prefix[..=last].to_vec();
    successor[last] += 1;
    Some(successor)
}

fn order_of_ends(one: &Option<Vec<u8>>, other: &Option<Vec<u8>>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => one.cmp(other),
        (one, other) => one.is_none().cmp(&other.is_none()),
    }
}

/// A condition on a key column. Each array has the type of the column.
#[derive(Clone, Debug)]
pub enum KeyCondition {
    /// One of these values; NULL among them stands for itself.
    In(ArrayRef),
    /// Not NULL, and between these bounds, where there are any.
    Between(Option<KeyBound>, Option<KeyBound>),
}

/// An end of the values of a column.
#[derive(Clone, Debug)]
pub struct KeyBound {
    /// One value.
    pub value: ArrayRef,
    /// Whether the value itself is within.
    pub is_inclusive: bool,
}

/// Turns conditions on the first columns of keys into ranges. Clones share the codecs.
#[derive(Clone, Debug)]
pub struct KeyEncoder {
    /// One for each key column: the bytes of a key are those of its columns, one after the other.
    columns: Arc<[KeyCodec]>,
}

impl KeyEncoder {
    /// For arrangements of this layout.
    pub fn new(layout: &Layout) -> Result<Self, CodecError> {
        let types = types_of(layout.schema(), layout.sorted_by());
        let columns = types.into_iter().map(|data_type| KeyCodec::new(&[data_type]));
        Ok(Self { columns: columns.collect::<Result<_, _>>()? })
    }

    /// The type of a key column; `None` if the key has no such column.
    pub fn data_type(&self, column: usize) -> Option<&DataType> {
        self.columns.get(column)?.types().first()
    }

    /// The keys whose first columns have these values, one in each array.
    ///
    /// Fails if there are more values than key columns, or a value is of another type than its column.
    pub fn prefix(&self, values: &[ArrayRef]) -> Result<KeyRanges, CodecError> {
        let prefix = self.encode_prefix(values)?;
        Ok(KeyRanges(Arc::new([KeyRange::of_prefix(prefix)])))
    }

    /// The keys between two bounds on the first columns. The keys that start with the values of a bound are within if it is
    /// inclusive.
    ///
    /// Fails as [`KeyEncoder::prefix`] does.
    pub fn between(
        &self,
        low: Option<(&[ArrayRef], bool)>,
        high: Option<(&[ArrayRef], bool)>,
    ) -> Result<KeyRanges, CodecError> {
        let mut range = KeyRange { low: Vec::new(), high: None };
        if let Some((values, is_inclusive)) = low {
            let prefix = self.encode_prefix(values)?;
            match is_inclusive {
                true => range.low = prefix,
                false => match successor(&prefix) {
                    Some(low) => range.low = low,
                    None => return Ok(KeyRanges::new(Vec::new())),
                },
            }
        }
        if let Some((values, is_inclusive)) = high {
            let prefix = self.encode_prefix(values)?;
            range.high = if is_inclusive { successor(&prefix) } else { Some(prefix) };
        }
        Ok(KeyRanges::new(vec![range]))
    }

    /// The keys whose first columns satisfy these conditions, which are for the key columns in order. May hold more keys
    /// if there would be too many ranges.
    ///
    /// Fails as [`KeyEncoder::prefix`] does.
    pub fn ranges(&self, conditions: &[KeyCondition]) -> Result<KeyRanges, CodecError> {
        let mut prefixes = vec![Vec::new()];
        for (column, condition) in conditions.iter().enumerate() {
            match condition {
                KeyCondition::In(values) => {
                    let values = self.encode(column, values)?;
                    if prefixes.len().saturating_mul(values.len()) > MOST_RANGES {
                        return Ok(within(&prefixes, &hull(&values)));
                    }
                    prefixes = prefixes
                        .iter()
                        .flat_map(|prefix| {
                            values.iter().map(|value| [prefix.as_slice(), value].concat())
                        })
                        .collect();
                }
                KeyCondition::Between(low, high) => {
                    let range = self.between_values(column, low.as_ref(), high.as_ref())?;
                    return Ok(within(&prefixes, &range));
                }
            }
        }
        Ok(KeyRanges::new(prefixes.into_iter().map(KeyRange::of_prefix).collect()))
    }

    fn encode(&self, column: usize, values: &ArrayRef) -> Result<Encoded, CodecError> {
        let mut encoded = Encoded::new();
        let codec = self.columns.get(column).ok_or_else(|| CodecError::Shape {
            expected: self.columns.len(),
            rows: values.len(),
            found: format!("{} columns", column + 1),
        })?;
        codec.encode(std::slice::from_ref(values), values.len(), &mut encoded)?;
        Ok(encoded)
    }

    fn encode_prefix(&self, values: &[ArrayRef]) -> Result<Vec<u8>, CodecError> {
        let mut prefix = Vec::new();
        for (column, value) in values.iter().enumerate() {
            prefix.extend_from_slice(self.encode(column, value)?.bytes());
        }
        Ok(prefix)
    }

    /// The bytes of a column that is not NULL, between two bounds.
    fn between_values(
        &self,
        column: usize,
        low: Option<&KeyBound>,
        high: Option<&KeyBound>,
    ) -> Result<KeyRange, CodecError> {
        // NULL is a zero and comes first; every other value begins with something else.
        let mut range = KeyRange { low: vec![1], high: None };
        if let Some(KeyBound { value, is_inclusive }) = low {
            let value = self.encode(column, value)?;
            let after = || successor(value.bytes()).unwrap_or_else(|| value.bytes().to_vec());
            range.low = if *is_inclusive { value.bytes().to_vec() } else { after() };
        }
        if let Some(KeyBound { value, is_inclusive }) = high {
            let value = self.encode(column, value)?;
            let is_inclusive = *is_inclusive && !fault::armed(Fault::RangeWithoutEnd);
            range.high =
                if is_inclusive { successor(value.bytes()) } else { Some(value.bytes().to_vec()) };
        }
        Ok(range)
    }
}

/// The keys that start with one of these prefixes and continue within a range.
fn within(prefixes: &[Vec<u8>], range: &KeyRange) -> KeyRanges {
    let behind = |prefix: &Vec<u8>| {
        let low = [prefix.as_slice(), &range.low].concat();
        let high = match &range.high {
            Some(high) => Some([prefix.as_slice(), high].concat()),
            None => successor(prefix),
        };
        KeyRange { low, high }
    };
    KeyRanges::new(prefixes.iter().map(behind).collect())
}

/// The range from the least of some values to the greatest.
fn hull(values: &Encoded) -> KeyRange {
    let low = values.iter().min().unwrap_or_default().to_vec();
    let high = values.iter().max().and_then(successor);
    KeyRange { low, high }
}
