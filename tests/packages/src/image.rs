//! The OCI image: its layout is as the specification says, and its programs run in a root made of its layers alone.

use crate::nodes::Api;
use crate::room::Room;
use crate::{Options, file};
use anyhow::{Context, Result, ensure};
use contract::process::{Daemon, check};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Unpacks the image as a runtime would, and starts what it says.
pub fn of_the_registry(options: &Options, dir: &Path) -> Result<()> {
    let archive = file(&options.first, "anneal-controller-", ".oci.tar")?;
    let layout = dir.join("layout");
    fs::create_dir(&layout)?;
    check(Command::new("tar").arg("--extract").arg("--file").arg(&archive).arg("-C").arg(&layout))?;
    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
    let tag = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"].as_str();
    let is_of_a_tag = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    ensure!(tag.is_some_and(|tag| tag.chars().all(is_of_a_tag)), "{tag:?} is no tag");
    let manifest: Value = serde_json::from_slice(&blob(&layout, &index["manifests"][0])?)?;
    let config: Value = serde_json::from_slice(&blob(&layout, &manifest["config"])?)?;
    let root = dir.join("root");
    fs::create_dir(&root)?;
    let layers = manifest["layers"].as_array().context("layers")?;
    let diffs = config["rootfs"]["diff_ids"].as_array().context("diff_ids")?;
    ensure!(layers.len() == 3 && diffs.len() == 3, "{layers:?}, {diffs:?}");
    for (layer, diff) in layers.iter().zip(diffs) {
        ensure!(layer["mediaType"] == "application/vnd.oci.image.layer.v1.tar+zstd", "{layer}");
        blob(&layout, layer)?;
        let packed = blob_path(&layout, layer)?;
        let tar =
            check(Command::new("zstd").args(["--decompress", "--stdout", "--quiet"]).arg(&packed))?.stdout;
        ensure!(*diff == digest(&tar), "{layer} unpacks to something else than {diff}");
        let plain = dir.join("layer.tar");
        fs::write(&plain, tar)?;
        check(
            Command::new("tar")
                .args(["--extract", "--numeric-owner", "--file"])
                .arg(&plain)
                .arg("-C")
                .arg(&root),
        )?;
    }
    fs::create_dir_all(root.join("var/log"))?;
    let room = Room::furnish(root)?;
    programs_run(&room, &config["config"])
}

/// The controller as the image starts it, asked by the command line that is in it; and ipmitool, which has all its libraries.
fn programs_run(room: &Room, config: &Value) -> Result<()> {
    let words = |key: &str| -> Result<Vec<&str>> {
        let list = config[key].as_array().with_context(|| key.to_owned())?;
        list.iter().map(|word| word.as_str().context("a word")).collect()
    };
    let user = config["User"].as_str().context("User")?;
    // There is no shell and no `env` in it: chroot starts the programs themselves.
    let start = |program: &[&str]| -> Result<Command> {
        let mut command = Command::new("chroot");
        command.arg(format!("--userspec={user}")).arg(&room.root).args(program).env_clear();
        // Where chroot itself is.
        command.env("PATH", "/usr/bin:/usr/sbin:/bin:/sbin");
        for word in words("Env")? {
            let (name, value) = word.split_once('=').with_context(|| word.to_owned())?;
            if name != "PATH" {
                command.env(name, value);
            }
        }
        Ok(command)
    };
    let version = check(&mut start(&["/usr/bin/ipmitool", "-V"])?)?.stdout;
    ensure!(String::from_utf8_lossy(&version).starts_with("ipmitool version"), "{version:?}");
    let asks = "/usr/bin/ipmitool -I lanplus -H 127.0.0.1 -p 1 -U u -P p -N 1 -R 1 chassis power status";
    let asked = start(&asks.split(' ').collect::<Vec<_>>())?.output()?;
    // It got as far as the BMC, which is not there.
    let error = String::from_utf8_lossy(&asked.stderr);
    ensure!(error.trim() == "Error: Unable to establish IPMI v2 / RMCP+ session", "{error:?}");
    for path in ["usr/share/anneal/vmlinuz", "usr/lib/ipxe/snponly.efi", "etc/ssl/certs/ca-certificates.crt"]
    {
        ensure!(room.has(path), "/{path} is missing");
    }
    ensure!(!room.has("usr/bin/sh"), "there is a shell");
    let authorities = room.root.join("etc/ssl/certs/ca-certificates.crt");
    check(Command::new("openssl").args(["x509", "-noout", "-in"]).arg(authorities))?;
    let command = start(&[words("Entrypoint")?, words("Cmd")?].concat())?;
    let controller = Daemon::start(&command, &room.root.join("var/log/controller.log"))?;
    Api(room.root.join("run/anneal/api.sock")).wait()?;
    let listed = check(&mut start(&["/usr/bin/anneal", "driver", "list"])?)?.stdout;
    let listed = String::from_utf8_lossy(&listed);
    ensure!(listed.contains("redfish") && !listed.contains("fake-hardware"), "{listed}");
    drop(controller);
    Ok(())
}

/// The bytes that a descriptor names, which have its size and digest.
fn blob(layout: &Path, descriptor: &Value) -> Result<Vec<u8>> {
    let bytes = fs::read(blob_path(layout, descriptor)?)?;
    ensure!(descriptor["size"] == bytes.len() && descriptor["digest"] == digest(&bytes), "{descriptor}");
    Ok(bytes)
}

fn blob_path(layout: &Path, descriptor: &Value) -> Result<std::path::PathBuf> {
    let digest = descriptor["digest"].as_str().with_context(|| descriptor.to_string())?;
    Ok(layout.join("blobs/sha256").join(digest.strip_prefix("sha256:").context("no SHA-256")?))
}

fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    format!("sha256:{}", hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
