//! The files of manifests, without the duties of who publishes them.

use bytes::Bytes;

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::manifests::file::{read_current, read_manifest, read_pointer, replace};
use crate::manifests::format::{
    CURRENT, Pointer, encode_trailer, is_nascent, manifest_name, parse_name,
};

/// The contents of the directory of manifests. Looking changes nothing, and another process may publish meanwhile.
#[derive(Debug)]
pub struct ManifestFiles {
    /// The numbers of all manifests, in order, also of such as were never published.
    pub numbers: Vec<u64>,
    /// Files that were being written.
    pub nascent: Vec<String>,
    /// Files that are none of ours.
    pub unknown: Vec<String>,
    /// The file that says which manifest is current.
    pub pointer: String,
    /// Whether it is there.
    has_pointer: bool,
}

impl ManifestFiles {
    /// Lists a directory.
    pub fn list(disk: &dyn Disk) -> Result<ManifestFiles> {
        let names = disk.list().map_err(|cause| Error::io("list", disk.place(""), cause))?;
        let mut files = ManifestFiles {
            numbers: Vec::new(),
            nascent: Vec::new(),
            unknown: Vec::new(),
            pointer: disk.place(CURRENT),
            has_pointer: false,
        };
        for name in names {
            match parse_name(&name) {
                Some(number) => files.numbers.push(number),
                None if name == CURRENT => files.has_pointer = true,
                None if is_nascent(&name) => files.nascent.push(disk.place(&name)),
                None => files.unknown.push(disk.place(&name)),
            }
        }
        Ok(files)
    }

    /// The number of the current manifest; 0 before the first, and in a directory without files. The manifest is compared with what
    /// was published.
    ///
    /// # Errors
    ///
    /// As those of [`FileManifests::open`](crate::FileManifests::open).
    pub fn current(&self, disk: &dyn Disk) -> Result<u64> {
        if !self.has_pointer {
            return match self.numbers.last() {
                None => Ok(0),
                Some(last) => {
                    let needed_by = disk.place(&manifest_name(*last));
                    Err(Error::Lost { place: self.pointer.clone(), needed_by })
                }
            };
        }
        let current = read_pointer(disk)?;
        if current.number > 0 {
            read_current(disk, current)?;
        }
        Ok(current.number)
    }

    /// Where a manifest is.
    pub fn place(disk: &dyn Disk, number: u64) -> String {
        disk.place(&manifest_name(number))
    }

    /// Reads a manifest.
    pub fn read(disk: &dyn Disk, number: u64) -> Result<Bytes> {
        read_manifest(disk, number).map(|(bytes, _)| bytes)
    }

    /// Makes a manifest the current one again, durably; 0 is for none. Those with higher numbers are deleted when the directory is
    /// opened. The directory must not be in use meanwhile.
    ///
    /// # Errors
    ///
    /// As those of [`read`](ManifestFiles::read).
    pub fn take_back(disk: &dyn Disk, number: u64) -> Result<()> {
        let checksum = match number {
            0 => 0,
            number => read_manifest(disk, number)?.1,
        };
        let current = Pointer { number, checksum };
        replace(disk, CURRENT, &[&current.encode()]).map_err(|broken| broken.failure.error())
    }

    /// Writes a manifest as the only one and the current one to an empty directory, durably. The number 0 is for none.
    pub fn write(disk: &dyn Disk, number: u64, manifest: &[u8]) -> Result<()> {
        let mut current = Pointer { number, checksum: 0 };
        if number > 0 {
            let (trailer, checksum) = encode_trailer(number, manifest);
            current.checksum = checksum;
            replace(disk, &manifest_name(number), &[manifest, &trailer])
                .map_err(|broken| broken.failure.error())?;
        }
        replace(disk, CURRENT, &[&current.encode()]).map_err(|broken| broken.failure.error())
    }
}
