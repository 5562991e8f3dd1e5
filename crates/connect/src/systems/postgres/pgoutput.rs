//! The messages of a slot whose plugin is `pgoutput`, and the answers to them.

use bytes::{Buf as _, BufMut as _, BytesMut};

use super::failure::{Failure, Result};
use super::position::Lsn;

/// What a server sends to who follows a slot.
pub enum Replicated<'a> {
    /// A change, or what surrounds changes, and the end of the server's log as of then.
    Change(Change<'a>, Lsn),
    /// All of the log up to here was sent. Whether the server wants an answer.
    Alive(Lsn, bool),
}

/// A change of a table, or what surrounds changes.
pub enum Change<'a> {
    /// A transaction begins, whose commit is here.
    Begin(Lsn),
    /// It ends, before here.
    Commit(Lsn),
    /// A table as it is from now on.
    Relation(Relation),
    Insert {
        relation: u32,
        new: Vec<Value<'a>>,
    },
    Update {
        relation: u32,
        old: Option<Old<'a>>,
        new: Vec<Value<'a>>,
    },
    Delete {
        relation: u32,
        old: Old<'a>,
    },
    Truncate(Vec<u32>),
    /// What says nothing of rows.
    Other,
}

/// A row as it was.
pub struct Old<'a> {
    /// Whether it has all of its values, and not those of its identity alone.
    pub is_full: bool,
    pub values: Vec<Value<'a>>,
}

/// A table, as changes after it have its columns.
#[derive(Clone, Debug)]
pub struct Relation {
    pub id: u32,
    pub schema: String,
    pub name: String,
    /// The name of each column, and the number of its type.
    pub columns: Vec<(String, u32)>,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    /// A large value that did not change, and is not in the log.
    Unchanged,
    Text(&'a str),
}

/// Reads a message.
pub fn read(message: &[u8]) -> Result<Replicated<'_>> {
    let mut from = Reader(message);
    match from.byte()? {
        b'w' => {
            let (_start, end, _time) = (from.long()?, from.long()?, from.long()?);
            Ok(Replicated::Change(change(from)?, Lsn(end)))
        }
        b'k' => {
            let (end, _time) = (from.long()?, from.long()?);
            Ok(Replicated::Alive(Lsn(end), from.byte()? != 0))
        }
        _ => Err(damaged()),
    }
}

/// The answer that the log is durable here up to a place, which may ask for a message in return.
pub fn feedback(durable: Lsn, asks: bool) -> BytesMut {
    let mut message = BytesMut::with_capacity(34);
    message.put_u8(b'r');
    for _ in ["written", "flushed", "applied"] {
        message.put_u64(durable.0);
    }
    // The time is for people who watch.
    message.put_i64(0);
    message.put_u8(asks.into());
    message
}

fn change(mut from: Reader<'_>) -> Result<Change<'_>> {
    Ok(match from.byte()? {
        b'B' => Change::Begin(Lsn(from.long()?)),
        b'C' => {
            let (_flags, _commit) = (from.byte()?, from.long()?);
            Change::Commit(Lsn(from.long()?))
        }
        b'R' => Change::Relation(relation(from)?),
        b'I' => {
            let (relation, _new) = (from.int()?, from.byte()?);
            Change::Insert { relation, new: from.values()? }
        }
        b'U' => {
            let relation = from.int()?;
            let old = match from.byte()? {
                b'N' => None,
                kind => {
                    let old = Old { is_full: kind == b'O', values: from.values()? };
                    from.byte()?;
                    Some(old)
                }
            };
            Change::Update { relation, old, new: from.values()? }
        }
        b'D' => {
            let (relation, is_full) = (from.int()?, from.byte()? == b'O');
            Change::Delete { relation, old: Old { is_full, values: from.values()? } }
        }
        b'T' => {
            let (count, _options) = (from.int()?, from.byte()?);
            Change::Truncate((0..count).map(|_| from.int()).collect::<Result<_>>()?)
        }
        _ => Change::Other,
    })
}

fn relation(mut from: Reader<'_>) -> Result<Relation> {
    let id = from.int()?;
    let (schema, name) = (from.name()?.to_owned(), from.name()?.to_owned());
    let (_identity, count) = (from.byte()?, from.short()?);
    let columns = (0..count).map(|_| {
        let (_flags, name, kind, _modifier) =
            (from.byte()?, from.name()?.to_owned(), from.int()?, from.int()?);
        Ok((name, kind))
    });
    Ok(Relation { id, schema, name, columns: columns.collect::<Result<_>>()? })
}

/// What is left of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8> {
        self.0.try_get_u8().map_err(|_| damaged())
    }

    fn short(&mut self) -> Result<u16> {
        self.0.try_get_u16().map_err(|_| damaged())
    }

    fn int(&mut self) -> Result<u32> {
        self.0.try_get_u32().map_err(|_| damaged())
    }

    fn long(&mut self) -> Result<u64> {
        self.0.try_get_u64().map_err(|_| damaged())
    }

    fn text(&mut self, length: usize) -> Result<&'a str> {
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(damaged)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| damaged())
    }

    /// A text that ends with a zero.
    fn name(&mut self) -> Result<&'a str> {
        let length = memchr::memchr(0, self.0).ok_or_else(damaged)?;
        let name = self.text(length)?;
        self.byte()?;
        Ok(name)
    }

    fn values(&mut self) -> Result<Vec<Value<'a>>> {
        let count = self.short()?;
        let value = |_| {
            Ok(match self.byte()? {
                b'n' => Value::Null,
                b'u' => Value::Unchanged,
                b't' => {
                    let length = self.int()? as usize;
                    Value::Text(self.text(length)?)
                }
                _ => return Err(damaged()),
            })
        };
        (0..count).map(value).collect()
    }
}

fn damaged() -> Failure {
    Failure::last("a message of the replication is none that pgoutput has")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(change: &[u8]) -> Vec<u8> {
        let mut message = vec![b'w'];
        message.extend([0; 8]);
        message.extend(77_u64.to_be_bytes());
        message.extend([0; 8]);
        message.extend(change);
        message
    }

    #[test]
    fn changes_are_read_and_others_are_damaged() {
        let mut update = b"U\0\0\0\x05K\0\x02t\0\0\0\x011nN\0\x02t\0\0\0\x012u".to_vec();
        let message = wrapped(&update);
        let Ok(Replicated::Change(Change::Update { relation: 5, old: Some(old), new }, Lsn(77))) =
            read(&message)
        else {
            panic!("an update")
        };
        assert!(!old.is_full);
        assert_eq!(old.values, [Value::Text("1"), Value::Null]);
        assert_eq!(new, [Value::Text("2"), Value::Unchanged]);
        for length in 1..update.len() {
            assert!(read(&wrapped(&update[..length])).is_err(), "{length}");
        }
        *update.last_mut().unwrap() = b'z';
        assert!(read(&wrapped(&update)).is_err());
        assert!(matches!(
            read(&wrapped(b"T\0\0\0\x02\0\0\0\0\x07\0\0\0\x09")),
            Ok(Replicated::Change(Change::Truncate(relations), _)) if relations == [7, 9]
        ));
        let alive = [&b"k"[..], &9_u64.to_be_bytes(), &[0; 8], &[1]].concat();
        assert!(matches!(read(&alive), Ok(Replicated::Alive(Lsn(9), true))));
        assert_eq!(feedback(Lsn(9), true).len(), 34);
    }
}
