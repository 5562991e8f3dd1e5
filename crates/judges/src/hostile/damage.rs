//! Damage to the bytes of files.

/// Numbers that are plausible as counts, offsets and lengths, and beyond.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Bytes that mean something to one of the formats.
const PIECES: [&[u8]; 24] = [
    b"\"",
    b"\"\"",
    b",",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"null",
    b"1e999999999",
    b"-",
    b"\\u0000",
    b"\\ud800",
    b"\\",
    b"PAR1",
    b"99999999999999999999999999",
    b"\x1f\x8b\x08",
];

/// Damages bytes; `other` is a file to take bytes from.
pub(super) fn damage(rng: &mut fastrand::Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let times = [1, 1, 1, 2, 3, 10][rng.usize(..6)];
    for _ in 0..times {
        once(rng, bytes, other);
    }
}

fn once(rng: &mut fastrand::Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    if bytes.is_empty() {
        bytes.extend(other);
        return;
    }
    let at = place(rng, bytes.len());
    let end = (at + 1 + length(rng)).min(bytes.len());
    match rng.u32(..14) {
        0..3 => bytes[at] ^= 1 << rng.u32(..8),
        3 => bytes[at] = rng.u8(..),
        4 => bytes.truncate(at),
        5 => bytes[at..end].fill([0, 0xff, b'9', b' '][rng.usize(..4)]),
        6 => {
            bytes.drain(at..end);
        }
        7 => {
            let piece = bytes[at..end].to_vec();
            let times = [1, 1, 10, 1_000][rng.usize(..4)];
            bytes.splice(at..at, piece.repeat(times));
        }
        8 => {
            let from = rng.usize(..=other.len());
            let piece = &other[from..(from + length(rng)).min(other.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
        9 => {
            let from = rng.usize(..=other.len());
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
        10 | 11 => {
            let number = NUMBERS[rng.usize(..NUMBERS.len())];
            let written = match rng.u32(..4) {
                0 => (number as u32).to_le_bytes().to_vec(),
                1 => number.to_le_bytes().to_vec(),
                2 => varint(number),
                // Zigzag, as Thrift writes signed numbers.
                _ => varint((number << 1) ^ (((number as i64) >> 63) as u64)),
            };
            let end = (at + written.len()).min(bytes.len());
            bytes.splice(at..end, written);
        }
        12 => {
            let piece = PIECES[rng.usize(..PIECES.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
        _ => {
            let piece = PIECES[rng.usize(..PIECES.len())];
            let times = [100, 10_000, 300_000][rng.usize(..3)];
            bytes.splice(at..at, piece.repeat(times));
        }
    }
}

/// Anywhere, or near the end, where formats have what they read first.
fn place(rng: &mut fastrand::Rng, length: usize) -> usize {
    match rng.u32(..3) {
        0 => length - 1 - rng.usize(..length.min(64)),
        1 => length - 1 - rng.usize(..length.min(4_096)),
        _ => rng.usize(..length),
    }
}

fn length(rng: &mut fastrand::Rng) -> usize {
    let most = [1, 4, 16, 100, 5_000][rng.usize(..5)];
    rng.usize(..=most)
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_damages_bytes_always_in_the_same_way() {
        let damaged = |seed| {
            let mut bytes: Vec<u8> = (0..=255).collect();
            damage(&mut fastrand::Rng::with_seed(seed), &mut bytes, b"other");
            bytes
        };
        assert!((0..100).all(|seed| damaged(seed) == damaged(seed)));
        assert!((0..100).filter(|seed| damaged(*seed) != damaged(seed + 1)).count() > 90);
    }
}
