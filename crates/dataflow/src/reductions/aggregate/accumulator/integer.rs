//! Integers in the fewest bytes that represent them.

/// Appends an integer, given in two's complement: a length, then the fewest bytes that represent it.
pub(super) fn push_integer(bytes: &[u8], out: &mut Vec<u8>) {
    let is_negative = bytes.last().is_some_and(|byte| byte >> 7 == 1);
    let fill = if is_negative { 0xff } else { 0 };
    let mut length = bytes.len();
    while length > 0 && bytes[length - 1] == fill {
        // The last byte must carry the sign. Zero has no bytes.
        let sign = if length == 1 { 0 } else { bytes[length - 2] >> 7 };
        if sign != fill & 1 {
            break;
        }
        length -= 1;
    }
    out.push(length as u8);
    out.extend_from_slice(&bytes[..length]);
}

/// Reads the integer at the front of `bytes` in two's complement, and advances `bytes` past it.
pub(super) fn take_integer<const WIDTH: usize>(bytes: &mut &[u8]) -> Option<[u8; WIDTH]> {
    let length = usize::from(*bytes.split_off_first()?);
    let given = bytes.split_off(..length)?;
    let is_negative = given.last().is_some_and(|byte| byte >> 7 == 1);
    let mut integer = [if is_negative { 0xff } else { 0 }; WIDTH];
    integer.get_mut(..length)?.copy_from_slice(given);
    Some(integer)
}
