//! Decoding many values at once, and again in parts if one of them is wrong.

use std::ops::Range;

/// In how many parts values are decoded again. A decoder reads all of them before it finds one that is wrong, so few
/// large steps cost less than halves.
const PARTS: usize = 16;

/// Decodes values at once or, if one is wrong, in parts, down to the ones that are. `take` gets each run of values that was
/// decoded and each single one that could not be, in order.
pub fn in_parts<T, E>(
    range: Range<usize>,
    decode: &mut impl FnMut(Range<usize>) -> Result<T, E>,
    take: &mut impl FnMut(Range<usize>, Result<T, E>),
) {
    let decoded = decode(range.clone());
    if decoded.is_ok() || range.len() <= 1 {
        return take(range, decoded);
    }
    let step = range.len().div_ceil(PARTS);
    for start in range.clone().step_by(step) {
        in_parts(start..range.end.min(start + step), decode, take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_value_is_found_alone_and_no_other_is_lost() {
        let wrong = |value: usize| value % 1000 == 7 || (300..320).contains(&value);
        for count in [0, 1, 2, 15, 16, 17, 310, 5000] {
            let mut decode = |range: Range<usize>| match range.clone().any(wrong) {
                true => Err(()),
                false => Ok(range.len()),
            };
            let mut next = 0;
            in_parts(0..count, &mut decode, &mut |range, decoded| {
                assert_eq!(range.start, next);
                next = range.end;
                match decoded {
                    Ok(length) => assert_eq!(length, range.len()),
                    Err(()) => assert!(range.len() == 1 && wrong(range.start)),
                }
            });
            assert_eq!(next, count);
        }
    }
}
