//! The arrows between our crates, as `ARCHITECTURE.md` draws them, and the circles between the modules of one.

mod circles;
mod modules;
mod report;
mod resolve;
mod uses;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::args::Args;
use crate::sh;

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
    ("model", &["mac"]),
    ("inspection-rules", &["model"]),
    ("store", &["model"]),
    ("store-sqlite", &["store", "model"]),
    ("bmc", &["model", "agent-protocol", "mac"]),
    ("boot", &["mac"]),
    (
        "conductor",
        &["store", "bmc", "inspection-rules", "model", "certificate", "agent-protocol", "pinned-tls"],
    ),
    ("api", &["store", "inspection-rules", "model", "bundle", "agent-protocol", "mac"]),
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
    ("explore", &["conductor", "store", "model", "agent-protocol", "room"]),
    ("drive", &[]),
    ("lab", &[]),
    ("machines", &["lab", "agent-protocol", "contract"]),
    ("demo", &["lab", "agent-protocol"]),
    ("contract", &[]),
    ("bench", &["agent-protocol", "block", "contract", "model", "room"]),
    ("kill", &["agent-protocol", "bench", "contract", "room"]),
    ("room", &["model", "store", "agentd", "hwm-sdk", "agent-protocol"]),
    ("sim", &["api", "conductor", "store", "bmc", "model", "agentd", "hwm-sdk", "agent-protocol", "room"]),
    ("xtask", &[]),
];

/// `cargo xtask graph [--circles [--cuts]] [--root DIR]`
pub fn run(words: Vec<String>) -> Result<()> {
    let mut args = Args::new(words);
    let (list, cuts) = (args.flag("--circles"), args.flag("--cuts"));
    let root = args.option("--root")?.map_or_else(sh::root, Into::into);
    args.finish()?;
    let crates = report::read(&root)?;
    if list {
        print!("{}", report::all(&crates, cuts));
    } else {
        arrows()?;
        println!("{}", report::judge(&crates)?);
    }
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
    if !wrong.is_empty() {
        bail!("the arrows between the crates are not those of ARCHITECTURE.md:\n  {}", wrong.join("\n  "));
    }
    println!("arrows: {} crates as ARCHITECTURE.md draws them", packages.len());
    Ok(())
}
