//! All disks, probed. Nothing is written to any of them.

use block::opal::Psid;
use block::{Filter, ListError, Probe, Roots};
use std::collections::BTreeMap;

/// List and probe. A disk that cannot be probed is in the answer, with the reason.
///
/// With `rescue`, a drive that an interrupted erase left with a known password is unlocked first, since it
/// would reject reads. Drives whose serial number is among `psids` get their PSID.
pub(crate) fn survey(
    roots: &Roots,
    filter: &Filter,
    rescue: bool,
    psids: &BTreeMap<String, Psid>,
) -> Result<Vec<Probe>, ListError> {
    let probe = |disk: block::Disk| {
        match if rescue { block::rescue(&disk) } else { Ok(false) } {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!(device = %disk.path.display(), "took off the password of an interrupted erase")
            }
            Err(error) => {
                tracing::warn!(device = %disk.path.display(), error = block::fault::chain(&error), "no security state");
            }
        }
        let psid = disk.serial.as_ref().and_then(|serial| psids.get(serial)).cloned();
        let probe = block::probe(&disk).unwrap_or_else(|error| {
            let unreadable = Some(block::fault::chain(&error));
            Probe { disk, unreadable, ..Probe::default() }
        });
        Probe { psid, ..probe }
    };
    Ok(block::list(roots, filter)?.into_iter().map(probe).collect())
}
