//! The modules of a crate: which file each is in, and which names it has.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use syn::{Item, UseTree};

use crate::rust;
use crate::tracked::Texts;

/// A path in the source, by its segments.
pub type Segments = Vec<String>;

/// One module: a file, or a `mod name { … }` in a file.
pub struct Module {
    /// The file, relative to the crate's `src`.
    pub file: String,
    /// The module around it; none for the root.
    pub parent: Option<usize>,
    /// What stands in it, without tests.
    pub items: Vec<Item>,
    /// Modules declared in it.
    pub children: BTreeMap<String, usize>,
    /// Names of the items it defines.
    pub defined: BTreeSet<String>,
    /// Names it has by `use`, and the paths they stand for.
    pub imported: BTreeMap<String, Vec<Segments>>,
    /// Paths of `use …::*`.
    pub globs: Vec<Segments>,
}

/// All modules below one `lib.rs` or `main.rs`; the root is the first.
pub struct Tree {
    /// Modules; others refer to them by their place here.
    pub modules: Vec<Module>,
    /// Macros by name, and the file that defines each.
    pub macros: BTreeMap<String, String>,
}

impl Tree {
    /// The modules below `root`, a file among `texts`.
    ///
    /// # Errors
    /// When a file is missing or is not Rust.
    pub fn read(root: &str, texts: &Texts) -> Result<Self> {
        let mut tree = Self { modules: Vec::new(), macros: BTreeMap::new() };
        tree.file(root, "", None, texts)?;
        Ok(tree)
    }

    /// Adds the module in `file`, whose child modules are in the directory `dir` (empty, or ending in `/`).
    fn file(&mut self, file: &str, dir: &str, parent: Option<usize>, texts: &Texts) -> Result<usize> {
        let text = texts.get(file).with_context(|| format!("there is no module file {file}"))?;
        let parsed = syn::parse_file(text).with_context(|| format!("cannot parse {file}"))?;
        self.module(file, dir, parent, parsed.items, texts)
    }

    fn module(
        &mut self,
        file: &str,
        dir: &str,
        parent: Option<usize>,
        items: Vec<Item>,
        texts: &Texts,
    ) -> Result<usize> {
        let id = self.modules.len();
        self.modules.push(Module {
            file: file.to_owned(),
            parent,
            items: Vec::new(),
            children: BTreeMap::new(),
            defined: BTreeSet::new(),
            imported: BTreeMap::new(),
            globs: Vec::new(),
        });
        let mut kept = Vec::new();
        for item in items {
            if rust::is_test(rust::attributes(&item)) {
                continue;
            }
            let Item::Mod(module) = item else {
                self.learn(id, &item);
                kept.push(item);
                continue;
            };
            let name = module.ident.to_string();
            let below = format!("{dir}{name}/");
            let child = match module.content {
                Some((_, items)) => self.module(file, &below, Some(id), items, texts)?,
                None => match rust::path_attribute(&module.attrs) {
                    Some(path) => self.file(&format!("{dir}{path}"), dir, Some(id), texts)?,
                    None => {
                        let flat = format!("{dir}{name}.rs");
                        let found = if texts.contains_key(&flat) { flat } else { format!("{below}mod.rs") };
                        self.file(&found, &below, Some(id), texts)?
                    }
                },
            };
            self.modules[id].children.insert(name, child);
        }
        self.modules[id].items = kept;
        Ok(id)
    }

    /// Takes the names of an item into the scope of module `id`.
    fn learn(&mut self, id: usize, item: &Item) {
        if let Item::Macro(definition) = item
            && let Some(name) = &definition.ident
        {
            self.macros.insert(name.to_string(), self.modules[id].file.clone());
        }
        let module = &mut self.modules[id];
        match item {
            Item::Use(used) if used.leading_colon.is_none() => {
                for (path, name) in leaves(&used.tree) {
                    match name {
                        Some(name) => module.imported.entry(name).or_default().push(path),
                        None => module.globs.push(path),
                    }
                }
            }
            other => module.defined.extend(rust::name(other)),
        }
    }
}

/// The leaves of a `use`: each path, and the name it gets; no name for `*`.
pub fn leaves(tree: &UseTree) -> Vec<(Segments, Option<String>)> {
    match tree {
        UseTree::Path(path) => {
            let mut leaves = leaves(&path.tree);
            for (segments, _) in &mut leaves {
                segments.insert(0, path.ident.to_string());
            }
            leaves
        }
        UseTree::Name(name) if name.ident == "self" => vec![(Vec::new(), Some("self".into()))],
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], Some(name.ident.to_string()))],
        UseTree::Rename(rename) => vec![(vec![rename.ident.to_string()], Some(rename.rename.to_string()))],
        UseTree::Glob(_) => vec![(Vec::new(), None)],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
    .into_iter()
    .map(|(path, name)| {
        // `use a::b::{self}` gives the name `b`.
        let own = matches!(tree, UseTree::Path(_)) && name.as_deref() == Some("self");
        let name = if own { path.last().cloned() } else { name };
        (path, name)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Texts {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn modules_are_found_in_files_directories_and_braces() {
        let texts = texts(&[
            ("lib.rs", "mod one; mod two; mod three { mod four; } #[path = \"odd.rs\"] mod five;"),
            ("one.rs", "mod inner; pub struct A;"),
            ("one/inner.rs", ""),
            ("two/mod.rs", ""),
            ("three/four.rs", ""),
            ("odd.rs", ""),
        ]);
        let tree = Tree::read("lib.rs", &texts).unwrap();
        let files: Vec<_> = tree.modules.iter().map(|module| module.file.as_str()).collect();
        assert_eq!(
            files,
            ["lib.rs", "one.rs", "one/inner.rs", "two/mod.rs", "lib.rs", "three/four.rs", "odd.rs"]
        );
        assert!(tree.modules[1].defined.contains("A"));
    }

    #[test]
    fn tests_are_no_part_of_the_tree() {
        let texts =
            texts(&[("lib.rs", "#[cfg(test)] mod tests; #[cfg(all(test, unix))] mod more { struct A; }")]);
        assert_eq!(Tree::read("lib.rs", &texts).unwrap().modules.len(), 1);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Tree::read("lib.rs", &texts(&[("lib.rs", "mod gone;")])).err().unwrap();
        assert_eq!(error.to_string(), "there is no module file gone/mod.rs");
    }

    #[test]
    fn a_use_has_leaves() {
        let used: syn::ItemUse = syn::parse_str("use a::{b::{self, C as D}, e::*, F};").unwrap();
        let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(
            leaves(&used.tree),
            [
                (path("a::b"), name("b")),
                (path("a::b::C"), name("D")),
                (path("a::e"), None),
                (path("a::F"), name("F")),
            ]
        );
    }
}
