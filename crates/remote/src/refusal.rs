//! What a server refuses, for reasons that do not pass when the same is sent again.

use std::io;

use alluvium_storage::Error;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// The key of the metadata that tells a refusal from a lost connection.
const KEY: &str = "alluvium-refused";

/// The status of a refusal.
pub(crate) fn refused(code: Code, message: impl Into<String>) -> Status {
    let mut status = Status::new(code, message);
    status.metadata_mut().insert(KEY, MetadataValue::from_static("1"));
    status
}

/// The status of a failure of the server's storage.
pub(crate) fn failed(error: &Error) -> Status {
    let code = match error {
        Error::Full { .. } => Code::ResourceExhausted,
        Error::NoRecord { .. } => Code::OutOfRange,
        Error::Corrupt { .. } | Error::Lost { .. } | Error::Newer { .. } => Code::DataLoss,
        _ => Code::Internal,
    };
    refused(code, format!("the server says: {error}"))
}

/// The cause that a status names, if a server has refused something, or is none of ours.
pub(crate) fn cause(status: &Status) -> Option<io::Error> {
    let kind = match status.code() {
        Code::Unimplemented => {
            let message = "the server is none of journals";
            return Some(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        _ if !status.metadata().contains_key(KEY) => return None,
        Code::ResourceExhausted => io::ErrorKind::StorageFull,
        Code::DataLoss => io::ErrorKind::InvalidData,
        Code::InvalidArgument => io::ErrorKind::InvalidInput,
        Code::FailedPrecondition => io::ErrorKind::PermissionDenied,
        Code::OutOfRange | Code::NotFound => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    Some(io::Error::new(kind, status.message().to_owned()))
}
