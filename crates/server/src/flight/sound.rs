//! Whether a message of Arrow is what it says, before it is decoded.

use arrow::ipc::{CompressionType, MessageHeader, RecordBatch, root_as_message};
use arrow_flight::FlightData;

/// The bytes before compressed ones, which say how many they are decompressed.
const PREFIX: usize = 8;
/// The length of a buffer that is not compressed although others are.
const PLAIN: i64 = -1;

/// Fails unless the buffers of a message are within its body, and have at most `limit` bytes once they are decompressed. The reader of the library takes lengths
/// as they come, and ends the process where there is no such memory.
pub(super) fn check(data: &FlightData, limit: usize) -> Result<(), String> {
    let message = root_as_message(&data.data_header).map_err(|error| error.to_string())?;
    let body = data.data_body.as_ref();
    match message.header_type() {
        MessageHeader::RecordBatch => {
            let rows = message.header_as_record_batch().ok_or("it has no rows")?;
            check_rows(&rows, body, limit)
        }
        MessageHeader::DictionaryBatch => {
            let dictionary = message.header_as_dictionary_batch();
            let rows = dictionary.and_then(|dictionary| dictionary.data());
            check_rows(&rows.ok_or("it has no dictionary")?, body, limit)
        }
        _ => Ok(()),
    }
}

fn check_rows(rows: &RecordBatch<'_>, body: &[u8], limit: usize) -> Result<(), String> {
    // Columns of NULL have rows without a byte.
    let most_rows = (limit / 8) as i64;
    let is_long = |length: i64| !(0..=most_rows).contains(&length);
    if is_long(rows.length()) {
        return Err(format!(
            "a message has {} rows, and may have {most_rows}: send smaller ones",
            rows.length()
        ));
    }
    for node in rows.nodes().iter().flatten() {
        if node.length() < 0 || !(0..=node.length()).contains(&node.null_count()) {
            return Err("a column has a length that is none".to_owned());
        }
    }
    let is_compressed = match rows.compression().map(|compression| compression.codec()) {
        None => false,
        Some(CompressionType::ZSTD) => true,
        Some(_) => return Err("it is compressed: rows are sent with ZSTD, or plain".to_owned()),
    };
    let mut bytes = 0_usize;
    for buffer in rows.buffers().iter().flatten() {
        let within = usize::try_from(buffer.offset()).ok().and_then(|first| {
            let end = first.checked_add(usize::try_from(buffer.length()).ok()?)?;
            body.get(first..end)
        });
        let within = within.ok_or("a column is longer than its message")?;
        bytes = bytes.saturating_add(match is_compressed && !within.is_empty() {
            true => decompressed(within)?,
            false => within.len(),
        });
        if bytes > limit {
            return Err(format!(
                "a message has more than {limit} bytes, decompressed, the limit \"message_bytes\": send smaller ones"
            ));
        }
    }
    Ok(())
}

/// How many bytes a buffer says that it has, decompressed.
fn decompressed(buffer: &[u8]) -> Result<usize, String> {
    let none = || "a compressed column has a length that is none".to_owned();
    let (length, rest) = buffer.split_first_chunk::<PREFIX>().ok_or_else(none)?;
    match i64::from_le_bytes(*length) {
        PLAIN => Ok(rest.len()),
        length => usize::try_from(length).map_err(|_| none()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch as Rows, StringArray};
    use arrow::ipc::writer::IpcWriteOptions;
    use arrow_flight::encode::FlightDataEncoderBuilder;
    use futures::executor::block_on;
    use futures::{TryStreamExt, stream};

    use super::*;

    fn messages(compression: Option<CompressionType>) -> Vec<FlightData> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..1000).map(|_| "text")));
        let rows = Rows::try_from_iter([("a", numbers), ("b", texts)]).expect("rows");
        let options =
            IpcWriteOptions::default().try_with_compression(compression).expect("a codec");
        let encoder = FlightDataEncoderBuilder::new().with_options(options);
        block_on(encoder.build(stream::iter([Ok(rows)])).try_collect()).expect("messages")
    }

    #[test]
    fn lengths_are_within_the_body_and_the_limit() {
        for compression in [None, Some(CompressionType::ZSTD)] {
            for message in messages(compression) {
                assert_eq!(check(&message, 1 << 20), Ok(()));
                let cut = message.data_body.slice(..message.data_body.len() / 2);
                let is_sound = message.data_body.is_empty();
                assert_eq!(
                    check(&FlightData { data_body: cut, ..message }, 1 << 20).is_ok(),
                    is_sound
                );
            }
            let rows = messages(compression).pop().expect("rows");
            assert!(check(&rows, 10_000).is_err_and(|error| error.contains("message_bytes")));
            assert!(check(&rows, 100).is_err());
        }
        let refused = messages(Some(CompressionType::LZ4_FRAME)).pop().expect("rows");
        assert!(check(&refused, 1 << 20).is_err());
        assert!(check(&FlightData::default(), 1 << 20).is_err());
    }
}
