//! Files that are what their format allows, out of all proportion.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Sizes: rows, levels, columns.
const SIZES: [usize; 9] = [10, 127, 129, 1_000, 5_000, 20_000, 60_000, 300_000, 2_000_000];

/// A file of text, of at most some `longest` bytes before it is compressed, with the end of its name.
pub(super) fn file(rng: &mut fastrand::Rng, longest: usize) -> (&'static str, Vec<u8>) {
    let size = SIZES[rng.usize(..SIZES.len())];
    let (extension, text) =
        if rng.bool() { csv(rng, size, longest) } else { json(rng, size, longest) };
    if rng.u32(..4) > 0 {
        return (extension, text);
    }
    let zipped = match extension {
        "csv" => "csv.gz",
        "jsonl" => "jsonl.gz",
        _ => "json.gz",
    };
    (zipped, gzipped(&text))
}

/// Compressed bytes.
pub(super) fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .unwrap_or_else(|error| panic!("bytes in memory are compressed: {error}"))
}

fn csv(rng: &mut fastrand::Rng, size: usize, longest: usize) -> (&'static str, Vec<u8>) {
    let row = |item: &str| repeated(item, size, longest);
    let text = match rng.u32(..11) {
        0 => [b"id,flag,name\n1,true,\"".to_vec(), row("huge line ")].concat(),
        1 => [row("c,"), b"\n".to_vec(), row("1,")].concat(),
        2 => numbered("c#,", size.min(longest / 10)),
        3 => [b"a,b\n".to_vec(), row("1,x\n")].concat(),
        4 => [b"a,b\n".to_vec(), row("\"")].concat(),
        5 => [b"a,b\n".to_vec(), row("1,2,3\n")].concat(),
        6 => [b"a\n".to_vec(), row("9")].concat(),
        7 => [b"a,b\n1,".to_vec(), row("[")].concat(),
        8 => row("\n"),
        9 => row("\0"),
        _ => [b"a,b\n".to_vec(), row("not a number,\x1b[31m\n")].concat(),
    };
    ("csv", text)
}

fn json(rng: &mut fastrand::Rng, size: usize, longest: usize) -> (&'static str, Vec<u8>) {
    let row = |item: &str| repeated(item, size, longest);
    let text = match rng.u32(..16) {
        0 => row("["),
        1 => [row("["), row("]")].concat(),
        2 => row("{\"a\":"),
        3 => [row("{\"a\":"), b"1".to_vec(), row("}")].concat(),
        4 => [b"{\"a\":".to_vec(), row("["), row("]"), b"}\n{\"a\":1}".to_vec()].concat(),
        5 => [b"{".to_vec(), numbered("\"k#\":#,", size.min(longest / 20)), b"\"a\":1}".to_vec()]
            .concat(),
        6 => [b"{\"a\":1,\"b\":\"".to_vec(), row("x"), b"\"}".to_vec()].concat(),
        7 => [b"{\"a\":".to_vec(), row("9"), b"}".to_vec()].concat(),
        8 => [b"{\"a\":1e".to_vec(), row("9"), b"}".to_vec()].concat(),
        9 => row("{\"a\":1,\"b\":\"x\"}\n"),
        10 => row("{\"a\":\"no number\"}\n"),
        11 => row("{}"),
        13 => [
            b"{\"a\":[".to_vec(),
            row(["1,", "[],", "{},", "\"\","][rng.usize(..4)]),
            b"1]}".to_vec(),
        ]
        .concat(),
        14 => [b"{\"a\":1,\"b\":[".to_vec(), row("{\"c\":[1]},"), b"{}]}".to_vec()].concat(),
        12 => [b"[".to_vec(), row("{\"a\":1},"), b"{\"a\":2}]".to_vec()].concat(),
        _ => [b"{\"b\":\"".to_vec(), row("\\u0000\\ud83d"), b"\"}".to_vec()].concat(),
    };
    (["jsonl", "json"][rng.usize(..2)], text)
}

fn repeated(item: &str, times: usize, longest: usize) -> Vec<u8> {
    item.repeat(times.min(longest / item.len())).into_bytes()
}

/// Items in which `#` is their number.
fn numbered(item: &str, times: usize) -> Vec<u8> {
    (0..times).map(|number| item.replace('#', &number.to_string())).collect::<String>().into_bytes()
}
