//! Values as bytes: an rkyv archive, which is validated before it is read, and behind it one byte with the version of its
//! format.

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

/// The value of these bytes, or what is wrong with them; they must be of this version of its format.
pub(super) fn decode<T>(bytes: &[u8], version: u8) -> Result<T, String>
where
    T: Archive,
    T::Archived: for<'a> CheckBytes<HighValidator<'a, rancor::Error>>
        + Deserialize<T, HighDeserializer<rancor::Error>>,
{
    let (found, archive) = bytes.split_last().ok_or("it is empty")?;
    if *found != version {
        return Err(format!(
            "it is of version {found}, and this program reads {version}: open the directory with the program that has written it"
        ));
    }
    // The bytes lie anywhere in what they were read from.
    let mut aligned: AlignedVec = AlignedVec::with_capacity(archive.len());
    aligned.extend_from_slice(archive);
    rkyv::from_bytes::<T, rancor::Error>(&aligned).map_err(|error| error.to_string())
}
