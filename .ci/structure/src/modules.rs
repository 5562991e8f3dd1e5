//! The modules of a crate: which file each is in, and which names it has.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use syn::{Item, UseTree};

/// The index of a module in [`Crate::modules`].
pub type ModuleId = usize;

/// The index of a file in [`Crate::files`].
pub type FileId = usize;

/// The modules of a crate that are compiled into the product: those for tests are left out.
pub struct Crate {
    /// Paths of the files, below the crate's source directory.
    pub files: Vec<String>,
    /// What the files contain.
    pub syntax: Vec<Rc<syn::File>>,
    /// The modules; the first is the crate's root.
    pub modules: Vec<Module>,
}

/// A module.
pub struct Module {
    /// The file that it is written in.
    pub file: FileId,
    /// The module around it; none around the root.
    pub parent: Option<ModuleId>,
    /// Modules that it declares.
    pub children: BTreeMap<String, ModuleId>,
    /// Names of other items that it defines.
    pub items: BTreeSet<String>,
    /// Names that it imports, each with the whole path.
    pub imports: HashMap<String, Vec<String>>,
    /// Paths of modules that it imports all names of.
    pub globs: Vec<Vec<String>>,
}

impl Crate {
    /// Reads the crate whose root, `lib.rs` or `main.rs`, is in `source`.
    pub fn read(source: &Path) -> Result<Self, String> {
        let mut code = Self { files: Vec::new(), syntax: Vec::new(), modules: Vec::new() };
        let root = ["lib.rs", "main.rs"]
            .into_iter()
            .map(|name| source.join(name))
            .find(|path| path.is_file());
        let root =
            root.ok_or_else(|| format!("{}: neither lib.rs nor main.rs", source.display()))?;
        code.read_file(source, &root, source, None)?;
        Ok(code)
    }

    /// Reads a file, and those of the modules that it declares, which are in `folder`.
    fn read_file(
        &mut self,
        source: &Path,
        path: &Path,
        folder: &Path,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, String> {
        let name = path.strip_prefix(source).unwrap_or(path).display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let syntax =
            syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let file = self.files.len();
        self.files.push(name);
        let syntax = Rc::new(syntax);
        self.syntax.push(Rc::clone(&syntax));
        self.read_module(source, &syntax.items, file, folder, parent)
    }

    fn read_module(
        &mut self,
        source: &Path,
        items: &[Item],
        file: FileId,
        folder: &Path,
        parent: Option<ModuleId>,
    ) -> Result<ModuleId, String> {
        let id = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: HashMap::new(),
            globs: Vec::new(),
        });
        for item in items {
            match item {
                Item::Mod(module) if !is_for_tests(&module.attrs) => {
                    let name = module.ident.to_string();
                    let below = folder.join(&name);
                    let child = match &module.content {
                        Some((_, items)) => {
                            self.read_module(source, items, file, &below, Some(id))?
                        }
                        None => {
                            self.read_file(source, &file_of(module, folder), &below, Some(id))?
                        }
                    };
                    self.modules[id].children.insert(name, child);
                }
                Item::Use(import) if !is_for_tests(&import.attrs) => {
                    each_import(&import.tree, &mut Vec::new(), &mut |path, name| match name {
                        Some(name) => drop(self.modules[id].imports.insert(name, path.to_vec())),
                        None => self.modules[id].globs.push(path.to_vec()),
                    });
                }
                other => self.modules[id].items.extend(name_of(other)),
            }
        }
        Ok(id)
    }

    /// The file that defines the item at a path that is written in `from`, whose first segment may be `crate`, `self`, `super` or a name
    /// that `from` knows; none if it is of another crate, or is a module itself.
    pub fn file_of(&self, from: ModuleId, path: &[String]) -> Option<FileId> {
        self.resolve(from, path, 0)
    }

    fn resolve(&self, from: ModuleId, path: &[String], depth: usize) -> Option<FileId> {
        if depth > 16 {
            return None;
        }
        let (mut module, mut rest) = (from, path);
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => module = 0,
                "self" => {}
                "super" => module = self.modules[module].parent?,
                _ => break,
            }
            rest = others;
        }
        while let Some((first, others)) = rest.split_first() {
            let here = &self.modules[module];
            if let Some(child) = here.children.get(first) {
                (module, rest) = (*child, others);
            } else if here.items.contains(first) {
                return Some(here.file);
            } else if let Some(import) = here
                .imports
                .get(first)
                .filter(|import| import.first() != Some(first) || import.len() > 1)
            {
                let path: Vec<String> = import.iter().chain(others).cloned().collect();
                return self.resolve(module, &path, depth + 1);
            } else {
                return here.globs.iter().find_map(|glob| {
                    let path: Vec<String> = glob.iter().chain(rest).cloned().collect();
                    self.resolve(module, &path, depth + 1)
                });
            }
        }
        None
    }
}

/// The file of a module that is declared in a file whose modules are in `folder`.
fn file_of(module: &syn::ItemMod, folder: &Path) -> PathBuf {
    let path = module.attrs.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    });
    match path {
        Some(path) => folder.join(path),
        None => {
            let flat = folder.join(format!("{}.rs", module.ident));
            if flat.is_file() { flat } else { folder.join(module.ident.to_string()).join("mod.rs") }
        }
    }
}

/// Whether an item is compiled for tests alone.
pub fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition.contains("test") && !condition.contains("not")
        }
        meta => meta.path().is_ident("test"),
    })
}

/// Calls `found` for each name that a `use` imports, with its path, and with no name for `*`.
fn each_import(
    tree: &UseTree,
    path: &mut Vec<String>,
    found: &mut impl FnMut(&[String], Option<String>),
) {
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            each_import(&step.tree, path, found);
            path.pop();
        }
        UseTree::Name(name) => {
            let ident = name.ident.to_string();
            // `a::{self}` imports `a`.
            let own = ident == "self";
            let known = if own { path.last().cloned() } else { Some(ident.clone()) };
            if !own {
                path.push(ident);
            }
            found(path, known);
            if !own {
                path.pop();
            }
        }
        UseTree::Rename(rename) => {
            path.push(rename.ident.to_string());
            found(path, Some(rename.rename.to_string()));
            path.pop();
        }
        UseTree::Glob(_) => found(path, None),
        UseTree::Group(group) => group.items.iter().for_each(|tree| each_import(tree, path, found)),
    }
}

/// The name that an item defines in its module.
fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
