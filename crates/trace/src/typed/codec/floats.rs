//! Floats with a total order.

use ordered_float::OrderedFloat;

use super::Codec;

macro_rules! floats {
    ($($float:ty as $bits:ty),*) => {$(
        impl Codec for OrderedFloat<$float> {
            #[inline]
            fn encode(&self, bytes: &mut Vec<u8>) {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                // Adding zero makes -0.0 one with 0.0.
                let number = if self.is_nan() { <$float>::NAN.abs() } else { self.0 + 0.0 };
                let bits = number.to_bits();
                (if bits & SIGN == 0 { bits | SIGN } else { !bits }).encode(bytes);
            }

            #[inline]
            fn decode(bytes: &mut &[u8]) -> Self {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = <$bits>::decode(bytes);
                let bits = if bits & SIGN == 0 { !bits } else { bits & !SIGN };
                OrderedFloat(<$float>::from_bits(bits))
            }
        }
    )*};
}

floats!(f32 as u32, f64 as u64);
