//! A body with rows, in a file of its own.

use std::fs::File;
use std::path::Path;

use alluvium::FileAccess;
use axum::body::Body;
use axum::http::HeaderMap;
use tempfile::{Builder, TempDir};
use tokio::task::spawn_blocking;

use super::body::{Incoming, decompress, is_gzip, unwritten};
use super::media::{self, unsupported};
use super::problem::Problem;

/// The name of the file, by which errors call it.
pub(super) const BODY: &str = "body";
const COMPRESSED: &str = "body.gz";

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lines,
    Csv { has_header: bool },
    Parquet,
    Arrow,
}

/// A body in a folder of its own, which goes with this. Until a body is whole, no thread and no transaction waits for it.
pub(super) struct Spool {
    folder: TempDir,
    pub(super) kind: Kind,
    /// Until it is decompressed.
    is_gzip: bool,
    limit: usize,
}

impl Kind {
    /// The format of the body of a request with these headers.
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let (media_type, parameters) = media::sent(headers);
        match media_type.as_str() {
            media::LINES => Ok(Self::Lines),
            other if media::OTHER_LINES.contains(&other) => Ok(Self::Lines),
            media::CSV => {
                Ok(Self::Csv { has_header: !parameters.replace(' ', "").contains("header=absent") })
            }
            media::PARQUET => Ok(Self::Parquet),
            media::ARROW => Ok(Self::Arrow),
            _ => Err(unsupported(&format!(
                "rows are sent as {}, {}, {} or {}",
                media::LINES,
                media::CSV,
                media::ARROW,
                media::PARQUET
            ))),
        }
    }

    /// The format and the options by which `COPY` reads it; `None` of one that it does not read.
    pub(super) fn options(self) -> Option<String> {
        match self {
            Self::Lines => Some("FORMAT jsonl, COMPRESSION none".to_owned()),
            Self::Csv { has_header } => {
                Some(format!("FORMAT csv, COMPRESSION none, HEADERS {has_header}"))
            }
            Self::Parquet => Some("FORMAT parquet".to_owned()),
            Self::Arrow => None,
        }
    }
}

impl Spool {
    /// Receives the body of a request with these headers, which may have so many bytes, also once it is decompressed.
    pub(super) async fn receive(
        headers: &HeaderMap,
        body: Body,
        limit: usize,
    ) -> Result<Self, Problem> {
        let (kind, is_gzip) = (Kind::of(headers)?, is_gzip(headers)?);
        let body = Incoming::new(headers, body, limit)?;
        let made = spawn_blocking(move || {
            let folder = Builder::new().prefix("alluvium-").tempdir()?;
            let file = File::create_new(folder.path().join(name(is_gzip)))?;
            Ok::<_, std::io::Error>((folder, file))
        });
        let made = made.await.map_err(|error| unwritten(&error))?;
        let (folder, file) = made.map_err(|error| unwritten(&error))?;
        body.spool(file).await?;
        Ok(Self { folder, kind, is_gzip, limit })
    }

    /// Decompresses it, if that has to be.
    pub(super) fn decompress(&mut self) -> Result<(), Problem> {
        if std::mem::take(&mut self.is_gzip) {
            let folder = self.folder.path();
            decompress(&folder.join(COMPRESSED), &folder.join(BODY), self.limit)?;
        }
        Ok(())
    }

    /// The folder of the file.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What a session may use that reads it.
    pub(super) fn access(&self) -> FileAccess {
        FileAccess::Below(vec![self.folder.path().to_owned()])
    }
}

fn name(is_gzip: bool) -> &'static str {
    if is_gzip { COMPRESSED } else { BODY }
}
