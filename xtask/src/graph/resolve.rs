//! From a path in the source to the file that defines what it names.

use super::modules::Tree;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A module of this crate.
    Module(usize),
    /// An item, or something in it.
    Item {
        /// The file that defines it.
        file: String,
        /// Its name there.
        name: String,
    },
}

/// How many `use` may lead from one to the next; more is a circle of names.
const LONGEST_CHAIN: usize = 16;

impl Tree {
    /// What `path` names, written in `module`; none if it is of another crate, or a local name.
    pub fn resolve(&self, module: usize, path: &[String]) -> Option<Target> {
        self.follow(module, path, LONGEST_CHAIN)
    }

    fn follow(&self, module: usize, path: &[String], steps: usize) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut here = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(self.modules[module].parent?),
            name => self.look_up(module, name, !rest.is_empty(), steps)?,
        };
        while let (Target::Module(id), Some((name, after))) = (&here, rest.split_first()) {
            here = match name.as_str() {
                "self" => Target::Module(*id),
                "super" => Target::Module(self.modules[*id].parent?),
                name => self.look_up(*id, name, !after.is_empty(), steps).unwrap_or_else(|| Target::Item {
                    // A macro made it.
                    file: self.modules[*id].file.clone(),
                    name: name.to_owned(),
                }),
            };
            rest = after;
        }
        Some(here)
    }

    /// What `name` is in the scope of a module; `outer` if something in it is meant.
    fn look_up(&self, id: usize, name: &str, outer: bool, steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let module = &self.modules[id];
        let child = module.children.get(name).map(|child| Target::Module(*child));
        if module.defined.contains(name) && !(outer && child.is_some()) {
            return Some(Target::Item { file: module.file.clone(), name: name.to_owned() });
        }
        if child.is_some() {
            return child;
        }
        for path in module.imported.get(name).into_iter().flatten() {
            // `use name::…` in the scope of `name` is another crate's.
            if path.first().is_some_and(|first| first == name) {
                continue;
            }
            if let Some(target) = self.follow(id, path, steps) {
                return Some(target);
            }
        }
        module.globs.iter().find_map(|path| match self.follow(id, path, steps)? {
            Target::Module(other) if other != id => self.look_up(other, name, outer, steps),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracked::Texts;

    fn resolve(files: &[(&str, &str)], module: &str, path: &str) -> Option<(String, String)> {
        let texts: Texts = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        let tree = Tree::read("lib.rs", &texts).unwrap();
        let id = tree.modules.iter().position(|found| found.file == module).unwrap();
        let path: Vec<_> = path.split("::").map(str::to_owned).collect();
        match tree.resolve(id, &path)? {
            Target::Item { file, name } => Some((file, name)),
            Target::Module(id) => Some((tree.modules[id].file.clone(), String::new())),
        }
    }

    const FILES: &[(&str, &str)] = &[
        ("lib.rs", "mod a; mod b; pub use a::One; use b::*; pub struct Root; use tokio::time;"),
        ("a.rs", "pub struct One; pub fn make() {}"),
        ("b.rs", "mod c; pub use c::Two as Second; use super::*; use crate::a::{self, make};"),
        ("b/c.rs", "pub enum Two { X } use super::super::a; use crate::b as up;"),
    ];

    #[test]
    fn a_reexported_name_is_of_the_file_that_defines_it() {
        let found = |file: &str, name: &str| Some((file.to_owned(), name.to_owned()));
        assert_eq!(resolve(FILES, "b/c.rs", "crate::One"), found("a.rs", "One"));
        assert_eq!(resolve(FILES, "b/c.rs", "super::super::Root"), found("lib.rs", "Root"));
        assert_eq!(resolve(FILES, "b/c.rs", "a::make"), found("a.rs", "make"));
        assert_eq!(resolve(FILES, "b/c.rs", "up::Second::X"), found("b/c.rs", "Two"));
        assert_eq!(resolve(FILES, "b.rs", "make"), found("a.rs", "make"));
        assert_eq!(resolve(FILES, "b.rs", "One"), found("a.rs", "One"));
        assert_eq!(resolve(FILES, "lib.rs", "Second"), found("b/c.rs", "Two"));
    }

    #[test]
    fn what_a_macro_made_is_of_the_module_that_the_path_names() {
        assert_eq!(resolve(FILES, "a.rs", "crate::b::Made"), Some(("b.rs".into(), "Made".into())));
    }

    #[test]
    fn names_of_other_crates_and_local_names_are_of_no_file() {
        assert_eq!(resolve(FILES, "lib.rs", "time::Instant"), None);
        assert_eq!(resolve(FILES, "a.rs", "std::fmt::Debug"), None);
        assert_eq!(resolve(FILES, "a.rs", "local"), None);
    }
}
