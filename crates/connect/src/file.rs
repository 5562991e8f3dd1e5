//! Files as bytes, whether compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// How much is read from the system, or decompressed, at a time.
const BUFFER: usize = 128 << 10;

/// Opens a file to read. What begins as gzip does is decompressed, whatever the file's name.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    const GZIP: &[u8] = &[0x1F, 0x8B];
    let mut bytes = BufReader::with_capacity(BUFFER, File::open(path)?);
    if bytes.fill_buf()?.starts_with(GZIP) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(bytes))));
    }
    Ok(Box::new(bytes))
}
