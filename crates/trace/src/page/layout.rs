//! The header of a page: where its columns begin.

use crate::memory::SLOT;

/// The kind of a page of updates: its first two bytes.
pub const KIND: u16 = 1;

/// The version of the layout of pages of updates.
pub const VERSION: u16 = 1;

/// The length of the header, in bytes.
pub const HEADER: usize = 72;

/// The number of fields after kind and version, each a `u32`.
const FIELDS: usize = 17;

/// How large a page may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// A page is closed before it would outgrow this many bytes, unless it holds a single update.
    ///
    /// The size is estimated while a page is filled, so a page may be somewhat larger.
    pub bytes: usize,
    /// A page is closed when it has this many updates; at most [`PageLimits::MAXIMUM_UPDATES`].
    pub updates: usize,
}

impl PageLimits {
    /// The most updates of a page: indexes of times have sixteen bits.
    pub const MAXIMUM_UPDATES: usize = 1 << 16;
}

impl Default for PageLimits {
    /// Pages that fill a slot. The estimate is usually too low only by padding and the ends of columns. A page that
    /// outgrows the slot has memory of its own.
    fn default() -> Self {
        PageLimits { bytes: SLOT - 64, updates: Self::MAXIMUM_UPDATES }
    }
}

/// The header of a page: counts, strides, and the offset of each column in bytes from the start of the page.
///
/// A column that is left out has offset zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The number of `u64` lanes of a time.
    pub lanes: u32,
    /// The length of the page, a multiple of eight.
    pub length: u32,
    /// The number of keys.
    pub keys: u32,
    /// The number of values, over all keys.
    pub values: u32,
    /// The number of updates, over all values.
    pub updates: u32,
    /// The number of distinct times.
    pub times: u32,
    /// The length of every key if all are equally long; otherwise zero, and `key_offsets` is there.
    pub key_stride: u32,
    /// The length of every value if all are equally long; otherwise zero, and `value_offsets` is there.
    pub value_stride: u32,
    /// `keys + 1` ends of keys in the bytes at `keys_at`, the first of them zero.
    pub key_offsets: u32,
    /// The bytes of the keys.
    pub keys_at: u32,
    /// `keys + 1` indexes: where the values of each key start. Left out when each key has one value.
    pub value_starts: u32,
    /// `values + 1` ends of values in the bytes at `values_at`, the first of them zero.
    pub value_offsets: u32,
    /// The bytes of the values.
    pub values_at: u32,
    /// `values + 1` indexes: where the updates of each value start. Left out when each value has one.
    pub update_starts: u32,
    /// The distinct times, sorted, each as `lanes` numbers of 64 bits.
    pub times_at: u32,
    /// For each update the index of its time, in one byte up to 256 distinct times and in two above.
    /// Left out when there is one time.
    pub time_indexes: u32,
    /// For each update its weight, 64 bits. Left out when all weights are +1.
    pub weights: u32,
}

impl Layout {
    /// Reads the header of a page, or returns why these bytes have none.
    pub fn read(bytes: &[u8]) -> Result<Layout, &'static str> {
        let header = bytes.first_chunk::<HEADER>().ok_or("it is shorter than a header")?;
        if u16::from_le_bytes([header[0], header[1]]) != KIND {
            return Err("it is not a page of updates");
        }
        if u16::from_le_bytes([header[2], header[3]]) != VERSION {
            return Err("its version is not known");
        }
        let mut fields = [0; FIELDS];
        for (field, chunk) in fields.iter_mut().zip(header[4..].as_chunks::<4>().0) {
            *field = u32::from_le_bytes(*chunk);
        }
        let [
            lanes,
            length,
            keys,
            values,
            updates,
            times,
            key_stride,
            value_stride,
            key_offsets,
            keys_at,
            value_starts,
            value_offsets,
            values_at,
            update_starts,
            times_at,
            time_indexes,
            weights,
        ] = fields;
        Ok(Layout {
            lanes,
            length,
            keys,
            values,
            updates,
            times,
            key_stride,
            value_stride,
            key_offsets,
            keys_at,
            value_starts,
            value_offsets,
            values_at,
            update_starts,
            times_at,
            time_indexes,
            weights,
        })
    }

    /// The header as bytes.
    pub fn header(&self) -> [u8; HEADER] {
        let fields: [u32; FIELDS] = [
            self.lanes,
            self.length,
            self.keys,
            self.values,
            self.updates,
            self.times,
            self.key_stride,
            self.value_stride,
            self.key_offsets,
            self.keys_at,
            self.value_starts,
            self.value_offsets,
            self.values_at,
            self.update_starts,
            self.times_at,
            self.time_indexes,
            self.weights,
        ];
        let mut header = [0; HEADER];
        header[..2].copy_from_slice(&KIND.to_le_bytes());
        header[2..4].copy_from_slice(&VERSION.to_le_bytes());
        for (chunk, field) in header[4..].as_chunks_mut::<4>().0.iter_mut().zip(fields) {
            *chunk = field.to_le_bytes();
        }
        header
    }
}
