//! Where an item of our crates is: `api::guard::Guard::is_open`.
//!
//! ```text
//! api::routes                 the function `routes`, in whatever file of the crate `api`
//! api::Guard::is_open         a method; also `api::Policy::Guard::is_open`, that of `impl Policy for Guard`
//! api::front::routes          with a module, where the crate has two of the name
//! api::Drop::Guard::impl      a whole `impl` block
//! api::front::mod             a whole module
//! ```
//!
//! The first name is the crate and the last the item's own; those between are any of its modules, its trait and its
//! type, in order. So moving an item to another file or module leaves its place as it is. Unit tests are no place.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, anyhow, ensure};
use syn::spanned::Spanned;
use syn::{ImplItem, Item, TraitItem, Type};

/// How deep crates lie below the root.
const DEPTH: usize = 3;

/// The sources of the workspace, each crate read when it is first asked for.
pub struct Sources {
    crates: BTreeMap<String, PathBuf>,
    read: RefCell<BTreeMap<String, Rc<Vec<Named>>>>,
}

/// An item with all its names.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    names: Vec<String>,
    /// The file that it is in.
    pub file: PathBuf,
    /// Its bytes in the file, with its attributes.
    pub range: Range<usize>,
}

impl Sources {
    /// The crates below `root`.
    pub fn of(root: &Path) -> Result<Self> {
        let mut crates = BTreeMap::new();
        find_crates(root, DEPTH, &mut crates)?;
        Ok(Self { crates, read: RefCell::default() })
    }

    /// The directory of a crate.
    pub fn dir(&self, krate: &str) -> Result<&Path> {
        self.crates.get(krate).map(PathBuf::as_path).with_context(|| format!("there is no crate {krate}"))
    }

    /// The file and the bytes of the one item at this place.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub fn find(&self, place: &str) -> Result<(PathBuf, Range<usize>)> {
        let wanted: Vec<&str> = place.split("::").collect();
        let items = self.items(wanted[0])?;
        let found: Vec<&Named> = items.iter().filter(|item| item.is_at(&wanted)).collect();
        ensure!(
            found.len() == 1,
            "{place}: {} items of this name{}",
            found.len(),
            found
                .iter()
                .map(|item| format!("\n    {} in {}", item.names.join("::"), item.file.display()))
                .collect::<String>()
        );
        Ok((found[0].file.clone(), found[0].range.clone()))
    }

    fn items(&self, krate: &str) -> Result<Rc<Vec<Named>>> {
        if let Some(known) = self.read.borrow().get(krate) {
            return Ok(Rc::clone(known));
        }
        let mut items = Vec::new();
        read_dir(&self.dir(krate)?.join("src"), &[krate.to_owned()], &mut items)?;
        let items = Rc::new(items);
        self.read.borrow_mut().insert(krate.to_owned(), Rc::clone(&items));
        Ok(items)
    }
}

impl Named {
    fn is_at(&self, wanted: &[&str]) -> bool {
        // A module or an `impl` block has its own name before the last.
        let own = if matches!(wanted.last(), Some(&("mod" | "impl"))) { 2 } else { 1 };
        let Some(outer) = wanted.len().checked_sub(own).filter(|outer| *outer > 0) else { return false };
        let Some(names) = self.names.len().checked_sub(own).map(|cut| self.names.split_at(cut)) else {
            return false;
        };
        let mut modules = names.0.iter();
        names.1 == &wanted[outer..]
            && modules.next().is_some_and(|krate| krate == wanted[0])
            && wanted[1..outer].iter().all(|wanted| modules.any(|name| name == wanted))
    }
}

fn find_crates(dir: &Path, depth: usize, crates: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let manifest = dir.join("Cargo.toml");
    if let Ok(text) = fs::read_to_string(&manifest) {
        let table: toml::Table =
            text.parse().with_context(|| format!("cannot read {}", manifest.display()))?;
        if let Some(name) = table.get("package").and_then(|package| package.get("name")?.as_str()) {
            crates.insert(name.to_owned(), dir.to_owned());
        }
    }
    if depth > 0 {
        for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                find_crates(&path, depth - 1, crates)?;
            }
        }
    }
    Ok(())
}

fn read_dir(dir: &Path, names: &[String], items: &mut Vec<Named>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        // Unit tests in files of their own.
        if stem == "tests" || stem.ends_with("_tests") {
            continue;
        }
        let mut names = names.to_vec();
        if !["lib", "mod"].contains(&stem.as_str()) {
            names.push(stem);
        }
        if path.is_dir() {
            read_dir(&path, &names, items)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            read_file(&path, &text, &names, items)?;
        }
    }
    Ok(())
}

/// Adds the items of a file; `names` are those of its crate and modules.
fn read_file(path: &Path, text: &str, names: &[String], items: &mut Vec<Named>) -> Result<()> {
    let file = syn::parse_file(text).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    let mut reader = Reader { path, items };
    reader.add(names, &["mod".to_owned()], 0..text.len());
    reader.all(names, &file.items);
    Ok(())
}

struct Reader<'a> {
    path: &'a Path,
    items: &'a mut Vec<Named>,
}

impl Reader<'_> {
    fn add(&mut self, names: &[String], own: &[String], range: Range<usize>) {
        self.items.push(Named { names: [names, own].concat(), file: self.path.to_owned(), range });
    }

    fn all(&mut self, names: &[String], items: &[Item]) {
        for item in items {
            let range = item.span().byte_range();
            let (attrs, name) = match item {
                Item::Fn(item) => (&item.attrs, &item.sig.ident),
                Item::Struct(item) => (&item.attrs, &item.ident),
                Item::Enum(item) => (&item.attrs, &item.ident),
                Item::Const(item) => (&item.attrs, &item.ident),
                Item::Static(item) => (&item.attrs, &item.ident),
                Item::Type(item) => (&item.attrs, &item.ident),
                Item::Trait(item) => (&item.attrs, &item.ident),
                Item::Mod(item) => (&item.attrs, &item.ident),
                Item::Macro(item) if let Some(name) = &item.ident => (&item.attrs, name),
                Item::Impl(item) => {
                    self.implementation(names, item);
                    continue;
                }
                _ => continue,
            };
            if is_test(attrs) {
                continue;
            }
            let inner = [names, &[name.to_string()]].concat();
            match item {
                Item::Mod(item) => {
                    if let Some((_, items)) = &item.content {
                        self.add(&inner, &["mod".to_owned()], range);
                        self.all(&inner, items);
                    }
                }
                Item::Trait(item) => {
                    self.add(names, &[name.to_string()], range);
                    for item in &item.items {
                        if let TraitItem::Fn(method) = item {
                            self.add(&inner, &[method.sig.ident.to_string()], method.span().byte_range());
                        }
                    }
                }
                _ => self.add(names, &[name.to_string()], range),
            }
        }
    }

    fn implementation(&mut self, names: &[String], item: &syn::ItemImpl) {
        if is_test(&item.attrs) {
            return;
        }
        let of = item.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        let mut names = names.to_vec();
        names.extend(of.map(|segment| segment.ident.to_string()));
        names.extend(type_name(&item.self_ty));
        self.add(&names, &["impl".to_owned()], item.span().byte_range());
        for inner in &item.items {
            let (name, attrs) = match inner {
                ImplItem::Fn(method) => (&method.sig.ident, &method.attrs),
                ImplItem::Const(value) => (&value.ident, &value.attrs),
                ImplItem::Type(alias) => (&alias.ident, &alias.attrs),
                _ => continue,
            };
            if !is_test(attrs) {
                self.add(&names, &[name.to_string()], inner.span().byte_range());
            }
        }
    }
}

/// `#[cfg(test)]`
fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("cfg") && attr.parse_args::<syn::Ident>().is_ok_and(|word| word == "test")
    })
}

/// The last name of a type's path; none of a tuple, a slice and the like.
fn type_name(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        Type::Reference(inner) => type_name(&inner.elem),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn a() {}\nimpl Drop for Guard<u8> { fn drop(&mut self) { x } }\nimpl Guard { const N: u8 = 1; fn \
                        drop() {} }\nmod m { fn a() {} }\ntrait T { fn t(&self) {} }\n#[cfg(test)] mod tests { fn a() {} }\n";

    fn at(place: &str) -> Vec<&'static str> {
        let mut items = Vec::new();
        read_file(Path::new("f.rs"), TEXT, &["api".to_owned(), "front".to_owned()], &mut items).unwrap();
        let wanted: Vec<&str> = place.split("::").collect();
        items.iter().filter(|item| item.is_at(&wanted)).map(|item| &TEXT[item.range.clone()]).collect()
    }

    #[test]
    fn an_item_is_found_by_as_many_names_as_it_takes() {
        assert_eq!(at("api::a"), ["fn a() {}", "fn a() {}"]);
        assert_eq!(at("api::m::a"), ["fn a() {}"]);
        assert_eq!(at("api::front::m::a").len(), 1);
        assert!(at("api::m::front::a").is_empty() && at("bmc::a").is_empty() && at("a").is_empty());
        assert_eq!(at("api::Drop::Guard::drop"), ["fn drop(&mut self) { x }"]);
        assert_eq!(at("api::Guard::drop").len(), 2);
        assert_eq!(at("api::Guard::N"), ["const N: u8 = 1;"]);
        assert_eq!(at("api::Drop::Guard::impl").len(), 1);
        assert_eq!(at("api::m::mod"), ["mod m { fn a() {} }"]);
        assert_eq!(at("api::front::mod"), [TEXT]);
        assert_eq!(at("api::T::t"), ["fn t(&self) {}"]);
    }

    #[test]
    fn crates_of_the_workspace_are_found_by_their_names() {
        let sources = Sources::of(&crate::sh::root()).unwrap();
        let (file, range) = sources.find("xtask::mutants::items::Sources::find").unwrap();
        assert!(file.ends_with("xtask/src/mutants/items.rs") && !range.is_empty());
        let error = format!("{:#}", sources.find("xtask::nosuch").unwrap_err());
        assert!(error.contains("xtask::nosuch: 0 items"), "{error}");
        let error = format!("{:#}", sources.find("xtask::run").unwrap_err());
        assert!(error.contains("xtask::mutants::run in "), "{error}");
        assert!(sources.find("nosuch::a").is_err());
    }
}
