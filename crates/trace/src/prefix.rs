//! Eight bytes of a byte string, as a number that sorts as they do: the first ones, or those that decide.

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

/// The places of the bytes that decide between the strings of a set: the first eight at which they differ. Bytes that all have in
/// common, such as the high bytes of numbers, decide nothing.
pub(crate) struct Deciding {
    /// How many bytes all strings begin with alike.
    pub(crate) skip: usize,
    /// In ascending order.
    places: [usize; 8],
    /// How many of these there are.
    count: usize,
}

/// How many bytes are searched for such places.
const SEARCHED: usize = 32;

impl Deciding {
    /// Of the strings `all`, one of which is `first`.
    pub(crate) fn of<'a, I: Iterator<Item = &'a [u8]>>(
        first: &[u8],
        all: impl Fn() -> I,
    ) -> Deciding {
        let (mut skip, mut shortest) = (first.len(), first.len());
        for bytes in all() {
            skip = common(&first[..skip], bytes);
            shortest = shortest.min(bytes.len());
        }
        // All strings have the bytes up to there.
        let end = shortest.min(skip + SEARCHED);
        let mut differing = [0_u8; SEARCHED];
        for bytes in all() {
            let pairs = bytes[skip..end].iter().zip(&first[skip..end]);
            for (differs, (byte, other)) in differing.iter_mut().zip(pairs) {
                *differs |= byte ^ other;
            }
        }
        let (mut places, mut count) = ([0; 8], 0);
        let found = (skip..end).filter(|place| differing[place - skip] != 0);
        for (place, found) in places.iter_mut().zip(found) {
            *place = found;
            count += 1;
        }
        Deciding { skip, places, count }
    }

    /// The deciding bytes of a string, or its first ones after those that all have in common if there are no such places.
    ///
    /// If `head(a) < head(b)` then `a < b`; if they are equal the strings have to be compared.
    #[inline]
    pub(crate) fn head(&self, bytes: &[u8]) -> u64 {
        if self.count == 0 {
            return prefix(&bytes[self.skip..]);
        }
        let mut head = [0; 8];
        for (byte, &place) in head.iter_mut().zip(&self.places[..self.count]) {
            *byte = bytes[place];
        }
        u64::from_be_bytes(head)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn heads_sort_as_their_strings(
            start in vec(any::<u8>(), 0..40),
            ends in vec(vec(prop_oneof![Just(0_u8), Just(7), any::<u8>()], 0..44), 1..20),
        ) {
            let strings: Vec<Vec<u8>> = ends.iter().map(|end| [&start[..], end].concat()).collect();
            let all = || strings.iter().map(|string| &string[..]);
            let deciding = Deciding::of(&strings[0], all);
            for one in all() {
                for other in all() {
                    let order = deciding.head(one).cmp(&deciding.head(other));
                    prop_assert!(order.is_eq() || order == one.cmp(other));
                }
            }
        }
    }

    #[test]
    fn numbers_are_decided_behind_what_they_have_in_common() {
        let rows: Vec<Vec<u8>> = [(3_u64, 500_u64), (4, 70_000), (3, 70_001)]
            .iter()
            .map(|(slot, price)| [slot.to_be_bytes(), price.to_be_bytes()].concat())
            .collect();
        let deciding = Deciding::of(&rows[0], || rows.iter().map(|row| &row[..]));
        assert_eq!(deciding.skip, 7);
        assert_eq!(&deciding.places[..deciding.count], [7, 13, 14, 15]);
    }
}
