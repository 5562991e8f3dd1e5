//! Messages of a topic, one after the other in one buffer.

use std::ops::Range;

/// Some messages.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    all: Vec<Stored>,
    headers: Vec<StoredHeader>,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The partition it is in.
    pub partition: i32,
    /// Its place in the partition.
    pub offset: i64,
    /// When it was made, in milliseconds since 1970.
    pub timestamp: Option<i64>,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; a message without one is a tombstone.
    pub value: Option<&'a [u8]>,
}

#[derive(Clone, Debug)]
struct Stored {
    partition: i32,
    offset: i64,
    timestamp: Option<i64>,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    headers: Range<usize>,
}

#[derive(Clone, Debug)]
struct StoredHeader {
    name: Range<usize>,
    value: Option<Range<usize>>,
}

impl Messages {
    /// Adds a message.
    pub fn push<'a>(
        &mut self,
        message: Message<'_>,
        headers: impl Iterator<Item = (&'a str, Option<&'a [u8]>)>,
    ) {
        let Message { partition, offset, timestamp, key, value } = message;
        let begin = self.headers.len();
        for (name, value) in headers {
            let name = self.store(name.as_bytes());
            let value = value.map(|value| self.store(value));
            self.headers.push(StoredHeader { name, value });
        }
        let headers = begin..self.headers.len();
        let key = key.map(|key| self.store(key));
        let value = value.map(|value| self.store(value));
        self.all.push(Stored { partition, offset, timestamp, key, value, headers });
    }

    fn store(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many bytes their keys, values and headers have.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// One of them.
    pub fn get(&self, index: usize) -> Message<'_> {
        let Stored { partition, offset, timestamp, key, value, .. } = &self.all[index];
        let text = |range: &Range<usize>| &self.bytes[range.clone()];
        Message {
            partition: *partition,
            offset: *offset,
            timestamp: *timestamp,
            key: key.as_ref().map(text),
            value: value.as_ref().map(text),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Message<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The headers of one of them.
    pub fn headers(&self, index: usize) -> impl Iterator<Item = (&str, Option<&[u8]>)> {
        let headers = &self.headers[self.all[index].headers.clone()];
        headers.iter().map(|StoredHeader { name, value }| {
            // It was a text when it was stored.
            let name = str::from_utf8(&self.bytes[name.clone()]).unwrap_or_default();
            (name, value.clone().map(|value| &self.bytes[value]))
        })
    }

    /// Orders them by their partitions and offsets.
    pub fn sort(&mut self) {
        self.all.sort_unstable_by_key(|message| (message.partition, message.offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_they_were_added_in_the_order_of_their_places() {
        let mut messages = Messages::default();
        let message = |partition, offset, value| {
            let key: Option<&[u8]> = Some(b"k");
            Message { partition, offset, timestamp: Some(offset), key, value }
        };
        let all = [
            message(1, 5, Some(&b"late"[..])),
            message(0, 9, None),
            message(0, 3, Some(&b""[..])),
            message(1, 4, Some(&b"early"[..])),
        ];
        for message in all {
            let headers = [("at", Some(&b"x"[..])), ("none", None)].into_iter();
            messages.push(message, headers.filter(|_| message.partition == 0));
        }
        messages.sort();
        let expected = [all[2], all[1], all[3], all[0]];
        assert_eq!(messages.iter().collect::<Vec<_>>(), expected);
        assert_eq!(messages.bytes(), 4 + 9 + 2 * 7);
        let headers: Vec<_> = messages.headers(1).collect();
        assert_eq!(headers, [("at", Some(&b"x"[..])), ("none", None)]);
        assert_eq!(messages.headers(2).count(), 0);
    }
}
