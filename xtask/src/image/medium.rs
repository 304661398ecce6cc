//! `image/out/medium/`: the boot loaders of boot media (virtual media), which the controller puts together with kernel and
//! initramfs. They are Debian's, unmodified.

use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;

use super::package;

/// Packages, with the file that is taken.
const PACKAGES: [(&str, &str); 3] = [
    ("isolinux", "usr/lib/ISOLINUX/isolinux.bin"),
    ("syslinux-common", "usr/lib/syslinux/modules/bios/ldlinux.c32"),
    ("systemd-boot-efi", "usr/lib/systemd/boot/efi/linuxx64.efi.stub"),
];

/// The fixed part of the notices.
const NOTICES: &str = "Licence notices of the boot loaders of boot media\n\n\
isolinux.bin and ldlinux.c32 are Debian's builds of the Syslinux project, GNU General Public License version 2 or later, and\n\
linuxx64.efi.stub is Debian's build of systemd's stub, GNU Lesser General Public License 2.1 or later, unmodified. Their sources\n\
are Debian's source packages \"syslinux\" and \"systemd\" of the versions named below: from any Debian mirror, or permanently from\n\
https://snapshot.debian.org/.\n\n";

/// Writes the loaders and their notices into `out`.
pub fn write(work: &Path, out: &Path) -> Result<()> {
    let dir = out.join("medium");
    fs::create_dir_all(&dir)?;
    let mut notices = NOTICES.to_owned();
    let mut copyrights = String::new();
    for (name, file) in PACKAGES {
        let package = package::fetch(work, name)?;
        let path = package.tree.join(file);
        let to = path.file_name().with_context(|| format!("{file} has no name"))?;
        super::write_if_changed(&dir.join(to), &fs::read(&path)?)?;
        notices.push_str(&format!("{} {} (sha256 {})\n", package.name, package.version, package.sha256));
        let copyright = package.tree.join("usr/share/doc").join(name).join("copyright");
        let line = "=".repeat(80);
        let text = fs::read(&copyright).with_context(|| format!("notices of {name}"))?;
        copyrights.push_str(&format!("\n{line}\n{name}\n\n{}", String::from_utf8_lossy(&text)));
    }
    super::write_if_changed(&out.join("NOTICES-medium"), format!("{notices}{copyrights}").as_bytes())
}
