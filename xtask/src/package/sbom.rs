//! The list of components (SBOM) as CycloneDX 1.5: the crates that the programs are linked with, by cargo's own account and
//! with the checksums of `Cargo.lock`, and the packages of Debian that are in the ramdisk and in the OCI image.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Plan;
use crate::sh;

/// Programs that are given away: of the controller's machine, and the agent in the ramdisk.
const PROGRAMS: [&str; 3] = ["controllerd", "cli", "agentd"];

/// A package of Debian: name, version, and SHA-256 where it is known.
pub struct Debian {
    pub name: String,
    pub version: String,
    pub sha256: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

/// Name and version of a crate.
type Id = (String, String);

/// The list, as JSON.
pub fn build(plan: &Plan, debian: &[Debian]) -> Result<String> {
    let licences = licences(&tree()?)?;
    let lock: Lock = toml::from_str(&fs::read_to_string(sh::root().join("Cargo.lock"))?)?;
    document(plan, &licences, &lock, debian)
}

/// `name vVERSION (…)|LICENCE`, a line for each crate that is linked.
fn tree() -> Result<String> {
    let mut tree = sh::cargo();
    tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}|{l}"]);
    tree.args(["--target", "x86_64-unknown-linux-gnu"]);
    sh::output(tree.args(PROGRAMS.iter().flat_map(|name| ["--package", name])))
}

fn licences(tree: &str) -> Result<BTreeMap<Id, String>> {
    let mut found = BTreeMap::new();
    for line in tree.lines().filter(|line| !line.trim().is_empty()) {
        let (krate, licence) =
            line.split_once('|').with_context(|| format!("a line of cargo tree: {line}"))?;
        let mut words = krate.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let version = version.strip_prefix('v').with_context(|| format!("no version in {line}"))?;
        let licence = licence.trim_end_matches(" (*)").replace('/', " OR ");
        ensure!(!licence.is_empty(), "{name} {version} names no licence");
        found.insert((name.to_owned(), version.to_owned()), licence);
    }
    Ok(found)
}

fn document(plan: &Plan, licences: &BTreeMap<Id, String>, lock: &Lock, debian: &[Debian]) -> Result<String> {
    let locked: BTreeMap<Id, &Locked> =
        lock.package.iter().map(|krate| ((krate.name.clone(), krate.version.clone()), krate)).collect();
    let (mut components, mut edges) = (Vec::new(), Vec::new());
    for (id, licence) in licences {
        let krate = locked.get(id).with_context(|| format!("{} {} is not in Cargo.lock", id.0, id.1))?;
        let mut component = json!({
            "type": "library", "bom-ref": crate_ref(id), "name": id.0, "version": id.1, "purl": crate_ref(id),
            "licenses": [{ "expression": licence }],
        });
        if let Some(checksum) = &krate.checksum {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        components.push(component);
        let needed = krate.dependencies.iter().filter_map(|text| dependency(text, licences));
        let needed: BTreeSet<String> = needed.map(crate_ref).collect();
        edges.push(json!({ "ref": crate_ref(id), "dependsOn": needed }));
    }
    for package in debian {
        let reference = format!("pkg:deb/debian/{}@{}?arch=amd64", package.name, package.version);
        let mut component = json!({ "type": "library", "bom-ref": reference, "name": package.name,
            "version": package.version, "purl": reference });
        if let Some(sha256) = &package.sha256 {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
        }
        components.push(component);
    }
    let root = format!("pkg:generic/anneal@{}", plan.version);
    let programs: Vec<String> =
        licences.keys().filter(|(name, _)| PROGRAMS.contains(&name.as_str())).map(crate_ref).collect();
    edges.insert(0, json!({ "ref": root, "dependsOn": programs }));
    let document = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": serial(&json!([components, plan.version])),
        "metadata": {
            "timestamp": super::rfc3339(plan.epoch)?,
            "component": { "type": "application", "bom-ref": root, "name": "anneal", "version": plan.version,
                "licenses": [{ "expression": "Apache-2.0" }] },
        },
        "components": components,
        "dependencies": edges,
    });
    Ok(format!("{document:#}\n"))
}

/// The crate that `name` or `name version` means in `Cargo.lock`, if it is linked.
fn dependency<'a>(text: &str, linked: &'a BTreeMap<Id, String>) -> Option<&'a Id> {
    let (name, version) = text.split_once(' ').map_or((text, None), |(name, version)| (name, Some(version)));
    linked.keys().find(|id| id.0 == name && version.is_none_or(|version| id.1 == version))
}

/// A package URL (purl-spec, type `cargo`).
fn crate_ref((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// A UUID (version 8, RFC 9562) of what is listed: the same list has the same.
fn serial(content: &Value) -> String {
    let hash = sh::sha256(content.to_string().as_bytes());
    format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        &hash[..8],
        &hash[8..12],
        &hash[12..15],
        &hash[15..18],
        &hash[18..30]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this_tree() -> Value {
        let debian =
            [Debian { name: "ipmitool".into(), version: "1.8.19-4".into(), sha256: Some("ab".repeat(32)) }];
        serde_json::from_str(&build(&Plan::sample(), &debian).unwrap()).unwrap()
    }

    /// What CycloneDX 1.5 asks for (bom-1.5.schema.json): required members, unique references, edges between them.
    #[test]
    fn every_linked_crate_is_listed_with_licence_and_checksum() {
        let list = of_this_tree();
        assert_eq!((&list["bomFormat"], &list["specVersion"]), (&json!("CycloneDX"), &json!("1.5")));
        let serial = list["serialNumber"].as_str().unwrap();
        let parts: Vec<usize> = serial.strip_prefix("urn:uuid:").unwrap().split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        let components = list["components"].as_array().unwrap();
        let references: BTreeSet<&str> =
            components.iter().map(|component| component["bom-ref"].as_str().unwrap()).collect();
        assert_eq!(references.len(), components.len(), "a reference is there twice");
        for component in components {
            assert!(component["type"] == "library" && component["name"].is_string(), "{component}");
            assert_eq!(component["purl"], component["bom-ref"], "{component}");
            let of_debian = component["purl"].as_str().unwrap().starts_with("pkg:deb/");
            assert!(of_debian || component["licenses"][0]["expression"].is_string(), "{component}");
            if let Some(hash) = component["hashes"][0]["content"].as_str() {
                assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{component}");
            }
        }
        let with_hash = components.iter().filter(|component| component["hashes"].is_array()).count();
        assert!(with_hash > 150, "{with_hash} checksums only");
        for name in ["tokio", "rusqlite", "controllerd", "agentd", "cli", "ipmitool"] {
            assert!(components.iter().any(|component| component["name"] == name), "{name} is missing");
        }
        // What only tests and builds use is not given away.
        for name in ["proptest", "cc", "sim", "xtask"] {
            assert!(components.iter().all(|component| component["name"] != name), "{name} is not linked");
        }
        let root = list["metadata"]["component"]["bom-ref"].as_str().unwrap();
        for edge in list["dependencies"].as_array().unwrap() {
            let from = edge["ref"].as_str().unwrap();
            assert!(from == root || references.contains(from), "{edge}");
            let to = edge["dependsOn"].as_array().unwrap();
            assert!(to.iter().all(|to| references.contains(to.as_str().unwrap())), "{edge}");
        }
        assert_eq!(list["dependencies"][0]["dependsOn"].as_array().unwrap().len(), PROGRAMS.len());
    }

    #[test]
    fn a_crate_without_a_licence_or_a_checksum_line_is_an_error() {
        assert!(licences("a v1.0.0|\n").unwrap_err().to_string().contains("a 1.0.0 names no licence"));
        let one = licences("a v1.0.0 (/w/a)|MIT/Apache-2.0 (*)\n").unwrap();
        assert_eq!(one[&("a".to_owned(), "1.0.0".to_owned())], "MIT OR Apache-2.0");
        let none = Lock { package: Vec::new() };
        assert!(document(&Plan::sample(), &one, &none, &[]).is_err());
    }
}
