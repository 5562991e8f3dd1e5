//! Tuples, and the small types that they are often made of.

use super::{Codec, take};

impl Codec for () {
    #[inline]
    fn encode(&self, _bytes: &mut Vec<u8>) {}

    #[inline]
    fn decode(_bytes: &mut &[u8]) -> Self {}
}

impl Codec for bool {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    #[inline]
    fn decode(bytes: &mut &[u8]) -> Self {
        u8::decode(bytes) != 0
    }
}

impl Codec for char {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) {
        u32::from(*self).encode(bytes);
    }

    #[inline]
    fn decode(bytes: &mut &[u8]) -> Self {
        char::from_u32(u32::decode(bytes)).expect("an encoded character is one")
    }
}

impl<C: Codec> Codec for Option<C> {
    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.is_some().encode(bytes);
        self.iter().for_each(|value| value.encode(bytes));
    }

    #[inline]
    fn decode(bytes: &mut &[u8]) -> Self {
        bool::decode(bytes).then(|| C::decode(bytes))
    }

    #[inline]
    fn encode_last(&self, bytes: &mut Vec<u8>) {
        self.is_some().encode(bytes);
        self.iter().for_each(|value| value.encode_last(bytes));
    }

    #[inline]
    fn decode_last(mut bytes: &[u8]) -> Self {
        let [is_some] = take(&mut bytes);
        (is_some != 0).then(|| C::decode_last(bytes))
    }
}

macro_rules! tuples {
    ($(($($part:ident),*; $last:ident))*) => {$(
        impl<$($part: Codec,)* $last: Codec> Codec for ($($part,)* $last,) {
            #[expect(non_snake_case, reason = "a part is named as its type")]
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) {
                let ($($part,)* $last,) = self;
                $($part.encode(bytes);)*
                $last.encode(bytes);
            }

            #[inline]
            fn decode(bytes: &mut &[u8]) -> Self {
                ($($part::decode(bytes),)* $last::decode(bytes),)
            }

            #[expect(non_snake_case, reason = "a part is named as its type")]
            #[inline]
            fn encode_last(&self, bytes: &mut Vec<u8>) {
                let ($($part,)* $last,) = self;
                $($part.encode(bytes);)*
                $last.encode_last(bytes);
            }

            #[inline]
            fn decode_last(mut bytes: &[u8]) -> Self {
                let rest = &mut bytes;
                ($($part::decode(rest),)* $last::decode_last(rest),)
            }
        }
    )*};
}

tuples! {
    (; A)
    (A; B)
    (A, B; C)
    (A, B, C; D)
    (A, B, C, D; E)
    (A, B, C, D, E; F)
    (A, B, C, D, E, F; G)
    (A, B, C, D, E, F, G; H)
}
