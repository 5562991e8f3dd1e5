//! Keys and values as bytes that compare as they do.
//!
//! | type | bytes |
//! |---|---|
//! | `u8` … `u128`, `usize` | big-endian; `usize` as eight bytes |
//! | `i8` … `i128`, `isize` | the same, with the sign bit inverted |
//! | `OrderedFloat<f32>`, `OrderedFloat<f64>` | big-endian; negative ones with all bits inverted, others with the sign bit |
//! | `bool`, `char` | one byte, the code point in four |
//! | `String`, `Vec<u8>` | the bytes; before another part 0x00 becomes 0x00 0xFF, and 0x00 0x00 is the end |
//! | `Option<C>` | 0x00, or 0x01 and the value |
//! | tuples of up to eight, `()` | the parts, one after the other |
//!
//! # Floats
//!
//! `f32` and `f64` have no total order and cannot be data of differential-dataflow. [`OrderedFloat`] has one: all NaN are
//! equal and above everything else, and -0.0 equals 0.0. Equal values have the same bytes, so they are one key: NaN is
//! read back as one NaN, -0.0 as 0.0.

mod floats;
mod integers;
mod strings;
mod tuples;

pub use ordered_float::OrderedFloat;

/// A type whose values are stored as bytes, in their order.
///
/// # Contract
///
/// - [`encode`](Codec::encode) keeps the order: `a < b` exactly if the bytes of `a` are less than those of `b`; equal
///   values have equal bytes.
/// - It delimits itself: the bytes of no value are the beginning of the bytes of another. So a type that is made of parts
///   writes them one after the other.
/// - [`encode_last`](Codec::encode_last) keeps the order, and may leave out what says where the value ends.
/// - What was written with a method is read with its counterpart, and equals the value.
///
/// A type of your own writes its fields in the order in which its `Ord` compares them, and an enum first a byte that
/// orders its variants:
///
/// ```
/// use alluvium_trace::typed::Codec;
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct Flight {
///     airline: String,
///     number: u16,
/// }
///
/// impl Codec for Flight {
///     fn encode(&self, bytes: &mut Vec<u8>) {
///         self.airline.encode(bytes);
///         self.number.encode(bytes);
///     }
///
///     fn decode(bytes: &mut &[u8]) -> Self {
///         Flight { airline: Codec::decode(bytes), number: Codec::decode(bytes) }
///     }
/// }
///
/// let flight = Flight { airline: "LH".to_owned(), number: 400 };
/// let mut bytes = Vec::new();
/// flight.encode(&mut bytes);
/// assert_eq!(Flight::decode(&mut bytes.as_slice()), flight);
/// ```
pub trait Codec: Ord + Clone + 'static {
    /// Appends the bytes of the value, of which something may follow.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// Reads a value from the front, and leaves what follows.
    ///
    /// # Panics
    ///
    /// If the bytes were not written by [`encode`](Codec::encode) of this type.
    fn decode(bytes: &mut &[u8]) -> Self;

    /// Appends the bytes of the value, which nothing follows.
    #[inline]
    fn encode_last(&self, bytes: &mut Vec<u8>) {
        self.encode(bytes);
    }

    /// Reads a value from all of the bytes.
    ///
    /// # Panics
    ///
    /// If the bytes were not written by [`encode_last`](Codec::encode_last) of this type.
    #[inline]
    fn decode_last(mut bytes: &[u8]) -> Self {
        Self::decode(&mut bytes)
    }
}

/// Takes `N` bytes from the front.
#[inline]
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (taken, rest) = bytes.split_first_chunk().expect("an encoded value is complete");
    *bytes = rest;
    *taken
}
