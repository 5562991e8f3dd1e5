//! How large files, functions and folders are.

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::Findings;
use crate::modules::is_for_tests;
use crate::rules::Bounds;

/// The sizes of a crate's code.
#[derive(Default)]
pub struct Sizes {
    /// Lines of all files.
    pub lines: usize,
    /// The file with most lines.
    pub file: Largest,
    /// The function with most lines.
    pub function: Largest,
    /// The folder with most entries.
    pub folder: Largest,
    /// All files, functions and folders, with their sizes.
    files: Vec<Largest>,
    functions: Vec<Largest>,
    folders: Vec<Largest>,
}

/// Something that has a size.
#[derive(Clone, Default)]
pub struct Largest {
    /// Its lines, or its entries.
    pub size: usize,
    /// Its path, and its name in it.
    pub name: String,
}

/// The sizes of the code in `source`; tests are left out, which are in files and modules of their own.
pub fn of(source: &Path) -> Result<Sizes, String> {
    let mut sizes = Sizes::default();
    sizes.folder(source, source)?;
    let largest =
        |all: &[Largest]| all.iter().max_by_key(|one| one.size).cloned().unwrap_or_default();
    sizes.file = largest(&sizes.files);
    sizes.function = largest(&sizes.functions);
    sizes.folder = largest(&sizes.folders);
    Ok(sizes)
}

impl Sizes {
    fn folder(&mut self, source: &Path, folder: &Path) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let entries = std::fs::read_dir(folder)
            .map_err(failed)?
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        self.folders
            .push(Largest { size: entries.len(), name: format!("src/{}", shown(source, folder)) });
        for entry in entries {
            let path = entry.path();
            if path.is_dir() {
                self.folder(source, &path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests.rs")
            {
                self.read(source, &path)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, source: &Path, path: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let syntax =
            syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = format!("src/{}", shown(source, path));
        let tests: usize = syntax.items.iter().map(lines_of_tests).sum();
        let size = text.lines().count() - tests;
        self.lines += size;
        let mut functions = Functions { file: &name, found: &mut self.functions };
        functions.visit_file(&syntax);
        self.files.push(Largest { size, name });
        Ok(())
    }

    /// A line for each file, function and folder that is above its bound.
    pub fn above(&self, bounds: &Bounds) -> Findings {
        let all = [
            (&self.files, bounds.file, "lines"),
            (&self.functions, bounds.function, "lines"),
            (&self.folders, bounds.folder, "entries"),
        ];
        let above = all.into_iter().flat_map(|(all, bound, unit)| {
            all.iter().filter(move |one| one.size > bound).map(move |one| (one, bound, unit))
        });
        above
            .map(|(one, bound, unit)| {
                format!(
                    "{}/{}: {} {unit}, at most {bound} are allowed",
                    bounds.path, one.name, one.size
                )
            })
            .collect()
    }
}

fn shown(source: &Path, path: &Path) -> String {
    path.strip_prefix(source).unwrap_or(path).display().to_string()
}

/// The lines of a module that is compiled for tests alone.
fn lines_of_tests(item: &syn::Item) -> usize {
    match item {
        syn::Item::Mod(module) if is_for_tests(&module.attrs) => lines(module.span()),
        _ => 0,
    }
}

fn lines(span: proc_macro2::Span) -> usize {
    span.end().line - span.start().line + 1
}

struct Functions<'a> {
    file: &'a str,
    found: &'a mut Vec<Largest>,
}

impl Functions<'_> {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        // The braces are not counted.
        let size = lines(block.span()).saturating_sub(2);
        self.found.push(Largest { size, name: format!("{}: {}", self.file, signature.ident) });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
