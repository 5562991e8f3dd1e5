//! Files that are part of the executable: [`demo`] runs a program from them, and [`init`] writes one to begin with.

pub(crate) mod demo;
pub(crate) mod init;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::shell::{Stop, failed};

/// A file: its path in a directory, and its content.
type Packed<'a> = (&'a str, &'a [u8]);

/// Writes files that do not exist into a directory, and creates the directories that they are in.
fn unpack(directory: &Path, files: &[Packed<'_>]) -> Result<(), Stop> {
    for (name, content) in files {
        let path = directory.join(name);
        let folder = path.parent().unwrap_or(directory);
        fs::create_dir_all(folder).map_err(|error| failed(Some(&folder.display()), error))?;
        File::create_new(&path)
            .and_then(|mut file| file.write_all(content))
            .map_err(|error| failed(Some(&path.display()), error))?;
    }
    Ok(())
}
