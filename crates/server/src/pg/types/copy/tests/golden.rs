//! Data that Postgres has written, by the scripts in `tests/it/values`.

use arrow::array::{Array, AsArray};
use fastrand::Rng;

use super::{CopyFormat, CopyOptions, decoded, encoded, odd, options, with_header};

const TEXT: &[u8] = include_bytes!("../../../../../tests/it/values/copy.txt");
const CSV: &[u8] = include_bytes!("../../../../../tests/it/values/copy.csv");
const ODD_CSV: &[u8] = include_bytes!("../../../../../tests/it/values/odd.csv");
const HEX: &str = include_str!("../../../../../tests/it/values/copy.hex");

fn binary() -> Vec<u8> {
    let digits: Vec<u8> =
        HEX.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn odd_csv() -> CopyOptions {
    CopyOptions {
        delimiter: b';',
        quote: b'\'',
        escape: b'\\',
        null: "none".into(),
        ..options(CopyFormat::Csv)
    }
}

fn all() -> [(CopyOptions, Vec<u8>); 4] {
    [
        (options(CopyFormat::Text), TEXT.to_vec()),
        (with_header(), CSV.to_vec()),
        (odd_csv(), ODD_CSV.to_vec()),
        (options(CopyFormat::Binary), binary()),
    ]
}

#[test]
fn data_of_postgres_are_read_and_written_in_all_formats() {
    let expected = decoded(&odd(), &options(CopyFormat::Binary), [&binary()[..]]).unwrap();
    assert_eq!(expected.num_rows(), 34);
    assert_eq!(expected.column(1).as_string::<i32>().value(9), "a\tb");
    assert!(expected.column(1).is_null(32));
    for (options, data) in all() {
        let read = decoded(&odd(), &options, [&data[..]]).unwrap();
        assert_eq!(read, expected, "{options:?}");
        let written = encoded(&expected, &options);
        assert_eq!(
            String::from_utf8_lossy(&written),
            String::from_utf8_lossy(&data),
            "{options:?}"
        );
        assert!(written == data);
    }
}

#[test]
fn pieces_may_end_anywhere() {
    let mut random = Rng::with_seed(3);
    let expected = decoded(&odd(), &options(CopyFormat::Binary), [&binary()[..]]).unwrap();
    for (options, data) in all() {
        let bytes = data.chunks(1);
        assert_eq!(decoded(&odd(), &options, bytes).unwrap(), expected, "{options:?}");
        for _ in 0..50 {
            let mut pieces = Vec::new();
            let mut rest = &data[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(random.usize(0..200).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            assert_eq!(decoded(&odd(), &options, pieces).unwrap(), expected, "{options:?}");
        }
    }
}

#[test]
fn no_data_make_a_decoder_panic() {
    let mut random = Rng::with_seed(4);
    let sources = all();
    for _ in 0..4_000 {
        let (options, data) = &sources[random.usize(0..4)];
        let begin = if random.bool() { 0 } else { random.usize(0..data.len()) };
        let length = random.usize(0..600).min(data.len() - begin);
        let mut data = data[begin..begin + length].to_vec();
        for _ in 0..random.usize(0..6) {
            if !data.is_empty() {
                let place = random.usize(0..data.len());
                data[place] = if random.bool() {
                    random.u8(..)
                } else {
                    b"\\\"\n\r,\t'\0"[random.usize(0..8)]
                };
            }
        }
        let size = random.usize(1..100);
        let whole = decoded(&odd(), options, [&data[..]]);
        assert_eq!(decoded(&odd(), options, data.chunks(size)), whole);
    }
}
