//! What each file of a crate uses of its other files.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Visibility};

use super::modules::{Segments, Tree, leaves};
use super::resolve::Target;
use crate::rust;

/// An item of a crate: its file, and its name there. All of a file's `use` together are called `use`.
pub type Place = (String, String);

/// What each item uses of the items of other files; what it uses of its own file as well.
pub type Uses = BTreeMap<Place, BTreeSet<Place>>;

/// What the items of a crate use.
///
/// A name that is only passed on (`pub use`) is not used by the file that passes it on.
pub fn of(tree: &Tree) -> Uses {
    let mut uses = Uses::new();
    let mut imports = Uses::new();
    for (id, module) in tree.modules.iter().enumerate() {
        for item in &module.items {
            let mut paths = Paths::default();
            paths.visit_item(item);
            let from = (module.file.clone(), name_of(item));
            let known = paths.found.iter().filter_map(|path| match tree.resolve(id, path)? {
                Target::Item { file, name } => Some((file, name)),
                Target::Module(_) => None,
            });
            let macros =
                paths.macros.iter().filter_map(|name| Some((tree.macros.get(name)?.clone(), name.clone())));
            let all: BTreeSet<Place> = known.chain(macros).filter(|place| *place != from).collect();
            let kind = if matches!(item, Item::Use(_)) { &mut imports } else { &mut uses };
            kind.entry(from).or_default().extend(all);
        }
    }
    add_silent(&mut uses, imports);
    uses
}

/// Adds what is imported and never named: traits, for their methods.
fn add_silent(uses: &mut Uses, imports: Uses) {
    let named: BTreeSet<(String, Place)> = uses
        .iter()
        .flat_map(|((file, _), all)| all.iter().map(|place| (file.clone(), place.clone())))
        .collect();
    for (from, all) in imports {
        let silent: BTreeSet<Place> =
            all.into_iter().filter(|place| !named.contains(&(from.0.clone(), place.clone()))).collect();
        if !silent.is_empty() {
            uses.entry(from).or_default().extend(silent);
        }
    }
}

/// The name of an item; an `impl` has that of its type.
fn name_of(item: &Item) -> String {
    if let Item::Impl(implementation) = item
        && let syn::Type::Path(path) = &*implementation.self_ty
        && let Some(last) = path.path.segments.last()
    {
        return last.ident.to_string();
    }
    rust::name(item).unwrap_or_else(|| "use".into())
}

/// The paths in the items of one module.
#[derive(Default)]
struct Paths {
    found: BTreeSet<Segments>,
    /// Macros that are called by their bare name.
    macros: BTreeSet<String>,
}

impl Paths {
    /// Paths in tokens that are not parsed, those of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Segments::new();
        // What stood before: a `.` (then a name is a field or method), or colons (then it goes on).
        let (mut dots, mut colons) = (false, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.keep(&mut path);
                    }
                    if !dots {
                        path.push(ident.to_string());
                    }
                    (dots, colons) = (false, 0);
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    (dots, colons) = (false, colons + 1);
                }
                TokenTree::Punct(punct) if punct.as_char() == '!' && path.len() == 1 => {
                    self.macros.extend(path.pop());
                    (dots, colons) = (false, 0);
                }
                TokenTree::Punct(punct) => {
                    self.keep(&mut path);
                    (dots, colons) = (punct.as_char() == '.', 0);
                }
                TokenTree::Group(group) => {
                    self.keep(&mut path);
                    self.tokens(group.stream());
                    (dots, colons) = (false, 0);
                }
                TokenTree::Literal(_) => {
                    self.keep(&mut path);
                    (dots, colons) = (false, 0);
                }
            }
        }
        self.keep(&mut path);
    }

    fn keep(&mut self, path: &mut Segments) {
        let path = std::mem::take(path);
        if !path.is_empty() {
            self.found.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        if !rust::is_test(rust::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, used: &'ast syn::ItemUse) {
        // What is passed on is used where it is used; what is imported for its methods stands only here.
        if matches!(used.vis, Visibility::Inherited) && used.leading_colon.is_none() {
            self.found.extend(
                leaves(&used.tree).into_iter().filter(|(_, name)| name.is_some()).map(|(path, _)| path),
            );
        }
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !rust::is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.found.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        match call.path.get_ident() {
            Some(name) => drop(self.macros.insert(name.to_string())),
            None => self.visit_path(&call.path),
        }
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let syn::Meta::List(list) = &attribute.meta else { return };
        if list.path.is_ident("serde") {
            self.strings(list.tokens.clone());
        } else if !list.path.is_ident("cfg") && !list.path.is_ident("derive") {
            self.tokens(list.tokens.clone());
        }
    }
}

impl Paths {
    /// Paths in strings, as serde's `with = "crate::text"`.
    fn strings(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.strings(group.stream()),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    if let Ok(path) = syn::parse_str::<syn::Path>(text.trim_matches('"'))
                        && path.segments.len() > 1
                    {
                        self.visit_path(&path);
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracked::Texts;

    fn uses(files: &[(&str, &str)]) -> Vec<String> {
        let texts: Texts = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        let mut lines = Vec::new();
        for ((file, item), all) in of(&Tree::read("lib.rs", &texts).unwrap()) {
            for (other, name) in all.into_iter().filter(|(other, _)| *other != file) {
                lines.push(format!("{file} {item} → {other} {name}"));
            }
        }
        lines
    }

    #[test]
    fn types_calls_macros_and_attributes_are_uses() {
        let found = uses(&[
            ("lib.rs", "mod a; mod b; fn f(x: a::A) { b::g(); }"),
            (
                "a.rs",
                "use crate::b::{self, T}; pub struct A(#[serde(with = \"crate::b::serialize\")] u8);
                 impl T for A { fn x(&self) { let v = vec![b::MADE, self.b.n]; } }",
            ),
            ("b.rs", "pub trait T {} pub const MADE: u8 = 1; pub fn g() {} pub fn serialize() {}"),
        ]);
        assert_eq!(
            found,
            [
                "a.rs A → b.rs MADE",
                "a.rs A → b.rs T",
                "a.rs A → b.rs serialize",
                "lib.rs f → a.rs A",
                "lib.rs f → b.rs g",
            ]
        );
    }

    #[test]
    fn declaring_passing_on_and_testing_are_no_uses() {
        let found = uses(&[
            ("lib.rs", "mod a; mod b; pub use a::A; pub(crate) use b::B;"),
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use super::super::B; fn f() { crate::b::B; } }"),
            ("b.rs", "pub(in crate::b) struct B; /// See [`crate::a::A`].\n pub struct C;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn the_parent_s_name_is_used_by_its_child_and_macros_by_who_calls_them() {
        let found = uses(&[
            ("lib.rs", "macro_rules! say { () => {} } mod a; pub struct Root;"),
            ("a.rs", "use super::Root; fn f() { say!(); }"),
        ]);
        assert_eq!(found, ["a.rs f → lib.rs say", "a.rs use → lib.rs Root"]);
    }
}
