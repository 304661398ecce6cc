//! The arrows between our crates, as `ARCHITECTURE.md` draws them, and the circles between the modules of one.

mod circles;
mod modules;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value;

use crate::args::Args;
use crate::tracked::{self, Texts};
use crate::{findings, sh};
use circles::Uses;
use modules::Tree;

/// The page with the arrows between the crates: lines such as `api, conductor → store, model`.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// `cargo xtask graph [--root DIR]`
pub fn run(mut args: Args) -> Result<()> {
    let root = args.root()?;
    args.finish()?;
    arrows()?;
    let crates = read(&root)?;
    let circles: Vec<String> = crates.iter().flat_map(|(name, uses)| shown(name, uses)).collect();
    findings::none(&circles, "modules use each other in circles")?;
    println!("modules: no circles in {} product crates", crates.len());
    Ok(())
}

/// Compares the dependencies of our crates with the arrows of [`ARCHITECTURE`]; dev-dependencies are free.
fn arrows() -> Result<()> {
    let text = sh::output(sh::cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
    let page = fs::read_to_string(sh::root().join(ARCHITECTURE))?;
    let wrong = wrong_arrows(&metadata, &drawn(&page));
    findings::none(&wrong, "the arrows between the crates are not those of ARCHITECTURE.md")?;
    println!("arrows: those between the crates are as {ARCHITECTURE} draws them");
    Ok(())
}

/// Crate, and which it may use.
fn drawn(page: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let section = page.split_once("\nArrows ").map_or("", |(_, section)| section);
    let block = section.split("```").nth(1).unwrap_or_default();
    let arrows = block.lines().filter_map(|line| line.split_once(" → "));
    let single = arrows.flat_map(|(users, used)| {
        users.split(", ").map(move |user| (user, used.split(", ").collect::<BTreeSet<_>>()))
    });
    single.collect()
}

fn wrong_arrows(metadata: &Value, drawn: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    for package in list(metadata, "packages") {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(allowed) = drawn.get(name) else {
            wrong.push(format!("{ARCHITECTURE} draws no arrow from {name}"));
            continue;
        };
        for dependency in list(&package, "dependencies") {
            let used = dependency["name"].as_str().unwrap_or_default();
            if dependency["kind"] != "dev" && !dependency["path"].is_null() && !allowed.contains(used) {
                wrong.push(format!("{name} must not depend on {used}"));
            }
        }
    }
    wrong
}

/// What the files of each product crate of a checkout use of each other.
fn read(root: &Path) -> Result<BTreeMap<String, Uses>> {
    let mut sources: BTreeMap<String, Texts> = BTreeMap::new();
    for (path, text) in tracked::product_source(root)? {
        if let Some((name, dir)) = tracked::product_crate(&path) {
            let inner = path[dir.len() + "/src/".len()..].to_owned();
            sources.entry(name.to_owned()).or_default().insert(inner, text);
        }
    }
    let uses = sources.into_iter().map(|(name, texts)| {
        let uses = of_crate(&texts).with_context(|| format!("crate {name}"))?;
        Ok((name, uses))
    });
    uses.collect()
}

/// Those of one crate: of its library and of each of its programs.
fn of_crate(texts: &Texts) -> Result<Uses> {
    let mut uses = Uses::new();
    let is_root = |path: &str| {
        matches!(path, "lib.rs" | "main.rs") || (path.starts_with("bin/") && path.matches('/').count() == 1)
    };
    for root in texts.keys().filter(|path| is_root(path)) {
        circles::add_uses(&Tree::read(root, texts)?, &mut uses);
    }
    Ok(uses)
}

/// Each circle of a crate, with what its files use of each other.
fn shown(name: &str, uses: &Uses) -> Vec<String> {
    let one = |files: BTreeSet<&str>| {
        let mut text = format!("{name}: a circle of {} files", files.len());
        for from in &files {
            for (to, names) in uses[*from].iter().filter(|(to, _)| files.contains(to.as_str())) {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                let _ = write!(text, "\n    {from} → {to}: {}", names.join(", "));
            }
        }
        text
    };
    circles::find(uses).into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_is_not_drawn_is_wrong() {
        let page = "# A\n\nArrows (checked):\n\n```\na → nothing of ours\nb, c → a\n```\n";
        let metadata = serde_json::json!({"packages": [
            {"name": "b", "dependencies": [{"name": "a", "path": "/a"}, {"name": "syn"}]},
            {"name": "a", "dependencies": [{"name": "b", "path": "/b"}, {"name": "c", "path": "/c", "kind": "dev"}]},
            {"name": "d", "dependencies": []},
        ]});
        assert_eq!(
            wrong_arrows(&metadata, &drawn(page)),
            ["a must not depend on b", "ARCHITECTURE.md draws no arrow from d"]
        );
    }

    #[test]
    fn a_circle_is_reported_with_its_edges() {
        let judged = |lib: &str| {
            let texts = [("lib.rs", lib), ("a.rs", "pub struct A; use crate::Root;")];
            let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
            shown("block", &of_crate(&texts).unwrap())
        };
        assert_eq!(
            judged("mod a; pub struct Root(a::A);"),
            ["block: a circle of 2 files\n    a.rs → lib.rs: Root\n    lib.rs → a.rs: A"]
        );
        assert!(judged("mod a; pub struct Root; pub use a::A;").is_empty());
    }
}
