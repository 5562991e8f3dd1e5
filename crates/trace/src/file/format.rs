//! The parts of a batch file around its pages.

use rkyv::{Archive, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The first eight bytes of a file, and those its trailer ends with.
pub const MAGIC: [u8; 8] = *b"alluvium";

/// The length of the header, and where the first page is.
pub const HEADER: usize = 4096;

/// The length of the trailer.
pub const TRAILER: usize = 48;

/// The features that a reader has to know to read a file; there are none yet.
pub const INCOMPATIBLE: u64 = 0;

/// What the metadata of a file says.
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
    /// How many of them take copies of rows away.
    pub retractions: u64,
    /// How many bytes a page of the batch was allowed to have.
    pub page_bytes: u64,
    /// How many updates a page of the batch was allowed to have.
    pub page_updates: u64,
    /// What the first keys of all pages begin with.
    pub common: Vec<u8>,
    /// The pages, in order.
    pub pages: Vec<PageEntry>,
}

/// Where a page is, and what is known of it without a look at it.
#[derive(Archive, Serialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEntry {
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// XXH3-64 of its bytes.
    pub checksum: u64,
    /// The eight bytes behind that of its first key, as a big-endian number, filled up with zeros.
    pub fence: u64,
    /// Its length in bytes.
    pub length: u32,
    /// The number of its updates.
    pub updates: u32,
}

/// The header of a file.
pub fn header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&INCOMPATIBLE.to_le_bytes());
    let checksum = xxh3_64(&header[..HEADER - 8]);
    header[HEADER - 8..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// The features a header asks for, or what is wrong with it.
pub fn read_header(header: &[u8; HEADER]) -> Result<u64, &'static str> {
    if header[..8] != MAGIC {
        return Err("it is not a batch file");
    }
    if xxh3_64(&header[..HEADER - 8]) != number(header, HEADER - 8) {
        return Err("the header is not what was written");
    }
    Ok(number(header, 8))
}

/// Where the metadata of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Where it begins.
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

    /// Reads what [`Trailer::bytes`] has written, or says what is wrong with it.
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
