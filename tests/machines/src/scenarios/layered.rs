//! Disks in use when the agent starts: a mounted file system and swap in LVM on LUKS on md, a volume group, a striped
//! array, an array that lacks a member. Real tools make them in the node, before the agent. All is taken down, every
//! disk is erased, and what was complete is there again, empty.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use tokio::process::Command;

use crate::layers;
use crate::stage::{Stage, manageable, through, verb};

pub const ABOUT: &str = "LVM on LUKS on md, mounted, swap, an array without a member: taken down and erased";

/// A disk that begins with this is made part of something at boot; an erased one does not.
const MARK: &[u8] = b"LAYERED\n";

/// Makes the layers. `of SERIAL` is the disk of that serial number.
const SCRIPT: &str = r#"
for module in virtio_pci virtio_blk md_mod raid0 raid1 dm_mod dm_crypt ecb xts vfat nls_cp437 nls_ascii; do
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
    mkdir -p /etc/lvm
    echo "devices { use_devicesfile=0 } activation { udev_sync=0 udev_rules=0 }" > /etc/lvm/lvm.conf
    $array /dev/md/mirror --name=mirror --level=1 --bitmap=internal --raid-devices=2 $(of MIRROR1) $(of MIRROR2)
    echo old | cryptsetup luksFormat --batch-mode --type luks1 --pbkdf-force-iterations 1000 /dev/md/mirror -
    echo old | cryptsetup open --key-file - --type luks /dev/md/mirror old
    lvm pvcreate --yes /dev/mapper/old
    lvm vgcreate --yes inner /dev/mapper/old
    lvm lvcreate --yes --wipesignatures n --size 8m --name srv inner
    lvm lvcreate --yes --wipesignatures n --size 8m --name swap inner
    cat /fat > /dev/inner/srv && mount -t vfat /dev/inner/srv /srv && echo old > /srv/file
    mkswap /dev/inner/swap && swapon /dev/inner/swap
    lvm pvcreate --yes $(of GROUP)
    lvm vgcreate --yes outer $(of GROUP)
    lvm lvcreate --yes --wipesignatures n --size 12m --name data outer
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
    let image = layers::image(&stage.dir, &TOOLS, &[("fat", &fat())], SCRIPT)?;
    let mut disks = Vec::new();
    for serial in ["MIRROR1", "MIRROR2", "GROUP", "STRIPE1", "STRIPE2", "OTHER", "HALF"] {
        let disk = stage.disk(serial, Bus::Virtio, 32)?;
        fs::File::options().write(true).open(&disk.spec.file)?.write_all_at(MARK, 0)?;
        disks.push(disk);
    }
    let mut site = stage.site("").await?;
    // The same controller, with the other image.
    site.controller.kill().await?;
    let file = site.controller.config().file();
    let text = fs::read_to_string(&file)?;
    let plain = lab::binaries::image_dir()?.join("initramfs");
    let text = text.replace(&format!("{plain:?}"), &format!("{:?}", image.join("initramfs")));
    fs::write(&file, text)?;
    site.controller.restart().await?;

    let node = manageable(&mut site, &disks.iter().collect::<Vec<_>>()).await?;
    let after = through(&site.controller, verb("provide"), "available").await?;
    let console = fs::read_to_string(node.machine.spec().serial_log())?;
    ensure!(console.contains("LAYERS ARE UP"), "nothing was in use to begin with");
    for disk in &disks {
        let record = after.erased(disk.serial())?;
        // Apart from what the record names, nothing but zeroes; and only of what was complete is anything named.
        let named: BTreeSet<&str> = record.rebuilt.iter().map(|region| region.name.as_str()).collect();
        let expected: &[&str] = match disk.serial() {
            "MIRROR1" | "MIRROR2" => &["old:mirror"],
            "STRIPE1" | "STRIPE2" => &["old:stripe"],
            "GROUP" => &["outer"],
            _ => &[],
        };
        ensure!(named.into_iter().eq(expected.iter().copied()), "{record:?}");
        let copy = disk.spec.file.with_extension("rest");
        fs::copy(&disk.spec.file, &copy)?;
        for region in &record.rebuilt {
            let zeroes = vec![0; usize::try_from(region.bytes)?];
            fs::File::options().write(true).open(&copy)?.write_all_at(&zeroes, region.offset)?;
        }
        disk.as_file(copy).ensure_erased()?;
    }
    let file = |serial: &str| stage.dir.join(format!("{serial}.img"));
    for (serial, level) in
        [("MIRROR1", "raid1"), ("MIRROR2", "raid1"), ("STRIPE1", "raid0"), ("STRIPE2", "raid0")]
    {
        let output = judge(Command::new("mdadm").arg("--examine").arg(file(serial))).await?;
        ensure!(
            output.contains(&format!("Raid Level : {level}")) && output.contains("- correct"),
            "{serial}: {output}"
        );
        ensure!(
            output.contains("State : clean") && output.contains("Array State : AA"),
            "{serial}: {output}"
        );
        ensure!(level == "raid0" || output.contains("Internal Bitmap"), "{serial}: {output}");
    }
    // It takes no file for a member.
    let device =
        judge(Command::new("losetup").args(["--read-only", "--find", "--show"]).arg(file("MIRROR1"))).await?;
    let bitmap = judge(Command::new("mdadm").arg("--examine-bitmap").arg(device.trim())).await;
    judge(Command::new("losetup").arg("--detach").arg(device.trim())).await?;
    let bitmap = bitmap?;
    ensure!(bitmap.contains(", 0 dirty"), "{bitmap}");
    let group = judge(Command::new("pvck").arg("--dump").arg("metadata").arg(file("GROUP"))).await?;
    ensure!(
        group.contains("outer {") && group.contains("data {") && group.contains("extent_count = 3"),
        "{group}"
    );
    Ok(())
}

/// What a reader of disks says of an image.
async fn judge(command: &mut Command) -> Result<String> {
    let out = command.output().await.with_context(|| format!("cannot start {command:?}"))?;
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    ensure!(out.status.success(), "{command:?}: {text}");
    Ok(text)
}

/// The beginning of an empty file system of FAT12, one MiB large: boot sector, one table, the root directory.
fn fat() -> Vec<u8> {
    let mut bytes = vec![0; 10 * 512];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, b"\xeb\x3c\x90anneal  ");
    // Sectors of 512 bytes, one a cluster; one reserved; one table of 8 sectors; 16 entries in the root; 2048 sectors.
    put(11, &[0, 2, 1, 1, 0, 1, 16, 0, 0, 8, 0xf8, 8, 0, 32, 0, 64, 0]);
    put(38, b"\x29\x01\x02\x03\x04OLD        FAT12   ");
    put(510, &[0x55, 0xaa]);
    put(512, &[0xf8, 0xff, 0xff]);
    bytes
}
