//! Calls on files that each operating system has in its own way.
//!
//! On Unix, files and directories that are [private] belong to their user alone. On Windows they have the rights that their
//! directory hands down, which below the folder of a user are that user's.
//!
//! [private]: create_private_directory

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Fills the buffer with the bytes from `offset` on.
///
/// # Errors
///
/// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends before.
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    system::read_exact_at(file, buffer, offset)
}

/// Writes all of these bytes from `offset` on.
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    system::write_all_at(file, bytes, offset)
}

/// Makes files that these options create private.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    system::private(options)
}

/// Creates a directory that is private.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    system::private_directory(&mut builder).create(path)
}

/// Opens a file or a directory to sync it.
pub fn open_to_sync(path: &Path) -> io::Result<File> {
    system::open_to_sync(path)
}

/// Makes the contents of a file, or the names in a directory, durable.
pub fn sync(path: &Path) -> io::Result<()> {
    open_to_sync(path)?.sync_all()
}

/// Whether two files belong to the same user. Always so on Windows, where who may remove a file is the system's to say.
pub fn is_same_owner(one: &Metadata, other: &Metadata) -> bool {
    system::is_same_owner(one, other)
}

/// Whether an open file has lost its last name. Windows does not say: there it never has.
pub fn is_unlinked(file: &Metadata) -> bool {
    system::is_unlinked(file)
}

/// The topmost directory of the file system that an absolute path is on.
pub fn root_of_file_system(path: &Path) -> Option<PathBuf> {
    system::root_of_file_system(path)
}

#[cfg(unix)]
mod system {
    use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};

    use super::*;

    pub(super) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_exact_at(buffer, offset)
    }

    pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options.mode(0o600)
    }

    pub(super) fn private_directory(builder: &mut DirBuilder) -> &mut DirBuilder {
        builder.mode(0o700)
    }

    pub(super) fn open_to_sync(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub(super) fn is_same_owner(one: &Metadata, other: &Metadata) -> bool {
        one.uid() == other.uid()
    }

    pub(super) fn is_unlinked(file: &Metadata) -> bool {
        file.nlink() == 0
    }

    pub(super) fn root_of_file_system(path: &Path) -> Option<PathBuf> {
        let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
        let mut directory = path.parent().filter(|parent| parent.is_absolute())?;
        let own = device(directory)?;
        while let Some(parent) = directory.parent()
            && device(parent) == Some(own)
        {
            directory = parent;
        }
        Some(directory.to_owned())
    }
}

#[cfg(windows)]
mod system {
    use std::os::windows::fs::{FileExt, OpenOptionsExt};

    use super::*;

    /// The flag without which a directory cannot be opened.
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;

    pub(super) fn read_exact_at(
        file: &File,
        mut buffer: &mut [u8],
        mut offset: u64,
    ) -> io::Result<()> {
        while !buffer.is_empty() {
            match file.seek_read(buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
            }
        }
        Ok(())
    }

    pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match file.seek_write(bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
            }
        }
        Ok(())
    }

    pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    pub(super) fn private_directory(builder: &mut DirBuilder) -> &mut DirBuilder {
        builder
    }

    /// Only what is open for writing can be synced.
    pub(super) fn open_to_sync(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)
    }

    pub(super) fn is_same_owner(_: &Metadata, _: &Metadata) -> bool {
        true
    }

    pub(super) fn is_unlinked(_: &Metadata) -> bool {
        false
    }

    pub(super) fn root_of_file_system(path: &Path) -> Option<PathBuf> {
        path.ancestors().last().filter(|root| root.is_absolute()).map(Path::to_owned)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn bytes_are_read_and_written_at_their_places() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = private(&mut options).open(directory.path().join("a")).expect("a new file");
        write_all_at(&file, b"after", 3).expect("files can be written");
        write_all_at(&file, b"all", 0).expect("files can be written");
        let mut bytes = [0; 5];
        read_exact_at(&file, &mut bytes, 1).expect("these bytes were written");
        assert_eq!(&bytes, b"llaft");
        let end = read_exact_at(&file, &mut bytes, 4).expect_err("the file ends before");
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn files_and_directories_can_be_synced() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a");
        create_private_directory(&path).expect("a new directory");
        fs::write(path.join("b"), "text").expect("files can be written");
        sync(&path.join("b")).expect("a file");
        sync(&path).expect("a directory");
        assert!(sync(&path.join("c")).is_err());
    }

    #[test]
    fn a_root_is_above_its_files_and_has_their_owner() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a");
        fs::write(&path, "text").expect("files can be written");
        let root = root_of_file_system(&path).expect("an absolute path");
        assert!(path.starts_with(root));
        assert_eq!(root_of_file_system(Path::new("a")), None);
        let (one, other) = (path.metadata(), directory.path().metadata());
        assert!(is_same_owner(&one.expect("a file"), &other.expect("a directory")));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_private_belongs_to_its_user_alone() {
        use std::os::unix::fs::MetadataExt;

        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a");
        create_private_directory(&path).expect("a new directory");
        assert_eq!(path.metadata().expect("a directory").mode() & 0o777, 0o700);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let file = private(&mut options).open(path.join("b")).expect("a new file");
        assert_eq!(file.metadata().expect("a file").mode() & 0o777, 0o600);
        assert!(!is_unlinked(&file.metadata().expect("a file")));
        fs::remove_file(path.join("b")).expect("files can be removed");
        assert!(is_unlinked(&file.metadata().expect("a file")));
    }
}
