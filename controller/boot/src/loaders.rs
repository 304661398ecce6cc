//! The network boot programs: a fixed list of names, so that no path of a client is ever opened.

use std::path::{Path, PathBuf};

/// Where Debian's `ipxe` package puts them.
pub const DEFAULT_DIR: &str = "/usr/lib/ipxe";

/// iPXE for BIOS, on the firmware's own network driver (UNDI).
pub const BIOS: &str = "undionly.kpxe";

/// iPXE for UEFI, on the firmware's own network driver and only on the NIC that was booted from.
pub const UEFI: &str = "snponly.efi";

/// iPXE for UEFI with drivers of its own, for those who name it in their own DHCP server.
pub const UEFI_OWN_DRIVERS: &str = "ipxe.efi";

/// Every name that TFTP and HTTP serve.
pub const NAMES: [&str; 3] = [BIOS, UEFI, UEFI_OWN_DRIVERS];

/// The file for a name as a client sends it (a leading slash is allowed); `None` for any other.
pub(crate) fn file(dir: &Path, name: &str) -> Option<PathBuf> {
    let name = name.trim_start_matches('/');
    NAMES.iter().find(|known| **known == name).map(|known| dir.join(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_the_list() {
        let dir = Path::new("/srv");
        assert_eq!(file(dir, "/undionly.kpxe"), Some(PathBuf::from("/srv/undionly.kpxe")));
        for bad in [
            "",
            "/",
            "../etc/passwd",
            "x/undionly.kpxe",
            "undionly.kpxe/..",
            "UNDIONLY.KPXE",
            "undionly.kpxe\0",
        ] {
            assert_eq!(file(dir, bad), None, "{bad}");
        }
    }
}
