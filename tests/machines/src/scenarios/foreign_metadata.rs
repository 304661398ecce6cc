//! A datastore that other hosts may be using refuses the run for all disks of the node. Released by name, the metadata
//! of everything goes, its second copies too, as the tools that made it confirm from outside.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use agent_protocol::record::Outcome;
use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::signatures::{Content, Table};
use reqwest::Method;
use serde_json::json;

use crate::disk::OldDisk;
use crate::stage::{LONG, METADATA, NODE, Stage, held, manageable, through};

pub const ABOUT: &str =
    "a VMFS datastore next to LUKS2 and BlueStore refuses the run; released by name, all metadata goes";

const GIB: u64 = 1 << 30;
/// Ceph BlueStore, `bdev_label` of newer versions: at the beginning and at 1, 10, 100, 1000 GiB.
const LABEL: &[u8] = b"bluestore block device\n01234567-89ab-cdef-0123-456789abcdef\n";
const LABELS: [u64; 3] = [0, GIB, 10 * GIB];

pub async fn story(stage: Stage) -> Result<()> {
    let datastore = stage.disk("VMFS", Bus::Virtio, 32)?.labelled(Table::Gpt, Content::Vmfs)?;
    let locked = OldDisk::prepared(&stage.dir, "LUKS", Bus::Nvme, 32 << 20, |file| {
        let words = "luksFormat --type luks2 --luks2-metadata-size 4m -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000";
        ensure!(cryptsetup(words, file)?, "cryptsetup does not make LUKS2");
        ensure!(cryptsetup("isLuks", file)?, "no LUKS2 to begin with");
        Ok(())
    })?;
    let ceph = OldDisk::prepared(&stage.dir, "CEPH", Bus::Scsi, 11 * GIB, |file| {
        let image = File::options().write(true).open(file)?;
        LABELS.iter().try_for_each(|place| Ok(image.write_all_at(LABEL, *place)?))
    })?;
    let disks = [&datastore, &locked, &ceph];

    let mut site = stage.site("").await?;
    let _node = manageable(&mut site, &disks).await?;
    site.controller.provision(NODE, "provide").await?;
    let after = held(&site.controller).await?;
    after.ensure_says(&["nothing was written to any disk", "VMFS"])?;
    for record in after.records(METADATA)? {
        ensure!(record.outcome == Outcome::Skipped && record.bytes_erased == 0, "{record:?}");
    }
    for disk in disks {
        disk.ensure_untouched()?;
    }

    site.controller.provision(NODE, "manage").await?;
    site.controller.node_in(NODE, &["manageable"], LONG).await?;
    site.controller.call(Method::DELETE, &format!("/v1/nodes/{NODE}/maintenance"), None).await?;
    let step =
        json!({"interface": "deploy", "step": "erase_devices_metadata", "args": {"despite": ["shared"]}});
    let after =
        through(&site.controller, json!({"target": "clean", "clean_steps": [step]}), "manageable").await?;
    for disk in disks {
        let record = after.record(METADATA, disk.serial())?;
        ensure!(record.outcome == Outcome::MetadataErased, "{record:?}");
    }
    ensure!(datastore.findings()?.tags > 0, "only metadata was to be erased");
    ensure!(!cryptsetup("isLuks", &locked.spec.file)?, "cryptsetup still finds a header");
    let left = ceph.findings()?;
    ensure!(left.nonzero_bytes == 0, "labels of BlueStore are left: {left:?}");
    let table = read(&datastore.spec.file, 512, 8)?;
    ensure!(table != b"EFI PART", "the table of the datastore is left");
    Ok(())
}

/// Whether cryptsetup says yes.
fn cryptsetup(words: &str, file: &Path) -> Result<bool> {
    let mut command = Command::new("cryptsetup");
    command.args(words.split(' ')).arg(file).stdin(Stdio::piped()).stderr(Stdio::null());
    if words.starts_with("luksFormat") {
        command.arg("-");
    }
    let mut child = command.spawn().context("cannot start cryptsetup (cryptsetup-bin)")?;
    if let Some(mut input) = child.stdin.take() {
        // One that asks for nothing may be gone already.
        let _ = std::io::Write::write_all(&mut input, b"pass");
    }
    Ok(child.wait()?.success())
}

fn read(file: &Path, offset: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    File::open(file)?.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
