//! Prints the largest circle of imports, the largest file, function and folder of each crate, and fails if one is above its bound or if
//! a file imports a part of the code that its own part never may.
//!
//! Bounds and nevers are in [`rules`]. With the path of a crate as second argument it prints that crate's imports instead, a line for each
//! pair of files.

mod circles;
mod imports;
mod modules;
mod rules;
mod sizes;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::modules::Crate;

/// What a check finds: a line for each thing that is not as it has to be.
type Findings = Vec<String>;

fn main() -> ExitCode {
    let root = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let found = match std::env::args().nth(2) {
        Some(path) => print_imports(&root.join(path)),
        None => check(&root),
    };
    match found {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            for finding in findings {
                eprintln!("{finding}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints which file of a crate imports which other.
fn print_imports(path: &Path) -> Result<Findings, String> {
    let code = Crate::read(&path.join("src"))?;
    for (from, targets) in imports::of(&code) {
        for to in targets {
            println!("{} {}", code.files[from], code.files[to]);
        }
    }
    Ok(Findings::new())
}

/// Checks every crate of the product below `root`, prints a line for each, and returns all that breaks a rule.
fn check(root: &Path) -> Result<Findings, String> {
    let mut findings = Findings::new();
    println!(
        "{:<22} {:>7} {:>6} {:>6} {:>9} {:>7}",
        "crate", "lines", "circle", "file", "function", "folder"
    );
    for bounds in rules::CRATES {
        let source = root.join(bounds.path).join("src");
        let code = Crate::read(&source)?;
        let imports = imports::of(&code);
        let circle = circles::largest(&code, &imports);
        let sizes = sizes::of(&source)?;
        println!(
            "{:<22} {:>7} {:>6} {:>6} {:>9} {:>7}",
            bounds.path,
            sizes.lines,
            circle.len(),
            sizes.file.size,
            sizes.function.size,
            sizes.folder.size
        );
        if circle.len() > bounds.circle {
            findings.push(format!(
                "{}: {} files import each other in a circle, at most {} may: {}",
                bounds.path,
                circle.len(),
                bounds.circle,
                circle.join(", ")
            ));
        }
        findings.extend(sizes.above(bounds));
        findings.extend(imports::broken(&code, &imports, bounds.path));
    }
    Ok(findings)
}
