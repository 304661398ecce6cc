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
use std::ops::Range;
use std::rc::Rc;

use anyhow::{Result, ensure};
use syn::spanned::Spanned as _;
use syn::{ImplItem, Item, TraitItem, Type};

use crate::rust;
use crate::tracked::Workspace;

/// The items of the workspace, each crate read when it is first asked for.
pub struct Items {
    pub workspace: Workspace,
    read: RefCell<BTreeMap<String, Rc<Vec<Named>>>>,
}

/// An item with all its names.
struct Named {
    names: Vec<String>,
    /// The file that it is in.
    file: String,
    /// Its bytes in the file, with its attributes.
    range: Range<usize>,
}

impl Items {
    /// Those of a workspace.
    pub fn of(workspace: Workspace) -> Self {
        Self { workspace, read: RefCell::default() }
    }

    /// The file and the bytes of the one item at this place.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub fn find(&self, place: &str) -> Result<(String, Range<usize>)> {
        let wanted: Vec<&str> = place.split("::").collect();
        let items = self.items(wanted[0])?;
        let found: Vec<&Named> = items.iter().filter(|item| item.is_at(&wanted)).collect();
        let places = found.iter().map(|item| format!("\n    {} in {}", item.names.join("::"), item.file));
        ensure!(
            found.len() == 1,
            "{place}: {} items of this name{}",
            found.len(),
            places.collect::<String>()
        );
        Ok((found[0].file.clone(), found[0].range.clone()))
    }

    fn items(&self, krate: &str) -> Result<Rc<Vec<Named>>> {
        if let Some(known) = self.read.borrow().get(krate) {
            return Ok(Rc::clone(known));
        }
        let mut items = Vec::new();
        let dir = format!("{}/src", self.workspace.dir(krate)?);
        for (path, text) in self.workspace.below(&dir) {
            let is_unit_tests = |part: &str| part == "tests" || part.ends_with("_tests");
            let Some(path_names) = path.strip_suffix(".rs") else { continue };
            if path_names.split('/').any(is_unit_tests) {
                continue;
            }
            let modules = path_names.split('/').filter(|name| !["lib", "mod"].contains(name));
            let names: Vec<String> = [krate].into_iter().chain(modules).map(str::to_owned).collect();
            read_file(&format!("{dir}/{path}"), text, &names, &mut items)?;
        }
        let items = Rc::new(items);
        self.read.borrow_mut().insert(krate.to_owned(), Rc::clone(&items));
        Ok(items)
    }
}

impl Named {
    fn is_at(&self, wanted: &[&str]) -> bool {
        // A module or an `impl` block has its own name before the last.
        let own = if matches!(wanted.last(), Some(&("mod" | "impl"))) { 2 } else { 1 };
        let (Some(outer), Some(cut)) = (wanted.len().checked_sub(own), self.names.len().checked_sub(own))
        else {
            return false;
        };
        let (modules, name) = self.names.split_at(cut);
        let mut modules = modules.iter();
        outer > 0
            && name == &wanted[outer..]
            && modules.next().is_some_and(|krate| krate == wanted[0])
            && wanted[1..outer].iter().all(|wanted| modules.any(|name| name == wanted))
    }
}

/// Adds the items of a file; `names` are those of its crate and modules.
fn read_file(path: &str, text: &str, names: &[String], items: &mut Vec<Named>) -> Result<()> {
    let file = rust::parse(path, text)?;
    let mut reader = Reader { path, items };
    reader.add(names, "mod", 0..text.len());
    reader.all(names, &file.items);
    Ok(())
}

struct Reader<'a> {
    path: &'a str,
    items: &'a mut Vec<Named>,
}

impl Reader<'_> {
    fn add(&mut self, outer: &[String], name: &str, range: Range<usize>) {
        let names = [outer, &[name.to_owned()]].concat();
        self.items.push(Named { names, file: self.path.to_owned(), range });
    }

    fn all(&mut self, outer: &[String], items: &[Item]) {
        for item in items {
            let range = item.span().byte_range();
            if let Item::Impl(block) = item {
                self.implementation(outer, block);
                continue;
            }
            let Some(name) = rust::name(item) else { continue };
            let inner = [outer, std::slice::from_ref(&name)].concat();
            match item {
                Item::Mod(module) => {
                    if let Some((_, items)) = &module.content {
                        self.add(&inner, "mod", range);
                        self.all(&inner, items);
                    }
                }
                Item::Trait(declaration) => {
                    self.add(outer, &name, range);
                    for method in &declaration.items {
                        if let TraitItem::Fn(method) = method {
                            self.add(&inner, &method.sig.ident.to_string(), method.span().byte_range());
                        }
                    }
                }
                _ => self.add(outer, &name, range),
            }
        }
    }

    fn implementation(&mut self, outer: &[String], block: &syn::ItemImpl) {
        let of = block.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        let mut names = outer.to_vec();
        names.extend(of.map(|segment| segment.ident.to_string()));
        names.extend(type_name(&block.self_ty));
        self.add(&names, "impl", block.span().byte_range());
        for item in &block.items {
            let name = match item {
                ImplItem::Fn(method) => &method.sig.ident,
                ImplItem::Const(value) => &value.ident,
                ImplItem::Type(alias) => &alias.ident,
                _ => continue,
            };
            self.add(&names, &name.to_string(), item.span().byte_range());
        }
    }
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
        read_file("f.rs", TEXT, &["api".to_owned(), "front".to_owned()], &mut items).unwrap();
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
        let items = Items::of(Workspace::read(&crate::sh::root()).unwrap());
        let (file, range) = items.find("xtask::mutants::items::Items::find").unwrap();
        assert!(file == "xtask/src/mutants/items.rs" && !range.is_empty());
        for (place, said) in [
            ("xtask::nosuch", "xtask::nosuch: 0 items"),
            ("xtask::run", "xtask::mutants::run in "),
            ("nosuch::a", "no crate nosuch"),
        ] {
            let error = format!("{:#}", items.find(place).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }
}
