//! Sectors that an ATA drive hides, given back before its erase; the disk is another one afterwards and has to be listed,
//! probed and judged again.

use crate::disk::Disk;
use crate::drive::ata_hidden;
use crate::fault::Fault;
use crate::list::Roots;
use crate::probe::Probe;
use std::fs::{self, File};
use std::io;
use std::time::{Duration, Instant};

/// How long the kernel may take to see the disk's new size: a reset and the spinning up of a disk are in it.
const RESIZE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// How many sectors its drive hides.
pub fn hidden_sectors(probe: &Probe) -> u64 {
    probe.ata.map_or(0, |ata| ata.hidden.sectors())
}

/// Have the drive give back the sectors that it hides, and the kernel see them. Nothing is written.
///
/// # Errors
/// [`Fault`] when the drive refuses, or the kernel does not see the sectors within a minute.
pub fn reveal(roots: &Roots, disk: &Disk) -> Result<(), Fault> {
    let command = |what: &'static str| move |source: io::Error| Fault::Command { what, source };
    let drive = File::open(&disk.path).map_err(command("opening the disk"))?;
    let sectors = ata_hidden::reveal(&drive)?;
    // The kernel may hold the device while it is put in its place again.
    drop(drive);
    rescan(roots, disk).map_err(command("having the kernel look at the disk again"))?;
    let wanted = sectors.saturating_mul(u64::from(disk.logical_block));
    let deadline = Instant::now() + RESIZE;
    let size = roots.sys.join("block").join(&disk.name).join("size");
    loop {
        let seen = fs::read_to_string(&size).ok().and_then(|text| text.trim().parse::<u64>().ok());
        if seen.is_some_and(|seen| seen.saturating_mul(512) >= wanted) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let words = format!(
                "the kernel sees {seen:?} sectors of 512 bytes and not {wanted} bytes; reboot the node"
            );
            return Err(Fault::Mismatch(words));
        }
        std::thread::sleep(POLL);
    }
}

/// libata asks a drive again when its host is scanned; the disk's own capacity is read by the second.
fn rescan(roots: &Roots, disk: &Disk) -> io::Result<()> {
    let host = disk.hctl.as_deref().and_then(|hctl| hctl.split(':').next()).ok_or(io::ErrorKind::NotFound)?;
    fs::write(roots.sys.join("class/scsi_host").join(format!("host{host}")).join("scan"), "- - -")?;
    fs::write(roots.sys.join("block").join(&disk.name).join("device/rescan"), "1")
}
