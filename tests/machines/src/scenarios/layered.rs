//! Disks in use when the agent starts: a mounted file system and swap in LVM on LUKS on md, a volume group, a striped
//! array, an array that lacks a member. Real tools make them in the node, before the agent. All is taken down, and every
//! disk is erased; a disk that must not be written keeps all of it up.

use std::fs;
use std::os::unix::fs::FileExt;

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::Bus;

use crate::layers;
use crate::node::Node;
use crate::stage::{ERASE, LONG, NO_METADATA, NODE, Stage, manageable};

/// A disk that begins with this is made part of something at boot; an erased one does not.
const MARK: &[u8] = b"LAYERED\n";

/// Makes the layers. `of SERIAL` is the disk of that serial number.
const SCRIPT: &str = r#"
for module in virtio_pci virtio_blk md_mod raid0 raid1 dm_mod dm_crypt xts vfat nls_cp437 nls_ascii; do
    modprobe $module
done
of() {
    for disk in /sys/block/vd*; do
        grep -qx "$1" $disk/serial && echo /dev/$(basename $disk)
    done
}
tries=0
until [ -n "$(of HALF)" ] || [ $tries = 50 ]; do sleep 0.2; tries=$((tries + 1)); done
if dd if=$(of HALF) bs=8 count=1 2>/dev/null | grep -q LAYERED; then
    array="mdadm --create --run --metadata=1.2 --assume-clean --homehost=old"
    lvm="lvm"
    quiet="--config activation{udev_sync=0,udev_rules=0}devices{use_devicesfile=0}global{event_activation=0} --yes"
    $array /dev/md/mirror --name=mirror --level=1 --bitmap=internal --raid-devices=2 $(of MIRROR1) $(of MIRROR2)
    echo old | cryptsetup luksFormat --batch-mode --type luks1 --pbkdf-force-iterations 1000 /dev/md/mirror -
    echo old | cryptsetup open --key-file - --type luks /dev/md/mirror old
    lvm pvcreate $quiet /dev/mapper/old
    lvm vgcreate $quiet inner /dev/mapper/old
    lvm lvcreate $quiet --wipesignatures n --size 8m --name srv inner
    lvm lvcreate $quiet --wipesignatures n --size 8m --name swap inner
    mkfs.vfat /dev/inner/srv && mount -t vfat /dev/inner/srv /srv && echo old > /srv/file
    mkswap /dev/inner/swap && swapon /dev/inner/swap
    lvm pvcreate $quiet $(of GROUP)
    lvm vgcreate $quiet outer $(of GROUP)
    lvm lvcreate $quiet --wipesignatures n --size 12m --name data outer
    $array /dev/md/stripe --name=stripe --level=0 --raid-devices=2 $(of STRIPE1) $(of STRIPE2)
    $array /dev/md/half --name=half --level=0 --raid-devices=2 $(of HALF) $(of OTHER)
    mdadm --stop /dev/md/half
    dd if=/dev/zero of=$(of OTHER) bs=4096 seek=1 count=1
    mdadm --incremental $(of HALF)
    cat /proc/mdstat /proc/swaps
    ls /sys/block/vd*/holders /sys/block/dm-*/dm
    grep srv /proc/mounts && echo "LAYERS ARE UP"
fi
"#;

const TOOLS: [&str; 3] = ["mdadm", "lvm", "cryptsetup"];

pub async fn story(stage: Stage) -> Result<()> {
    let image = layers::image(&stage.dir, &TOOLS, SCRIPT)?;
    let mut disks = Vec::new();
    for serial in ["MIRROR1", "MIRROR2", "GROUP", "STRIPE1", "STRIPE2", "OTHER", "HALF"] {
        let disk = stage.disk(serial, Bus::Virtio, 32)?;
        fs::File::options().write(true).open(&disk.spec.file)?.write_all_at(MARK, 0)?;
        disks.push(disk);
    }
    let mut site = stage.site(NO_METADATA).await?;
    // The same controller, with the other image.
    site.controller.kill().await?;
    let file = site.controller.config().file();
    let text = fs::read_to_string(&file)?;
    let plain = lab::binaries::image_dir()?.join("initramfs");
    let text = text.replace(&format!("{plain:?}"), &format!("{:?}", image.join("initramfs")));
    fs::write(&file, text)?;
    site.controller.restart().await?;

    let node = manageable(&mut site, &disks.iter().collect::<Vec<_>>()).await?;
    site.controller.provision(NODE, "provide").await?;
    let after = Node(site.controller.node_in(NODE, &["available", "clean failed"], LONG).await?);
    let console = fs::read_to_string(node.machine.spec().serial_log())?;
    ensure!(console.contains("LAYERS ARE UP"), "nothing was in use to begin with");
    ensure!(after.state() == "available", "{}: {}", after.state(), after.last_error());
    for disk in &disks {
        let record = after.record(ERASE, disk.serial())?;
        let verified = record.verification.as_ref().is_some_and(|seen| seen.passed);
        ensure!(record.outcome == Outcome::Erased && verified, "{record:?}");
        disk.ensure_erased()?;
    }
    Ok(())
}
