//! Which files of a crate name items of which others.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::modules::{Crate, FileId, ModuleId, is_for_tests};
use crate::{Findings, rules};

/// For each file, the files whose items it names: in `use`, in a path, or in the arguments of a macro.
pub type Imports = BTreeMap<FileId, BTreeSet<FileId>>;

/// The imports of all files of a crate. A path is followed through re-exports to the file that defines the item.
pub fn of(code: &Crate) -> Imports {
    let mut walk = Walk { code, module: 0, imports: Imports::new() };
    walk.module(0, &code.syntax[code.modules[0].file].items);
    walk.imports
}

/// The imports that break a never.
pub fn broken(code: &Crate, imports: &Imports, path: &str) -> Findings {
    let mut findings = Findings::new();
    for (from, targets) in imports {
        for to in targets {
            let (from, to) = (&code.files[*from], &code.files[*to]);
            for never in rules::NEVERS.iter().filter(|never| never.crate_path == path) {
                if never.from.iter().any(|part| is_within(from, part))
                    && never.to.iter().any(|part| is_within(to, part))
                {
                    findings.push(format!("{path}: {from} imports {to}: {}", never.why));
                }
            }
        }
    }
    findings
}

/// Whether a file is `part`, or within the folder `part`.
fn is_within(file: &str, part: &str) -> bool {
    file.strip_prefix(part).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

struct Walk<'a> {
    code: &'a Crate,
    /// The module that is being visited.
    module: ModuleId,
    imports: Imports,
}

impl Walk<'_> {
    fn module(&mut self, id: ModuleId, items: &[syn::Item]) {
        let outer = std::mem::replace(&mut self.module, id);
        for path in self.code.modules[id].imports.values() {
            self.add(path);
        }
        for item in items {
            self.visit_item(item);
        }
        self.module = outer;
    }

    /// Notes that the module names the item at `path`.
    fn add(&mut self, path: &[String]) {
        let from = self.code.modules[self.module].file;
        if let Some(to) = self.code.file_of(self.module, path)
            && to != from
        {
            self.imports.entry(from).or_default().insert(to);
        }
    }

    /// Notes the paths in the arguments of a macro, which are not parsed.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    self.tokens(group.stream());
                }
                _ => self.end(&mut path),
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.add(path);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Mod(module) => {
                if let Some(child) =
                    self.code.modules[self.module].children.get(&module.ident.to_string()).copied()
                {
                    match &module.content {
                        Some((_, items)) => self.module(child, items),
                        None => {
                            let code = self.code;
                            self.module(child, &code.syntax[code.modules[child].file].items);
                        }
                    }
                }
            }
            syn::Item::Fn(function) if is_for_tests(&function.attrs) => {}
            syn::Item::Use(_) => {}
            other => visit::visit_item(self, other),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}
