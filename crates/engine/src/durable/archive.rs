//! Values as bytes: an rkyv archive, which is validated before it is read, followed by one byte with the version of its
//! format.

use std::ops::RangeInclusive;

use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Serialize};

/// The bytes of a value, in this version of its format.
pub(super) fn encode<T>(value: &T, version: u8) -> Result<AlignedVec, rancor::Error>
where
    T: for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, rancor::Error>>,
{
    let mut bytes = rkyv::to_bytes::<rancor::Error>(value)?;
    bytes.push(version);
    Ok(bytes)
}

/// The archive in these bytes, and its version.
pub(super) fn split(bytes: &[u8]) -> Result<(&[u8], u8), String> {
    let (version, archive) = bytes.split_last().ok_or("it is empty")?;
    Ok((archive, *version))
}

/// The value of an archive, or what is wrong with it. The archive must be of the version that `T` is.
pub(super) fn decode<T>(archive: &[u8]) -> Result<T, String>
where
    T: Archive,
    T::Archived: for<'a> CheckBytes<HighValidator<'a, rancor::Error>>
        + Deserialize<T, HighDeserializer<rancor::Error>>,
{
    // The bytes lie anywhere in what they were read from.
    let mut aligned: AlignedVec = AlignedVec::with_capacity(archive.len());
    aligned.extend_from_slice(archive);
    rkyv::from_bytes::<T, rancor::Error>(&aligned).map_err(|error| error.to_string())
}

/// Says that a version cannot be read, and what to do.
pub(super) fn unknown(version: u8, known: RangeInclusive<u8>) -> String {
    let (first, last) = known.into_inner();
    let other = if version > last {
        "the program that has written it, or a later one"
    } else {
        "the program that has written it"
    };
    format!(
        "it is of version {version}, and this program reads versions {first} to {last}: open the directory with {other}"
    )
}
