//! The lengths in a stream of Arrow's IPC.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use arrow::ipc::root_as_message;

/// What each message begins with, before its length.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Fails unless each message of a stream is as long as it says, from where the file is to its end. The reader of the library allocates
/// whatever a message says before it reads it, and ends the process where there is not as much memory.
pub(super) fn check_lengths(file: &File) -> Result<(), String> {
    let mut left = file.metadata().map_err(text)?.len();
    let mut stream = BufReader::new(file);
    loop {
        let mut length = [0; 4];
        match read(&mut stream, &mut length, &mut left) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && left == 0 => {
                return Ok(());
            }
            read => read.map_err(text)?,
        }
        if length == CONTINUATION {
            read(&mut stream, &mut length, &mut left).map_err(text)?;
        }
        let length = i32::from_le_bytes(length);
        if length == 0 {
            return Ok(());
        }
        let length = fitting(i64::from(length), left)?;
        let mut message = vec![0; usize::try_from(length).map_err(text)?];
        read(&mut stream, &mut message, &mut left).map_err(text)?;
        let message = root_as_message(&message).map_err(text)?;
        let body = fitting(message.bodyLength(), left)?;
        stream.seek(SeekFrom::Current(i64::try_from(body).map_err(text)?)).map_err(text)?;
        left -= body;
    }
}

/// Reads bytes, of which so many are left.
fn read(stream: &mut impl Read, to: &mut [u8], left: &mut u64) -> io::Result<()> {
    match left.checked_sub(to.len() as u64) {
        Some(rest) => {
            *left = rest;
            stream.read_exact(to)
        }
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A length, if there are as many bytes left.
fn fitting(length: i64, left: u64) -> Result<u64, String> {
    let length = u64::try_from(length).ok().filter(|length| *length <= left);
    length.ok_or_else(|| "a message says that it is longer than it is".to_owned())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use arrow::ipc::writer::StreamWriter;

    use super::*;

    fn checked(bytes: &[u8]) -> Result<(), String> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("bytes");
        file.seek(SeekFrom::Start(0)).expect("its start");
        check_lengths(&file)
    }

    #[test]
    fn lengths_beyond_the_end_are_refused_and_no_others() {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let rows = RecordBatch::try_from_iter([("a", column)]).expect("rows");
        let mut writer = StreamWriter::try_new(Vec::new(), &rows.schema()).expect("a stream");
        (0..3).for_each(|_| writer.write(&rows).expect("rows"));
        let bytes = writer.into_inner().expect("bytes");
        assert_eq!(checked(&bytes), Ok(()));
        assert_eq!(checked(&[]), Ok(()));
        assert!(checked(&bytes[..bytes.len() / 2]).is_err());
        assert!(checked(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
        assert!(checked(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).is_err());
        // Wherever a message says how long its body is: 64 TiB.
        let mut refused = 0;
        for at in 0..bytes.len().min(2_000) {
            let mut changed = bytes.clone();
            for (byte, value) in changed[at..].iter_mut().zip([0, 0, 0, 0, 0, 0x40, 0, 0]) {
                *byte = value;
            }
            refused += usize::from(checked(&changed).is_err());
        }
        assert!(refused > 0);
    }
}
