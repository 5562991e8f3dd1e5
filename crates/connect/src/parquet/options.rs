//! The options of a Parquet file.

use alluvium::{Error, Result};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};

use crate::options::unknown;

/// The options of a Parquet file that is written.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `COMPRESSION`: how pages are compressed.
    pub compression: Compression,
}

impl Default for Options {
    fn default() -> Self {
        Self { compression: Compression::SNAPPY }
    }
}

impl Options {
    /// Reads the options. The last of two that have one name counts.
    pub fn read(options: &[(String, String)]) -> Result<Self> {
        let mut this = Self::default();
        options.iter().try_for_each(|(name, value)| this.set(name, value))?;
        Ok(this)
    }

    /// Sets one option; fails if there is none of this name, or it has no such value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        if !name.eq_ignore_ascii_case("compression") {
            return Err(unknown(name, "Parquet", "COMPRESSION"));
        }
        self.compression = match value.to_ascii_lowercase().as_str() {
            "auto" | "snappy" => Compression::SNAPPY,
            "none" => Compression::UNCOMPRESSED,
            "gzip" => Compression::GZIP(GzipLevel::default()),
            "zstd" => Compression::ZSTD(ZstdLevel::default()),
            "lz4" => Compression::LZ4_RAW,
            _ => {
                return Err(Error::source(format!(
                    "COMPRESSION of Parquet is auto, none, snappy, gzip, zstd or lz4, not \"{value}\""
                )));
            }
        };
        Ok(())
    }
}

/// Checks an option of a file that is read, which says itself how it is compressed.
pub fn check_read(name: &str, value: &str) -> Result<()> {
    Options::default().set(name, value)
}
