//! Circles: files of a crate that use each other, directly or through others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::modules::Tree;
use super::resolve::Target;

/// What each file uses of each other one: file → file → names.
pub type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Adds what the files of a tree of modules use of each other.
pub fn add_uses(tree: &Tree, uses: &mut Uses) {
    for (id, module) in tree.modules.iter().enumerate() {
        let of_file = uses.entry(module.file.clone()).or_default();
        for path in &module.paths {
            let target = match tree.macros.get(&path[0]) {
                Some(file) => Some(Target::Item { file: file.clone(), name: path[0].clone() }),
                None => tree.resolve(id, path),
            };
            if let Some(Target::Item { file, name }) = target
                && file != module.file
            {
                of_file.entry(file).or_default().insert(name);
            }
        }
    }
}

/// The circles: files each of which reaches each other one. The largest comes first.
pub fn find(uses: &Uses) -> Vec<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|file| (file.as_str(), reach(file, uses))).collect();
    let circle_of =
        |file: &str| reached[file].iter().copied().filter(|other| reached[other].contains(file)).collect();
    let circles: BTreeSet<BTreeSet<&str>> = reached.keys().map(|file| circle_of(file)).collect();
    let mut circles: Vec<_> = circles.into_iter().filter(|files| !files.is_empty()).collect();
    circles.sort_by_key(|files| Reverse(files.len()));
    circles
}

/// The files that a file uses, directly or through others.
fn reach<'a>(file: &str, uses: &'a Uses) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut todo = vec![file];
    while let Some(file) = todo.pop() {
        for other in uses.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(other.as_str()) {
                todo.push(other);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)]) -> Uses {
        let texts = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        let mut uses = Uses::new();
        add_uses(&Tree::read("lib.rs", &texts).unwrap(), &mut uses);
        uses
    }

    fn shown(files: &[(&str, &str)]) -> Vec<String> {
        let mut lines = Vec::new();
        for (file, others) in uses(files) {
            for (other, names) in others {
                lines.push(format!("{file} → {other}: {}", names.into_iter().collect::<Vec<_>>().join(" ")));
            }
        }
        lines
    }

    #[test]
    fn types_calls_macros_and_attributes_are_uses() {
        let found = shown(&[
            ("lib.rs", "mod a; mod b; fn f(x: a::A) { b::g(); }"),
            (
                "a.rs",
                "use crate::b::{self, T}; pub struct A(#[serde(with = \"crate::b::serialize\")] u8);
                 impl T for A { fn x(&self) { let v = vec![b::MADE, self.b.n]; } }",
            ),
            ("b.rs", "pub trait T {} pub const MADE: u8 = 1; pub fn g() {} pub fn serialize() {}"),
        ]);
        assert_eq!(found, ["a.rs → b.rs: MADE T serialize", "lib.rs → a.rs: A", "lib.rs → b.rs: g"]);
    }

    #[test]
    fn declaring_passing_on_and_testing_are_no_uses() {
        let found = shown(&[
            ("lib.rs", "mod a; mod b; pub use a::A; pub(crate) use b::B;"),
            ("a.rs", "pub struct A; #[cfg(test)] mod tests { use super::super::B; fn f() { crate::b::B; } }"),
            ("b.rs", "pub(in crate::b) struct B; /// See [`crate::a::A`].\n pub struct C;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn the_parent_s_name_is_used_by_its_child_and_macros_by_who_calls_them() {
        let found = shown(&[
            ("lib.rs", "macro_rules! say { () => {} } mod a; pub struct Root;"),
            ("a.rs", "use super::Root; fn f() { say!(); }"),
        ]);
        assert_eq!(found, ["a.rs → lib.rs: Root say!"]);
    }

    /// The circles of uses such as `ab`: file `a` uses file `b`.
    fn circles(edges: &str) -> Vec<String> {
        let mut uses = Uses::new();
        for edge in edges.split(' ') {
            let (from, to) = edge.split_at(1);
            uses.entry(from.into()).or_default().entry(to.into()).or_default();
            uses.entry(to.into()).or_default();
        }
        find(&uses).into_iter().map(|files| files.into_iter().collect()).collect()
    }

    #[test]
    fn files_that_reach_each_other_are_circles() {
        assert!(circles("ab bc ac dc ad").is_empty());
        assert_eq!(circles("ab ba cd de ec ac ef df fg"), ["cde", "ab"]);
    }
}
