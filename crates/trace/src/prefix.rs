//! The first eight bytes of a byte string, as a number that sorts as they do.

/// The first eight bytes of `bytes`, big-endian, padded with zeros.
///
/// If `prefix(a) < prefix(b)` then `a < b`; if they are equal the strings have to be compared.
#[inline]
pub(crate) fn prefix(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(chunk)
        }
    }
}

/// The number of leading bytes `a` and `b` have in common.
#[inline]
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
