//! Linux mounts the configuration drives that the controller makes, and what our agent makes of them on a disk with sectors of
//! 4096 bytes. The kernel of the ramdisk does so: the one that runs the tests may know neither file system.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use configdrive::Drive;
use serde_json::json;
use tokio::process::Command;

use crate::layers;
use crate::stage::Stage;
use lab::controller::QUICK_KERNEL;

pub const ABOUT: &str = "Linux mounts configuration drives: ISO 9660, and FAT from sectors of 4096 bytes";

/// Mounts both disks and shows all files.
const SCRIPT: &str = r#"
for module in virtio_pci virtio_blk isofs vfat nls_cp437 nls_ascii nls_utf8; do
    modprobe $module
done
tries=0
until [ -b /dev/vdb ] || [ $tries = 50 ]; do sleep 0.2; tries=$((tries + 1)); done
echo "SECTORS $(cat /sys/block/vda/queue/logical_block_size) $(cat /sys/block/vdb/queue/logical_block_size)"
mkdir -p /run/vda /run/vdb
mount -t iso9660 -o ro /dev/vda /run/vda
mount -t vfat -o ro /dev/vdb /run/vdb
for file in /run/vd?/*/*/*; do
    echo "FILE $file $(cat $file) END"
done
echo "ALL SHOWN"
/bin/busybox poweroff -f
"#;

/// How long an emulated machine may take on a busy computer.
const LIMIT: Duration = Duration::from_secs(300);
const PARTITION: u64 = 64 << 20;

pub async fn story(stage: Stage) -> Result<()> {
    let parts = json!({
        "meta_data": {"hostname": "web-1"}, "network_data": {"links": []}, "vendor_data": {"v": 1},
        "user_data": "#cloud-config: it is read",
    });
    let parts = parts.as_object().context("an object")?;
    let iso = Drive::of(parts, uuid::Uuid::from_u128(7), Some("rack-1"))?.iso();
    let fat = image_writer::configdrive::for_disk(&iso, 4096, PARTITION).map_err(anyhow::Error::msg)?;
    let disk = |name: &str, content: &[u8]| -> Result<String> {
        let path = stage.dir.join(name);
        fs::write(&path, content)?;
        // What is behind the file system belongs to its partition.
        fs::File::options().write(true).open(&path)?.set_len(PARTITION)?;
        Ok(path.display().to_string())
    };
    let (iso, fat) = (disk("iso", &iso)?, disk("fat", &fat)?);
    let image = layers::image(&stage.dir, &[], &[], SCRIPT)?;
    let console = stage.dir.join("console");
    let mut machine = Command::new("qemu-system-x86_64");
    machine
        .args("-machine q35 -accel tcg -cpu qemu64 -m 256 -nodefaults -no-reboot -display none".split(' '));
    machine.arg("-serial").arg(format!("file:{}", console.display()));
    machine.arg("-kernel").arg(image.join("vmlinuz")).arg("-initrd").arg(image.join("initramfs"));
    machine
        .args(["-append", &format!("console=ttyS0,115200 quiet cryptomgr.notests panic=-1 {QUICK_KERNEL}")]);
    for (name, file, sector) in [("iso", iso, 512), ("fat", fat, 4096)] {
        machine.arg("-drive").arg(format!("if=none,id={name},format=raw,readonly=on,file={file}"));
        let sizes = format!("logical_block_size={sector},physical_block_size={sector}");
        machine.arg("-device").arg(format!("virtio-blk-pci,drive={name},{sizes}"));
    }
    let mut machine = machine.kill_on_drop(true).spawn().context("cannot start qemu-system-x86_64")?;
    let ended = tokio::time::timeout(LIMIT, machine.wait()).await;
    let console = fs::read_to_string(&console)?;
    ensure!(ended.context("the machine does not end").is_ok() && console.contains("ALL SHOWN"), "{console}");

    ensure!(console.contains("SECTORS 512 4096"), "{console}");
    let meta = json!({"hostname": "web-1", "name": "rack-1", "uuid": uuid::Uuid::from_u128(7)});
    for disk in ["vda", "vdb"] {
        for version in ["2012-08-10", "latest"] {
            for (name, content) in [
                ("meta_data.json", meta.to_string()),
                ("network_data.json", r#"{"links":[]}"#.to_owned()),
                ("user_data", "#cloud-config: it is read".to_owned()),
                ("vendor_data2.json", r#"{"v":1}"#.to_owned()),
            ] {
                let line = format!("FILE /run/{disk}/openstack/{version}/{name} {content} END");
                ensure!(console.contains(&line), "{line} is missing: {console}");
            }
        }
    }
    let files = console.matches("FILE /run/").count();
    ensure!(files == 16, "{files} files are on the two drives: {console}");
    Ok(())
}
