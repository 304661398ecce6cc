//! Boot loaders that the controller passes on to firmware, as Debian built them.
//!
//! `image/out/medium/`: those of boot media (virtual media), which the controller puts together with kernel and initramfs.
//! `image/out/ipxe/`, where it is asked for: iPXE of Debian 13, which has IPv6. That of Debian 12 has none.

use super::package::{Lists, Package};
use anyhow::{Context, Result};
use fs_err as fs;
use std::path::Path;

/// Loaders of one kind.
struct Loaders {
    /// Where they go below `image/out`, and what the file of their notices is named after.
    name: &'static str,
    /// The fixed part of the notices.
    notices: &'static str,
    /// Packages of this system's release, with the files that are taken.
    packages: Packages,
    /// Packages of [`NEWER_RELEASE`].
    newer: Packages,
}

type Packages = &'static [(&'static str, &'static [&'static str])];

const MEDIUM: Loaders = Loaders {
    name: "medium",
    notices: "Licence notices of the boot loaders of boot media\n\n\
isolinux.bin and ldlinux.c32 are Debian's builds of the Syslinux project, GNU General Public License version 2 or later, and\n\
linuxx64.efi.stub is Debian's build of systemd's stub, GNU Lesser General Public License 2.1 or later. shimx64.efi.signed is\n\
Debian's build of shim, with Microsoft's signature, 2-clause BSD licence, and systemd-bootx64.efi.signed is Debian's build of\n\
systemd-boot, with Debian's signature, GNU Lesser General Public License 2.1 or later. All are unmodified. Their sources are Debian's\n\
source packages \"syslinux\", \"systemd\", \"shim\", \"shim-signed\" and \"systemd-boot-efi-amd64-signed\" of the versions named below:\n\
from any Debian mirror, or permanently from https://snapshot.debian.org/.\n\n",
    packages: &[
        ("isolinux", &["usr/lib/ISOLINUX/isolinux.bin"]),
        ("syslinux-common", &["usr/lib/syslinux/modules/bios/ldlinux.c32"]),
        ("systemd-boot-efi", &["usr/lib/systemd/boot/efi/linuxx64.efi.stub"]),
        ("shim-signed", &["usr/lib/shim/shimx64.efi.signed"]),
    ],
    newer: &[("systemd-boot-efi-amd64-signed", &["usr/lib/systemd/boot/efi/systemd-bootx64.efi.signed"])],
};

const IPXE: Loaders = Loaders {
    name: "ipxe",
    notices: "Licence notices of iPXE\n\n\
undionly.kpxe, snponly.efi and ipxe.efi are Debian's builds of iPXE, GNU General Public License version 2 or later, unmodified.\n\
Their source is Debian's source package \"ipxe\" of the version named below: from any Debian mirror, or permanently from\n\
https://snapshot.debian.org/.\n\n",
    packages: &[],
    newer: &[("ipxe", &["usr/lib/ipxe/undionly.kpxe", "usr/lib/ipxe/snponly.efi", "usr/lib/ipxe/ipxe.efi"])],
};
/// The first release of Debian whose iPXE has IPv6, and that signs systemd-boot.
const NEWER_RELEASE: &str = "trixie";

/// Writes the loaders of boot media and their notices into `out`.
pub fn write_medium(work: &Path, out: &Path) -> Result<()> {
    MEDIUM.write(work, out)
}

/// Writes iPXE with IPv6 and its notices into `out`.
pub fn write_ipxe(work: &Path, out: &Path) -> Result<()> {
    IPXE.write(work, out)
}

impl Loaders {
    fn write(&self, work: &Path, out: &Path) -> Result<()> {
        let dir = out.join(self.name);
        fs::create_dir_all(&dir)?;
        let mut notices = self.notices.to_owned();
        let mut copyrights = String::new();
        let (own, newer) = (Lists::own(), Lists::of_release(work, NEWER_RELEASE)?);
        let own = self.packages.iter().map(|package| (&own, package));
        for (lists, (name, files)) in own.chain(self.newer.iter().map(|package| (&newer, package))) {
            let package = lists.fetch(work, name)?;
            for file in *files {
                let to = Path::new(file).file_name().with_context(|| format!("{file} has no name"))?;
                super::write_if_changed(&dir.join(to), &fs::read(package.file(file)?)?)?;
            }
            let Package { name, version, sha256, .. } = &package;
            notices.push_str(&format!("{name} {version} (sha256 {sha256})\n"));
            let (line, text) = ("=".repeat(80), package.copyright()?);
            copyrights.push_str(&format!("\n{line}\n{name}\n\n{}", String::from_utf8_lossy(&text)));
        }
        let file = out.join(format!("NOTICES-{}", self.name));
        super::write_if_changed(&file, format!("{notices}{copyrights}").as_bytes())
    }
}
