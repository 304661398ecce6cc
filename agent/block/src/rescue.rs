//! Passwords that an interrupted erase left on an ATA drive.

use crate::disk::Disk;
use crate::drive::{Drive, ata_security};
use crate::fault::Fault;
use crate::probe::Probe;
use std::fs::File;

/// Remove a password that an interrupted erase left on an ATA drive, if it is one that erase tools use, so that the
/// drive can be probed. No content is touched. Returns whether a password was removed.
///
/// # Errors
/// [`Fault`] when the drive does not answer.
pub fn rescue(disk: &Disk) -> Result<bool, Fault> {
    if !disk.ata {
        return Ok(false);
    }
    let file =
        File::open(&disk.path).map_err(|source| Fault::Command { what: "opening the disk", source })?;
    let probe = Probe { disk: disk.clone(), ..Probe::default() };
    ata_security::rescue(&Drive { transport: &file, probe: &probe })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_does_not_answer_is_no_drive_without_a_password() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let disk = |ata: bool| Disk { ata, path: file.path().to_owned(), ..Disk::default() };
        assert!(matches!(rescue(&disk(true)), Err(Fault::Command { what: "ATA IDENTIFY DEVICE", .. })));
        assert!(matches!(rescue(&disk(false)), Ok(false)), "only ATA drives are asked");
        let gone = Disk { path: "/nonexistent".into(), ..disk(true) };
        assert!(matches!(rescue(&gone), Err(Fault::Command { what: "opening the disk", .. })));
    }
}
