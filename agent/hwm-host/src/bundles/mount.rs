//! A judged file as a directory: loop device, squashfs, read-only.

use block::attach::attach;
use bundle::Verified;
use nix::mount::{MntFlags, MsFlags, mount as mount_filesystem, umount2};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const ROOT: &str = "root";
const MANIFEST: &str = "manifest.json";
const DIGEST: &str = "digest";

/// Remove what an earlier process has left in `directory`, so that it is not mistaken for bundles of this boot.
pub fn clear(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let place = entry.path();
        let root = place.join(ROOT);
        // The manifest first: from then on there is no manager here.
        let mut gone = vec![fs::remove_file(place.join(MANIFEST)), fs::remove_file(place.join(DIGEST))];
        // Not mounted is as good as unmounted. Nothing below it is removed, whatever it is.
        let _ = umount2(&root, MntFlags::MNT_DETACH);
        gone.extend([fs::remove_dir(&root), fs::remove_dir(&place)]);
        let failed = gone.into_iter().filter_map(Result::err);
        for error in failed.filter(|error| error.kind() != io::ErrorKind::NotFound) {
            tracing::warn!(place = %place.display(), %error, "an earlier bundle is still there");
        }
    }
}

/// Mount the root of a bundle below `directory`; where the manager is then.
pub fn mount(directory: &Path, file: &File, verified: &Verified) -> Result<PathBuf, String> {
    let manifest = &verified.manifest;
    // The name of a manifest that was checked is no path.
    let place = directory.join(&manifest.name);
    let root = place.join(ROOT);
    let wrong = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(&root).map_err(|error| wrong(&root, error))?;
    let device = attach(file, manifest.root_size).map_err(|error| format!("no loop device: {error}"))?;
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount_filesystem(Some(device.path()), &root, Some("squashfs"), flags, None::<&str>)
        .map_err(|error| format!("its root file system cannot be mounted: {error}"))?;
    let recorded = fs::write(place.join(DIGEST), &verified.digest)
        .and_then(|()| fs::write(place.join("manifest.new"), &verified.manifest_bytes))
        .and_then(|()| fs::rename(place.join("manifest.new"), place.join(MANIFEST)));
    recorded.map_err(|error| wrong(&place, error))?;
    Ok(place)
}
