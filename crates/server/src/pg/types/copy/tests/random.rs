//! Random rows with random options.

use std::iter::repeat_with;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::DataType;
use fastrand::Rng;

use super::{CopyFormat, CopyOptions, Header, decoded, encoded, schema};

const ROWS: usize = 40;

fn options(random: &mut Rng) -> CopyOptions {
    let format = [CopyFormat::Text, CopyFormat::Csv, CopyFormat::Binary][random.usize(0..3)];
    let pick = |random: &mut Rng, bytes: &[u8]| bytes[random.usize(0..bytes.len())];
    let header = [Header::Absent, Header::Present, Header::Checked][random.usize(0..3)];
    CopyOptions {
        delimiter: pick(random, b",;|\t-N~"),
        quote: pick(random, b"\"'$"),
        escape: pick(random, b"\"'\\"),
        null: ["", "\\N", "null", "7"][random.usize(0..4)].to_owned(),
        header,
        ..CopyOptions::new(format)
    }
}

fn word(random: &mut Rng) -> String {
    const CHARACTERS: [char; 20] = [
        'a', '"', '\\', '\'', '$', ',', ';', '|', '\t', '\n', '\r', 'N', '-', '.', 'ä', '🙂', ' ',
        '7', '~', '\x01',
    ];
    let length = random.usize(0..6);
    repeat_with(|| CHARACTERS[random.usize(0..20)]).take(length).collect()
}

fn rows(random: &mut Rng) -> RecordBatch {
    fn column<A: FromIterator<Option<V>>, V>(random: &mut Rng, value: impl Fn(&mut Rng) -> V) -> A {
        (0..ROWS).map(|_| (random.u8(0..6) > 0).then(|| value(random))).collect()
    }
    let decimals: Decimal128Array = column(random, |random| random.i128(-99_999..99_999));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(column::<Int64Array, _>(random, |random| random.i64(-10..10))),
        Arc::new(column::<StringArray, _>(random, word)),
        Arc::new(column::<BooleanArray, _>(random, Rng::bool)),
        Arc::new(column::<Float64Array, _>(random, |random| random.f64() * 1e-5)),
        Arc::new(decimals.with_precision_and_scale(10, 3).expect("few digits")),
        Arc::new(column::<StringArray, _>(random, word)),
    ];
    let kinds = schema([
        ("n,1", DataType::Int64),
        ("\"w\"", DataType::Utf8),
        ("b\n", DataType::Boolean),
        ("f", DataType::Float64),
        ("d", DataType::Decimal128(10, 3)),
        ("null", DataType::Utf8),
    ]);
    RecordBatch::try_new(kinds, columns).expect("columns of their types")
}

#[test]
fn rows_are_read_as_they_were_written() {
    let mut random = Rng::with_seed(5);
    let mut checked = 0;
    while checked < 600 {
        let options = options(&mut random);
        // In text a NULL is told from a value by a backslash, which values do not begin with.
        let is_told = options.format != CopyFormat::Text || options.null == "\\N";
        if options.check().is_err() || !is_told {
            continue;
        }
        checked += 1;
        let batch = rows(&mut random);
        let data = encoded(&batch, &options);
        let shown = String::from_utf8_lossy(&data);
        let size = random.usize(1..300);
        let read = decoded(&batch.schema(), &options, data.chunks(size));
        assert_eq!(read.as_ref(), Ok(&batch), "{options:?}\n{shown}");
    }
}
