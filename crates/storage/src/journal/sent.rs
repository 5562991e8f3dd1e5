//! Records on their way to another process, one after the other as in a [`Group`](super::Group).

use bytes::Bytes;

use crate::journal::format::{RECORD_HEADER, digest, get, record_checksum};

/// Records that another process has sent, in order. Each is compared with its checksum, which covers its position. After a defect there are
/// no more.
#[derive(Debug)]
pub struct SentRecords {
    bytes: Bytes,
    position: u64,
    salt: u64,
}

impl SentRecords {
    /// Reads the records of a group whose first record has this position, and whose checksums are seeded with this salt.
    pub fn new(bytes: Bytes, first: u64, salt: u64) -> SentRecords {
        SentRecords { bytes, position: first, salt }
    }

    /// Leaves out the records before this position, without a look at their checksums.
    ///
    /// # Errors
    ///
    /// If the bytes end before.
    pub fn skip_to(&mut self, position: u64) -> Result<(), &'static str> {
        while self.position < position {
            self.take()?.ok_or("a group of records has ended before its last record")?;
        }
        Ok(())
    }

    /// The bytes that have not been read.
    pub fn rest(self) -> Bytes {
        self.bytes
    }

    /// The next record and its checksum.
    fn take(&mut self) -> Result<Option<(Bytes, u64)>, &'static str> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        if self.bytes.len() < RECORD_HEADER {
            return Err("a group of records ends within the header of a record");
        }
        let header = self.bytes.split_to(RECORD_HEADER);
        let (length, checksum) = (get(&header, 0), get(&header, 8));
        if length > self.bytes.len() as u64 {
            return Err("a group of records ends within a record");
        }
        self.position += 1;
        Ok(Some((self.bytes.split_to(length as usize), checksum)))
    }

    fn next_record(&mut self) -> Result<Option<Bytes>, &'static str> {
        let position = self.position;
        let Some((record, checksum)) = self.take()? else { return Ok(None) };
        let length = record.len() as u64;
        match checksum == record_checksum(position, length, digest(&record), self.salt) {
            true => Ok(Some(record)),
            false => Err("the checksum of a record does not match"),
        }
    }
}

impl Iterator for SentRecords {
    type Item = Result<Bytes, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_record();
        if next.is_err() {
            self.bytes = Bytes::new();
        }
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Group;

    fn sent() -> Bytes {
        let mut group = Group::new(7);
        for record in [&b"first"[..], b"", b"third"] {
            group.add(record, 99);
        }
        Bytes::copy_from_slice(group.records())
    }

    #[test]
    fn records_are_read_as_they_were_sent_from_any_position() {
        let all: Result<Vec<_>, _> = SentRecords::new(sent(), 7, 99).collect();
        assert_eq!(all, Ok(vec!["first".into(), Bytes::new(), "third".into()]));
        for (position, left) in [(7, 3), (8, 2), (9, 1), (10, 0)] {
            let mut records = SentRecords::new(sent(), 7, 99);
            assert_eq!(records.skip_to(position), Ok(()));
            let rest = records.rest();
            let rest: Result<Vec<_>, _> = SentRecords::new(rest, position, 99).collect();
            assert_eq!(rest.map(|records| records.len()), Ok(left));
        }
        assert!(SentRecords::new(sent(), 7, 99).skip_to(11).is_err());
    }

    #[test]
    fn no_byte_can_be_another_one_or_missing() {
        let whole = sent();
        let read = |bytes: Bytes, first, salt| {
            SentRecords::new(bytes, first, salt).collect::<Result<Vec<_>, _>>()
        };
        for at in 0..whole.len() {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1;
            assert!(read(bytes.into(), 7, 99).is_err(), "byte {at}");
            // Between records the bytes may end: the sender says how many there are.
            let cut = read(whole.slice(..at), 7, 99);
            assert!(cut.is_err() || [0, 21, 37].contains(&at), "cut at {at}");
        }
        assert!(read(whole.clone(), 8, 99).is_err() && read(whole, 7, 98).is_err());
    }
}
