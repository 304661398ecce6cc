//! The arrows between our crates, as `ARCHITECTURE.md` draws them, and the circles between the modules of one.

mod circles;
mod modules;
mod resolve;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::args::Args;
use crate::tracked::{self, Texts};
use crate::{findings, sh};
use circles::Uses;
use modules::Tree;

/// Crate, and which of ours it may use (dev-dependencies are free).
const ARROWS: &[(&str, &[&str])] = &[
    ("mac", &[]),
    ("agent-protocol", &[]),
    ("pinned-tls", &[]),
    ("block", &[]),
    ("sandbox", &[]),
    ("signing", &[]),
    ("certificate", &["agent-protocol", "signing"]),
    ("bundle", &["hwm-sdk", "signing"]),
    ("hwm-sdk", &["agent-protocol"]),
    ("hwm-conformance", &["hwm-sdk", "agent-protocol"]),
    ("hwm-example-external", &["hwm-sdk", "agent-protocol"]),
    ("hwm-generic", &["hwm-sdk", "block", "agent-protocol"]),
    ("hwm-raidtool", &["hwm-sdk", "agent-protocol"]),
    ("ramdisk-init", &["agent-protocol", "mac"]),
    ("hwm-host", &["hwm-sdk", "sandbox", "block", "bundle", "agent-protocol"]),
    (
        "agentd",
        &[
            "ramdisk-init",
            "hwm-host",
            "hwm-generic",
            "hwm-sdk",
            "block",
            "bundle",
            "certificate",
            "agent-protocol",
            "mac",
            "pinned-tls",
        ],
    ),
    ("model", &[]),
    ("inspection-rules", &["model"]),
    ("store", &["model"]),
    ("store-sqlite", &["store", "model"]),
    ("bmc", &["model", "agent-protocol", "mac"]),
    ("boot", &["mac"]),
    (
        "conductor",
        &["store", "bmc", "inspection-rules", "model", "certificate", "agent-protocol", "pinned-tls"],
    ),
    ("api", &["store", "inspection-rules", "model", "bundle", "agent-protocol"]),
    (
        "controllerd",
        &[
            "api",
            "conductor",
            "store-sqlite",
            "store",
            "boot",
            "bmc",
            "bundle",
            "certificate",
            "model",
            "agent-protocol",
        ],
    ),
    ("cli", &["bundle", "certificate", "agent-protocol", "mac", "pinned-tls"]),
    ("explore", &["conductor", "store", "model", "agent-protocol"]),
    ("drive", &[]),
    ("lab", &[]),
    ("machines", &["lab", "agent-protocol", "contract"]),
    ("demo", &["lab", "agent-protocol"]),
    ("contract", &[]),
    ("bench", &["agent-protocol", "block", "contract"]),
    ("kill", &["agent-protocol", "bench", "contract"]),
    ("sim", &["api", "conductor", "store", "bmc", "model", "agentd", "hwm-sdk", "agent-protocol"]),
    ("xtask", &[]),
];

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

/// Compares the dependencies of our crates with [`ARROWS`].
fn arrows() -> Result<()> {
    let text = sh::output(sh::cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata")?;
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let packages = list(&metadata, "packages");
    let ours: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut wrong = Vec::new();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("{name} has no arrows in xtask/src/graph.rs"));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let used = dependency["name"].as_str().unwrap_or_default();
            if dependency["kind"] != "dev" && ours.contains(&used) && !allowed.contains(&used) {
                wrong.push(format!("{name} must not depend on {used}"));
            }
        }
    }
    findings::none(&wrong, "the arrows between the crates are not those of ARCHITECTURE.md")?;
    println!("arrows: {} crates as ARCHITECTURE.md draws them", packages.len());
    Ok(())
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
    let one = |files: std::collections::BTreeSet<&str>| {
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
