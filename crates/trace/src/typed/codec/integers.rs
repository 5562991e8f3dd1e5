//! Integers: big-endian, with the sign bit of signed ones inverted.

use super::{Codec, take};

macro_rules! unsigned {
    ($($integer:ty),*) => {$(
        impl Codec for $integer {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_be_bytes());
            }

            #[inline]
            fn decode(bytes: &mut &[u8]) -> Self {
                <$integer>::from_be_bytes(take(bytes))
            }
        }
    )*};
}

macro_rules! signed {
    ($($integer:ty as $unsigned:ty),*) => {$(
        impl Codec for $integer {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) {
                (self.cast_unsigned() ^ <$integer>::MIN.cast_unsigned()).encode(bytes);
            }

            #[inline]
            fn decode(bytes: &mut &[u8]) -> Self {
                <$unsigned>::decode(bytes).cast_signed() ^ <$integer>::MIN
            }
        }
    )*};
}

/// Those whose width depends on the machine.
macro_rules! sized {
    ($($integer:ty as $fixed:ty),*) => {$(
        impl Codec for $integer {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) {
                (*self as $fixed).encode(bytes);
            }

            #[inline]
            fn decode(bytes: &mut &[u8]) -> Self {
                <$fixed>::decode(bytes).try_into().expect("a value fits the type that it came from")
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64, u128);
signed!(i8 as u8, i16 as u16, i32 as u32, i64 as u64, i128 as u128);
sized!(usize as u64, isize as i64);
