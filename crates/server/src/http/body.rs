//! Bodies of requests, as they come.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use futures::StreamExt;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::media::unsupported;
use super::problem::Problem;

/// How long a client may send nothing of a body that it has begun.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many bytes of a body are written to its file at a time.
const PIECE: usize = 256 << 10;

/// A body, of which so many bytes are read.
pub(super) struct Incoming {
    data: BodyDataStream,
    limit: usize,
    read: usize,
}

impl Incoming {
    /// The body of a request with these headers, which may have so many bytes. One that says that it has more is not read at all.
    pub(super) fn new(headers: &HeaderMap, body: Body, limit: usize) -> Result<Self, Problem> {
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        match length.and_then(|length| length.parse::<u64>().ok()) {
            Some(length) if length > limit as u64 => Err(too_large(limit)),
            _ => Ok(Self { data: body.into_data_stream(), limit, read: 0 }),
        }
    }

    /// The next bytes; `None` after the last.
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let next = timeout(PATIENCE, self.data.next()).await.map_err(|_| {
            let seconds = PATIENCE.as_secs();
            let detail = format!("nothing of the body has come for {seconds} seconds");
            Problem::new(StatusCode::REQUEST_TIMEOUT, detail).last()
        })?;
        let Some(bytes) = next else { return Ok(None) };
        let bytes = bytes
            .map_err(|error| Problem::bad(format!("the body cannot be read: {error}")).last())?;
        self.read += bytes.len();
        match self.read > self.limit {
            true => Err(too_large(self.limit)),
            false => Ok(Some(bytes)),
        }
    }

    /// All of it.
    pub(super) async fn collect(mut self) -> Result<Vec<u8>, Problem> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    /// Writes all of it to a file.
    pub(super) async fn spool(mut self, mut file: File) -> Result<(), Problem> {
        let mut piece = Vec::new();
        loop {
            let next = self.next().await?;
            let is_last = next.is_none();
            piece.extend_from_slice(&next.unwrap_or_default());
            if piece.len() < PIECE && !is_last {
                continue;
            }
            let wrote = spawn_blocking(move || file.write_all(&piece).map(|()| file));
            file = wrote.await.map_err(|_| unwritten(&"panicked"))?.map_err(|e| unwritten(&e))?;
            piece = Vec::new();
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Whether a body is compressed with gzip.
pub(super) fn is_gzip(headers: &HeaderMap) -> Result<bool, Problem> {
    match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase()) {
        None => Ok(false),
        Some(value) if value.is_empty() || value == b"identity" => Ok(false),
        Some(value) if value == b"gzip" || value == b"x-gzip" => Ok(true),
        Some(_) => Err(unsupported("a body is compressed with gzip, or not at all")),
    }
}

/// Writes a file without its compression to another one; the text may have so many bytes.
pub(super) fn decompress(from: &Path, to: &Path, limit: usize) -> Result<(), Problem> {
    let opened = File::open(from).and_then(|from| Ok((from, File::create_new(to)?)));
    let (from, mut to) = opened.map_err(|error| unwritten(&error))?;
    let most = limit as u64 + 1;
    let mut text = MultiGzDecoder::new(io::BufReader::new(from)).take(most);
    let copied = io::copy(&mut text, &mut to)
        .map_err(|error| Problem::bad(format!("the body cannot be decompressed: {error}")))?;
    match copied == most {
        true => Err(too_large(limit)),
        false => Ok(()),
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!(
        "the body has more than {limit} bytes, decompressed, the limit \"message_bytes\": send its rows in several requests"
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).with("sqlstate", "54000".into()).last()
}

pub(super) fn unwritten(error: &dyn std::fmt::Display) -> Problem {
    let detail = format!("the server has no room for the body: {error}");
    Problem::new(StatusCode::INSUFFICIENT_STORAGE, detail).last()
}
