//! The modules of a crate: which file each is in, which names it has, and which paths stand in it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Item, UseTree, Visibility};

use crate::rust;
use crate::tracked::Texts;

/// A path in the source, by its segments; a macro that is called has a `!`.
pub type Segments = Vec<String>;

/// One module: a file, or a `mod name { … }` in a file.
#[derive(Default)]
pub struct Module {
    /// The file, relative to the crate's `src`.
    pub file: String,
    /// The module around it; none for the root.
    pub parent: Option<usize>,
    /// Modules declared in it.
    pub children: BTreeMap<String, usize>,
    /// Names of the items it defines.
    pub defined: BTreeSet<String>,
    /// Names it has by `use`, and the paths they stand for.
    pub imported: BTreeMap<String, Vec<Segments>>,
    /// Paths of `use …::*`.
    pub globs: Vec<Segments>,
    /// Paths that stand in it. A name that is only passed on (`pub use`) is not used by the module that passes it on.
    pub paths: BTreeSet<Segments>,
}

/// All modules below one `lib.rs` or `main.rs`; the root is the first.
pub struct Tree {
    /// Modules; others refer to them by their place here.
    pub modules: Vec<Module>,
    /// Macros by name, with a `!`, and the file that defines each.
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
        self.module(file, dir, parent, rust::parse(file, text)?.items, texts)
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
        self.modules.push(Module { file: file.to_owned(), parent, ..Module::default() });
        for item in items {
            let Item::Mod(module) = item else {
                if let Item::Macro(definition) = &item
                    && let Some(name) = &definition.ident
                {
                    self.macros.insert(format!("{name}!"), file.to_owned());
                }
                self.modules[id].add(&item);
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
        Ok(id)
    }
}

impl Module {
    /// Takes in the names and paths of an item.
    fn add(&mut self, item: &Item) {
        let Item::Use(used) = item else {
            self.defined.extend(rust::name(item));
            add_paths(item.to_token_stream(), &mut self.paths);
            return;
        };
        if used.leading_colon.is_some() {
            return;
        }
        for (path, name) in leaves(&used.tree) {
            let Some(name) = name else {
                self.globs.push(path);
                continue;
            };
            if matches!(used.vis, Visibility::Inherited) {
                self.paths.insert(path.clone());
            }
            self.imported.entry(name).or_default().push(path);
        }
    }
}

/// The leaves of a `use`: each path, and the name it gets; no name for `*`.
fn leaves(tree: &UseTree) -> Vec<(Segments, Option<String>)> {
    let of = |name: &syn::Ident| vec![name.to_string()];
    match tree {
        UseTree::Path(path) => {
            let inner = leaves(&path.tree).into_iter();
            inner
                .map(|(segments, name)| {
                    // `use a::b::{self}` gives the name `b`.
                    let own = segments.is_empty() && name.is_some();
                    let name = if own { Some(path.ident.to_string()) } else { name };
                    ([of(&path.ident), segments].concat(), name)
                })
                .collect()
        }
        UseTree::Name(name) if name.ident == "self" => vec![(Vec::new(), Some("self".into()))],
        UseTree::Name(name) => vec![(of(&name.ident), Some(name.ident.to_string()))],
        UseTree::Rename(rename) => vec![(of(&rename.ident), Some(rename.rename.to_string()))],
        UseTree::Glob(_) => vec![(Vec::new(), None)],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

/// Adds the paths among tokens, and those in strings, such as serde's `with = "crate::text"`.
///
/// A field or a variant counts as a use of what the module has by that name.
fn add_paths(tokens: TokenStream, found: &mut BTreeSet<Segments>) {
    let mut path = Segments::new();
    // The punctuation directly before a token.
    let mut before = String::new();
    for token in tokens {
        if let TokenTree::Punct(mark) = token {
            before.push(mark.as_char());
            continue;
        }
        let goes_on = before == "::" && matches!(token, TokenTree::Ident(_));
        if before == "!" && path.len() == 1 && matches!(token, TokenTree::Group(_)) {
            path[0].push('!');
        }
        if !goes_on && !path.is_empty() {
            found.insert(std::mem::take(&mut path));
        }
        match token {
            // After a `.` is a field or method, after a `'` a lifetime, after `>::` what belongs to a type.
            TokenTree::Ident(name) if goes_on || !is_other(&before) => path.push(name.to_string()),
            TokenTree::Group(group) => add_paths(group.stream(), found),
            TokenTree::Literal(literal) => found.extend(path_in(&literal.to_string())),
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        before.clear();
    }
    found.extend(Some(path).filter(|path| !path.is_empty()));
}

/// True if what follows this punctuation is no path, nor the beginning of one.
fn is_other(before: &str) -> bool {
    before.ends_with("::") || before.ends_with('\'') || (before.ends_with('.') && !before.ends_with(".."))
}

/// The path that a string literal is made of.
fn path_in(literal: &str) -> Option<Segments> {
    let text = literal.strip_prefix('"')?.strip_suffix('"')?;
    let segments: Segments = text.split("::").map(str::to_owned).collect();
    let is_name = |name: &String| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (segments.len() > 1 && segments.iter().all(is_name)).then_some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Result<Tree> {
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Tree::read("lib.rs", &texts.collect())
    }

    #[test]
    fn modules_are_found_in_files_directories_and_braces() {
        let tree = tree(&[
            ("lib.rs", "mod one; mod two; mod three { mod four; } #[path = \"odd.rs\"] mod five;"),
            ("one.rs", "mod inner; pub struct A;"),
            ("one/inner.rs", ""),
            ("two/mod.rs", ""),
            ("three/four.rs", ""),
            ("odd.rs", ""),
        ]);
        let tree = tree.unwrap();
        let files: Vec<_> = tree.modules.iter().map(|module| module.file.as_str()).collect();
        assert_eq!(
            files,
            ["lib.rs", "one.rs", "one/inner.rs", "two/mod.rs", "lib.rs", "three/four.rs", "odd.rs"]
        );
        assert!(tree.modules[1].defined.contains("A"));
    }

    #[test]
    fn a_module_of_tests_is_not_read_and_a_missing_file_is_named() {
        let tests = "#[cfg(test)] mod tests; #[cfg(all(test, unix))] mod more { struct A; }";
        assert_eq!(tree(&[("lib.rs", tests)]).unwrap().modules.len(), 1);
        let error = tree(&[("lib.rs", "mod gone;")]).err().unwrap();
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

    #[test]
    fn paths_are_found_in_code_macros_and_strings() {
        let item: Item = syn::parse_str(
            "fn f<'a>(x: &'a m::A) -> B<c::D> { let v = vec![E, self.g.h()]; <T as U>::new(..k) + say!(\"o::p\", \"q r::s\") }",
        )
        .unwrap();
        let mut found = BTreeSet::new();
        add_paths(item.to_token_stream(), &mut found);
        let found: Vec<_> = found.iter().map(|path| path.join("::")).collect();
        assert_eq!(found.join(" "), "B E T U as c::D f fn k let m::A o::p say! self v vec! x");
    }
}
