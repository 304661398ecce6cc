//! The names that others see: public types, traits and modules, SQL tables and columns.

use anyhow::Result;
use syn::visit::{self, Visit};
use syn::{Item, Visibility};

use crate::rust;

/// One name.
#[derive(Debug, PartialEq)]
pub struct Name {
    /// The file.
    pub path: String,
    /// As it stands there.
    pub name: String,
}

/// The names of a Rust file: its own, of its modules, and of what is visible outside the module.
pub fn of_rust(path: &str, text: &str) -> Result<Vec<Name>> {
    let mut found = Found { path, names: Vec::new() };
    found.visit_file(&rust::parse(path, text)?);
    Ok(found.names)
}

struct Found<'a> {
    path: &'a str,
    names: Vec<Name>,
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let shown = match item {
            // The file of a module has its name in any case.
            Item::Mod(_) => true,
            Item::Enum(item) => is_shown(&item.vis),
            Item::Struct(item) => is_shown(&item.vis),
            Item::Trait(item) => is_shown(&item.vis),
            Item::Type(item) => is_shown(&item.vis),
            Item::Union(item) => is_shown(&item.vis),
            _ => false,
        };
        if let Some(name) = rust::name(item).filter(|_| shown) {
            self.names.push(Name { path: self.path.to_owned(), name });
        }
        visit::visit_item(self, item);
    }
}

fn is_shown(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

/// The tables that a migration makes, and their columns.
pub fn of_sql(path: &str, text: &str) -> Vec<Name> {
    /// Words with which a line of a table begins that is no column.
    const NO_COLUMN: [&str; 7] = ["PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "CONSTRAINT", "REFERENCES", "AS"];
    let mut names = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let line = line.split("--").next().unwrap_or_default().trim();
        let mut words =
            line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let mut add = |name: Option<&str>| {
            names.extend(name.map(|name| Name { path: path.to_owned(), name: name.to_owned() }));
        };
        if line.starts_with("CREATE TABLE") {
            let name = words.find(|word| !["CREATE", "TABLE", "IF", "NOT", "EXISTS"].contains(word));
            add(name);
            inside = true;
        } else if line.starts_with("ALTER TABLE") && line.contains("ADD COLUMN") {
            add(words.skip_while(|word| *word != "COLUMN").nth(1));
        } else if line.starts_with(')') {
            inside = false;
        } else if inside {
            add(words.next().filter(|word| !NO_COLUMN.contains(word)));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: Vec<Name>) -> Vec<String> {
        names.into_iter().map(|name| name.name).collect()
    }

    #[test]
    fn what_others_see_has_a_name() {
        let text = "pub struct A; pub(crate) enum B {} struct C; mod d { pub trait E {} } pub type F = u8;
                    pub fn g() {} #[cfg(test)] mod tests { pub struct H; }";
        assert_eq!(names(of_rust("a.rs", text).unwrap()), ["A", "B", "d", "E", "F"]);
    }

    #[test]
    fn tables_and_columns_have_names() {
        let text = "-- CREATE TABLE x (\nCREATE TABLE node (\n    uuid TEXT NOT NULL, -- its id\n    \"key\" TEXT\n               \
                    REFERENCES a (b),\n    PRIMARY KEY (uuid)\n) STRICT;\nCREATE INDEX i ON node (uuid);\n\
                    ALTER TABLE node ADD COLUMN owner TEXT;\n";
        assert_eq!(names(of_sql("a.sql", text)), ["node", "uuid", "key", "owner"]);
    }
}
