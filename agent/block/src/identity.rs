//! Identity of SCSI disks from their vital product data, which sysfs shows as binary files.
//!
//! SPC-6 section 7.7 (pages 80h, 83h), SBC-4 section 6.6 (page B2h).

/// World wide name in udev's three forms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wwn {
    pub(crate) wwn: String,
    pub(crate) with_extension: String,
    pub(crate) vendor_extension: Option<String>,
}

/// The unit serial number of page 80h.
pub(crate) fn serial(page: &[u8]) -> Option<String> {
    text(payload(page, 0x80)?)
}

/// The world wide name: the NAA designator of the logical unit in page 83h.
pub(crate) fn wwn(page: &[u8]) -> Option<Wwn> {
    let mut rest = payload(page, 0x83)?;
    let mut eui = None;
    while let [_, kind, _, length, tail @ ..] = rest {
        let designator = tail.get(..usize::from(*length))?;
        // Association (bits 5:4) 0: the logical unit and not the port.
        if (kind >> 4) & 3 == 0 {
            match kind & 0x0f {
                3 if designator.len() >= 8 => return Some(Wwn::from_hex(&hex(designator))),
                2 if eui.is_none() => eui = Some(hex(designator)),
                _ => {}
            }
        }
        rest = &tail[usize::from(*length)..];
    }
    eui.map(|eui| Wwn::from_hex(&eui))
}

impl Wwn {
    /// From hexadecimal digits without a prefix.
    pub(crate) fn from_hex(digits: &str) -> Self {
        let (head, tail) = digits.split_at_checked(16).unwrap_or((digits, ""));
        Wwn {
            wwn: format!("0x{head}"),
            with_extension: format!("0x{digits}"),
            vendor_extension: (!tail.is_empty()).then(|| format!("0x{tail}")),
        }
    }

    /// From sysfs' `wwid`: `naa.…` is a SCSI or ATA name, the others (`eui.…`, `nvme.…`, `uuid.…`) stay.
    pub(crate) fn from_wwid(wwid: &str) -> Option<Self> {
        match wwid.split_once('.') {
            Some(("naa", digits)) => Some(Self::from_hex(digits)),
            Some(("eui" | "nvme" | "uuid", _)) => {
                Some(Wwn { wwn: wwid.into(), with_extension: wwid.into(), vendor_extension: None })
            }
            _ => None,
        }
    }
}

/// Page B2h byte 5 bits 4:2 (LBPRZ): xx1b says that unmapped blocks read as zeroes.
pub(crate) fn unmap_reads_zero(page: &[u8]) -> bool {
    payload(page, 0xb2).and_then(|body| body.get(1)).is_some_and(|flags| flags & (1 << 2) != 0)
}

pub(crate) fn payload(page: &[u8], code: u8) -> Option<&[u8]> {
    match page {
        [_, found, high, low, body @ ..] if *found == code => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            Some(&body[..length.min(body.len())])
        }
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Printable text without padding; `None` when nothing is left.
pub(crate) fn text(bytes: &[u8]) -> Option<String> {
    let clean: String = String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect();
    let trimmed = clean.trim();
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_of_a_scsi_disk() {
        // QEMU scsi-hd: serial=SC0001, wwn=0x5000c50000000001, as its sysfs files read.
        assert_eq!(serial(b"\x00\x80\x00\x06SC0001").as_deref(), Some("SC0001"));
        let mut page = b"\x00\x83\x00\x16\x02\x00\x00\x06SC0001\x01\x03\x00\x08".to_vec();
        page.extend(0x5000_c500_0000_0001_u64.to_be_bytes());
        assert_eq!(wwn(&page).map(|wwn| wwn.wwn).as_deref(), Some("0x5000c50000000001"));
    }

    #[test]
    fn wwn_of_a_port_is_not_taken_and_naa_6_is_split() {
        let mut page = b"\x00\x83\x00\x20\x61\x93\x00\x08".to_vec();
        page.extend([0x50; 8]);
        page.extend(b"\x01\x03\x00\x10");
        page.extend((0x6000_c290_0000_0000_u64).to_be_bytes());
        page.extend((0x0123_4567_89ab_cdef_u64).to_be_bytes());
        let found = wwn(&page).unwrap();
        assert_eq!(found.wwn, "0x6000c29000000000");
        assert_eq!(found.with_extension, "0x6000c290000000000123456789abcdef");
        assert_eq!(found.vendor_extension.as_deref(), Some("0x0123456789abcdef"));
        assert_eq!(Wwn::from_wwid("naa.5000c500a1b2c3d4").unwrap().wwn, "0x5000c500a1b2c3d4");
        assert_eq!(Wwn::from_wwid("eui.0025385b71b00b5e").unwrap().wwn, "eui.0025385b71b00b5e");
        assert_eq!(Wwn::from_wwid("t10.ATA     QEMU HARDDISK"), None);
    }

    /// SBC-4 6.6.7: LBPRZ is in bits 4:2 of byte 5; its lowest bit says it.
    #[test]
    fn a_disk_says_whether_unmapped_blocks_read_as_zeroes() {
        for (flags, expected) in [(0b100, true), (0b1_0100, true), (0, false), (0b1111_1011, false)] {
            assert_eq!(unmap_reads_zero(&[0, 0xb2, 0, 4, 0, flags, 0, 0]), expected, "{flags:#b}");
        }
        assert!(!unmap_reads_zero(&[0, 0xb0, 0, 4, 0, 0b100, 0, 0]), "another page");
        assert!(!unmap_reads_zero(&[0, 0xb2, 0, 1, 0, 0b100, 0, 0]), "a page that ends before");
    }

    proptest! {
        #[test]
        fn no_page_makes_the_parsers_panic(page in prop::collection::vec(any::<u8>(), 0..600), code in 0usize..3) {
            let mut page = page;
            if page.len() > 1 { page[1] = [0x80, 0x83, 0xb2][code]; }
            let _ = (serial(&page), wwn(&page), unmap_reads_zero(&page));
        }
    }
}
