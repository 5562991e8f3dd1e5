//! Positions in topics.

use std::collections::BTreeMap;
use std::fmt;

use alluvium::{Error, Result};

/// The version of the bytes.
const VERSION: u8 = 1;

/// How many bytes a partition takes, and its number of them.
const ENTRY: usize = 12;
const NUMBER: usize = 4;

/// How many partitions the text of a position names.
const SHOWN: usize = 16;

/// A place in a topic: the offset of the next message of each partition.
///
/// Its bytes are a version, and the number and the offset of each partition, in the order of their numbers, as
/// integers of 4 and 8 bytes, the lowest first: equal positions have equal bytes. A partition that is not in it is read from
/// its first message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    next: BTreeMap<i32, i64>,
}

impl Position {
    /// The offset of the next message of a partition, if it is known.
    pub fn next(&self, partition: i32) -> Option<i64> {
        self.next.get(&partition).copied()
    }

    /// The partitions, and the offset of the next message of each, in order.
    pub fn partitions(&self) -> impl Iterator<Item = (i32, i64)> + '_ {
        self.next.iter().map(|(partition, next)| (*partition, *next))
    }

    /// The bytes that say it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(1 + ENTRY * self.next.len());
        bytes.push(VERSION);
        for (partition, next) in &self.next {
            bytes.extend_from_slice(&partition.to_le_bytes());
            bytes.extend_from_slice(&next.to_le_bytes());
        }
        bytes
    }

    /// The position that bytes say.
    ///
    /// # Errors
    /// If they are none that a position has.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let wrong = |what: &str| Error::source(format!("a position in a topic is damaged: {what}"));
        let Some((&version, entries)) = bytes.split_first() else {
            return Err(wrong("it is empty"));
        };
        if version != VERSION {
            return Err(wrong(&format!("it is of version {version}, and {VERSION} is known")));
        }
        let (entries, []) = entries.as_chunks::<ENTRY>() else {
            return Err(wrong("it ends within a partition"));
        };
        let mut next = BTreeMap::new();
        for entry in entries {
            let (partition, offset) = entry.split_at(NUMBER);
            let partition = partition.try_into().map(i32::from_le_bytes);
            let offset = offset.try_into().map(i64::from_le_bytes);
            let (Ok(partition @ 0..), Ok(offset @ 0..)) = (partition, offset) else {
                return Err(wrong("a number is negative"));
            };
            if next.last_key_value().is_some_and(|(last, _)| *last >= partition) {
                return Err(wrong("its partitions are not in order"));
            }
            next.insert(partition, offset);
        }
        Ok(Self { next })
    }
}

impl FromIterator<(i32, i64)> for Position {
    fn from_iter<I: IntoIterator<Item = (i32, i64)>>(partitions: I) -> Self {
        Self { next: partitions.into_iter().collect() }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (partition, next)) in self.next.iter().take(SHOWN).enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(to, "{space}{partition}:{next}")?;
        }
        match self.next.len() {
            0 => to.write_str("no partition"),
            partitions if partitions > SHOWN => write!(to, " … of {partitions} partitions"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        for partitions in [vec![], vec![(0, 0)], vec![(7, i64::MAX), (0, 12), (i32::MAX, 3)]] {
            let position: Position = partitions.iter().copied().collect();
            assert_eq!(Position::read(&position.bytes()).unwrap(), position);
            let reversed: Position = partitions.into_iter().rev().collect();
            assert_eq!(reversed.bytes(), position.bytes());
        }
    }

    #[test]
    fn bytes_of_version_1_stay_what_they_are() {
        let position: Position = [(0, 258), (3, 7)].into_iter().collect();
        let bytes = [1, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(position.bytes(), bytes);
        assert_eq!(position.to_string(), "0:258 3:7");
    }

    #[test]
    fn other_bytes_are_refused_and_told() {
        let good = Position::from_iter([(0, 1), (1, 2)]).bytes();
        let mut negative = good.clone();
        negative[12] = 0x80;
        let mut out_of_order = good.clone();
        out_of_order[13] = 0;
        let cases: [(&[u8], &str); 5] = [
            (&[], "it is empty"),
            (&[9], "version 9"),
            (&good[..good.len() - 1], "ends within"),
            (&negative, "negative"),
            (&out_of_order, "not in order"),
        ];
        for (bytes, expected) in cases {
            let error = Position::read(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_text_of_many_partitions_is_short() {
        let position: Position = (0..1000).map(|partition| (partition, 5)).collect();
        assert!(position.to_string().ends_with("15:5 … of 1000 partitions"));
        assert_eq!(Position::default().to_string(), "no partition");
    }
}
