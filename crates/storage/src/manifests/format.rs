//! The bytes of a manifest's file and of the file `current`.
//!
//! `docs/reference/manifest-format.md` describes every field.

use xxhash_rust::xxh3::xxh3_64;

/// The latest version that this program reads, and the one that it writes.
pub(crate) const VERSION: u32 = 1;

/// The name of the file that says which manifest is current.
pub(crate) const CURRENT: &str = "current";

/// The bytes after a manifest.
pub(crate) const TRAILER: usize = 40;

/// The bytes of the file `current`.
pub(crate) const POINTER: usize = 40;

const MANIFEST_MAGIC: [u8; 8] = *b"alluvman";
const CURRENT_MAGIC: [u8; 8] = *b"alluvcur";

const SUFFIX: &str = ".manifest";
const DIGITS: usize = 20;

/// The name of a manifest's file.
pub(crate) fn manifest_name(number: u64) -> String {
    format!("{number:020}{SUFFIX}")
}

/// The name of a file while it is written.
pub(crate) fn nascent_name(name: &str) -> String {
    format!(".{name}.new")
}

/// The number of the manifest whose file has this name.
pub(crate) fn parse_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let is_number = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// Whether a file of this name is being written.
pub(crate) fn is_nascent(name: &str) -> bool {
    let name = name.strip_prefix('.').and_then(|name| name.strip_suffix(".new"));
    name.is_some_and(|name| name == CURRENT || parse_name(name).is_some())
}

/// A defect of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is damaged from this offset on.
    Damaged {
        offset: u64,
        what: &'static str,
    },
    Newer(u32),
}

fn damaged<T>(offset: usize, what: &'static str) -> Result<T, Wrong> {
    Err(Wrong::Damaged { offset: offset as u64, what })
}

/// The trailer of a manifest, and its checksum.
pub(crate) fn encode_trailer(number: u64, manifest: &[u8]) -> ([u8; TRAILER], u64) {
    let mut trailer = [0; TRAILER];
    put(&mut trailer, 0, number);
    put(&mut trailer, 8, manifest.len() as u64);
    put(&mut trailer, 16, u64::from(VERSION));
    let checksum = trailer_checksum(&trailer, manifest);
    put(&mut trailer, 24, checksum);
    trailer[32..].copy_from_slice(&MANIFEST_MAGIC);
    (trailer, checksum)
}

/// Of the trailer's first 24 bytes, and the checksum of the manifest.
fn trailer_checksum(trailer: &[u8; TRAILER], manifest: &[u8]) -> u64 {
    let mut bytes = [0; 32];
    bytes[..24].copy_from_slice(&trailer[..24]);
    put(&mut bytes, 24, xxh3_64(manifest));
    xxh3_64(&bytes)
}

/// The length of the manifest in a file, and its checksum. Later versions keep where the checksum, the version and the
/// magic are.
pub(crate) fn parse_manifest(number: u64, file: &[u8]) -> Result<(usize, u64), Wrong> {
    let Some((manifest, trailer)) = file.split_last_chunk::<TRAILER>() else {
        return damaged(file.len(), "the file ends before its trailer does");
    };
    if trailer[32..] != MANIFEST_MAGIC {
        return damaged(manifest.len(), "it does not end as a manifest");
    }
    let checksum = get(trailer, 24);
    if checksum != trailer_checksum(trailer, manifest) {
        return damaged(0, "its checksum does not match");
    }
    let version = get(trailer, 16) as u32;
    if version != VERSION {
        return Err(Wrong::Newer(version));
    }
    if get(trailer, 0) != number {
        return damaged(manifest.len(), "it has another number than its name says");
    }
    if get(trailer, 8) != manifest.len() as u64 {
        return damaged(manifest.len(), "it has another length than its trailer says");
    }
    Ok((manifest.len(), checksum))
}

/// Which manifest is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// Its number; 0 before the first is published.
    pub(crate) number: u64,
    /// The checksum in its trailer.
    pub(crate) checksum: u64,
}

impl Pointer {
    pub(crate) fn encode(&self) -> [u8; POINTER] {
        let mut bytes = [0; POINTER];
        bytes[..8].copy_from_slice(&CURRENT_MAGIC);
        put(&mut bytes, 8, u64::from(VERSION));
        put(&mut bytes, 16, self.number);
        put(&mut bytes, 24, self.checksum);
        let checksum = xxh3_64(&bytes[..32]);
        put(&mut bytes, 32, checksum);
        bytes
    }

    pub(crate) fn parse(file: &[u8]) -> Result<Pointer, Wrong> {
        let Ok(bytes) = <&[u8; POINTER]>::try_from(file) else {
            return damaged(file.len().min(POINTER), "it has another length than it was given");
        };
        if bytes[..8] != CURRENT_MAGIC {
            return damaged(0, "it does not begin as it should");
        }
        if get(bytes, 32) != xxh3_64(&bytes[..32]) {
            return damaged(0, "its checksum does not match");
        }
        match get(bytes, 8) as u32 {
            VERSION => Ok(Pointer { number: get(bytes, 16), checksum: get(bytes, 24) }),
            version => Err(Wrong::Newer(version)),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// The number in these eight bytes, which there are.
fn get(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, what was written before cannot be read: that needs a new version.
    #[test]
    fn the_bytes_of_a_trailer_and_of_the_pointer_are_these() {
        let (trailer, checksum) = encode_trailer(3, b"manifest");
        let pointer = Pointer { number: 3, checksum }.encode();
        let hashes = [xxh3_64(&trailer), xxh3_64(&pointer)];
        assert_eq!(hashes, [14_328_932_120_843_724_422, 1_988_590_015_230_250_049]);
    }
}
