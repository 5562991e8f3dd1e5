//! The parts of a batch file around its pages.

use rkyv::{Archive, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The first eight bytes of a file, and those its trailer ends with.
pub const MAGIC: [u8; 8] = *b"alluvium";

/// The length of the header, and where the first page is.
pub const HEADER: usize = 4096;

/// The length of the trailer.
pub const TRAILER: usize = 48;

/// The feature bits that a reader must know to read a file; none are assigned yet.
pub const INCOMPATIBLE: u64 = 0;

/// The metadata of a file.
#[derive(Archive, Serialize, Debug, PartialEq)]
pub struct Metadata {
    /// The lanes of a time.
    pub lanes: u32,
    /// The elements of the lower frontier of the batch, lane by lane.
    pub lower: Vec<u64>,
    /// The elements of the upper frontier.
    pub upper: Vec<u64>,
    /// The elements of the frontier that times were advanced to.
    pub since: Vec<u64>,
    /// The number of updates.
    pub updates: u64,
    /// The number of updates with negative weights.
    pub retractions: u64,
    /// The most bytes of a page.
    pub page_bytes: u64,
    /// The most updates of a page.
    pub page_updates: u64,
    /// The common prefix of the first keys of all pages.
    pub common: Vec<u8>,
    /// The pages, in order.
    pub pages: Vec<PageEntry>,
}

/// The entry of a page in the metadata.
#[derive(Archive, Serialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEntry {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// XXH3-64 of its bytes.
    pub checksum: u64,
    /// The eight bytes of its first key after the common prefix, padded with zeros, as a big-endian number.
    pub fence: u64,
    /// Its length in bytes.
    pub length: u32,
    /// The number of its updates.
    pub updates: u32,
}

/// A feature of a file that a reader may ignore: the metadata follows a summary of a column.
pub const SUMMARY: u64 = 1;

/// The header of a file with these features that a reader may ignore.
pub fn header(compatible: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&INCOMPATIBLE.to_le_bytes());
    header[16..24].copy_from_slice(&compatible.to_le_bytes());
    let checksum = xxh3_64(&header[..HEADER - 8]);
    header[HEADER - 8..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// The feature bits of a header, those that a reader must know and those that it may ignore, or what is wrong with it.
pub fn read_header(header: &[u8; HEADER]) -> Result<(u64, u64), &'static str> {
    if header[..8] != MAGIC {
        return Err("it is not a batch file");
    }
    if xxh3_64(&header[..HEADER - 8]) != number(header, HEADER - 8) {
        return Err("the header is not what was written");
    }
    Ok((number(header, 8), number(header, 16)))
}

/// The trailer: where the metadata of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its length.
    pub length: u64,
    /// XXH3-64 of its bytes.
    pub checksum: u64,
}

impl Trailer {
    /// The trailer as bytes.
    pub fn bytes(&self) -> [u8; TRAILER] {
        let mut bytes = [0; TRAILER];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = xxh3_64(&bytes[..32]);
        bytes[32..40].copy_from_slice(&checksum.to_le_bytes());
        bytes[40..].copy_from_slice(&MAGIC);
        bytes
    }

    /// Reads what [`Trailer::bytes`] has written, or returns what is wrong with it.
    pub fn read(bytes: &[u8; TRAILER]) -> Result<Trailer, &'static str> {
        if bytes[40..] != MAGIC {
            return Err("it has no end");
        }
        if xxh3_64(&bytes[..32]) != number(bytes, 32) || number(bytes, 24) != 0 {
            return Err("the trailer is not what was written");
        }
        Ok(Trailer {
            offset: number(bytes, 0),
            length: number(bytes, 8),
            checksum: number(bytes, 16),
        })
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the number is within the bytes"))
}
