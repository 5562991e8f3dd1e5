//! Documents the workspace and compares the public API of the crate `alluvium` with `.ci/api/alluvium.txt`: `api` prints the difference and fails if there is
//! one, `api --write` writes the file.
//!
//! What the module `unstable` has is left out, and so are conversions of errors of other crates, which are for the engine's own use.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use public_api::Builder;

/// The module whose items are part of no promise.
const UNSTABLE: &str = "alluvium::unstable";

/// Its traits, with the types that have their methods.
const PARTS: [(&str, &str); 3] = [
    ("alluvium::unstable::BuilderParts", "alluvium::Builder"),
    ("alluvium::unstable::EngineParts", "alluvium::Engine"),
    ("alluvium::unstable::SessionParts", "alluvium::Session"),
];

/// Types of errors that become an `alluvium::Error`, besides Arrow's.
const ERRORS: [&str; 2] =
    ["datafusion_common::error::DataFusionError", "alluvium_sql_syntax::error::Error"];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the API is as agreed upon.
fn run() -> Result<bool, Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let agreed = here.join("alluvium.txt");
    let api = items(&documented(here)?)?;
    if env::args().nth(1).as_deref() == Some("--write") {
        fs::write(agreed, api.join("\n") + "\n")?;
        return Ok(true);
    }
    let text = fs::read_to_string(agreed)?;
    let before: BTreeSet<&str> = text.lines().collect();
    let after: BTreeSet<&str> = api.iter().map(String::as_str).collect();
    before.difference(&after).for_each(|gone| println!("- {gone}"));
    after.difference(&before).for_each(|new| println!("+ {new}"));
    if before != after {
        println!(
            "The public API has changed. If it is meant: cargo run --manifest-path .ci/api/Cargo.toml -- --write"
        );
    } else {
        println!("{} public items, as agreed upon", after.len());
    }
    Ok(before == after)
}

/// Documents the workspace, so that dependencies are those of its other builds, and returns the description of the crate.
fn documented(here: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let root = here.join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let described = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["doc", "--quiet", "--workspace", "--no-deps"])
        .env("RUSTDOC", here.join("rustdoc"))
        .current_dir(root)
        .status()?;
    if !described.success() {
        return Err("cargo doc failed".into());
    }
    Ok(target.join("doc/alluvium.json"))
}

/// The items of a crate, one a line.
fn items(description: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let api = Builder::from_rustdoc_json(description)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .include_function_parameter_names(true)
        .build()?;
    let items: Vec<String> = api.items().map(ToString::to_string).collect();
    let method = |item: &String| {
        let call = item.strip_prefix("pub fn ")?;
        let of = |(part, of): &(&str, &str)| Some(format!("{of}{}", call.strip_prefix(part)?));
        let method = PARTS.iter().find_map(of)?;
        Some(format!("pub fn {}(", method.split_once('(')?.0))
    };
    let methods: Vec<String> = items.iter().filter_map(method).collect();
    let is_promised = |item: &String| {
        !item.contains(UNSTABLE)
            && !methods.iter().any(|method| item.starts_with(method))
            && !ERRORS.iter().any(|error| item.contains(error))
    };
    Ok(items.into_iter().filter(is_promised).collect())
}
