//! `alluvium init`: a small project to begin with.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::{Packed, unpack};
use crate::args::InitArgs;
use crate::console::{LINES, escaped};
use crate::process::status::Status;
use crate::shell::{self, Stop, failed};

/// The program, in which `{name}` stands for the project's name.
const PROGRAM: &str = include_str!("../../project/program.sql");

/// How to run it, with the same name.
const README: &str = include_str!("../../project/README.md");

/// Writes the files of a project and lists them. The status is 1 if one of them exists or cannot be written.
pub(crate) fn run(args: InitArgs) -> Status {
    match create(&args) {
        Ok(listed) => shell::write(escaped(&listed, LINES).as_bytes()),
        Err(stop) => shell::status(Err(stop)),
    }
}

/// Writes the files; returns the text to print.
fn create(InitArgs { directory, name }: &InitArgs) -> Result<String, Stop> {
    let name = match name {
        Some(name) => name.clone(),
        None => directory_name(directory),
    };
    // In one line, as a comment has to be.
    let name = escaped(&name, &[]);
    let (program, readme) = (PROGRAM.replace("{name}", &name), README.replace("{name}", &name));
    let files: [Packed<'_>; 4] = [
        ("program.sql", program.as_bytes()),
        ("data/orders.csv", include_bytes!("../../project/orders.csv")),
        ("README.md", readme.as_bytes()),
        (".gitignore", include_bytes!("../../project/gitignore")),
    ];
    let paths = files.map(|(file, _)| directory.join(file));
    if let Some(path) = paths.iter().find(|path| fs::symlink_metadata(path).is_ok()) {
        return Err(failed(Some(&path.display()), "the file exists; nothing was changed"));
    }
    unpack(directory, &files)?;
    let mut listed = String::new();
    for path in &paths {
        let _ = writeln!(listed, "created {}", path.display());
    }
    let [program, ..] = &paths;
    let _ = writeln!(listed, "Run it: alluvium run {}", program.display());
    Ok(listed)
}

/// The last name in a directory's path.
fn directory_name(directory: &Path) -> String {
    // A directory that exists may have another name here, as `.` has.
    let found = fs::canonicalize(directory).or_else(|_| std::path::absolute(directory));
    let name = found.as_deref().ok().and_then(Path::file_name).map(|name| name.to_string_lossy());
    name.map_or_else(|| "Orders".to_owned(), |name| name.into_owned())
}
