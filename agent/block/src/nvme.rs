//! NVMe: what a namespace can do, and the Format command. NVM Express Base Specification 2.0 (referred to by
//! section), NVM Command Set Specification 1.0. Bytes only; the ioctl is in `sys`.

/// Length in bytes of every Identify data structure.
pub const IDENTIFY_LENGTH: usize = 4096;

/// An admin command as far as this crate needs one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdminCommand {
    /// Opcode.
    pub opcode: u8,
    /// Namespace id.
    pub nsid: u32,
    /// Command dword 10.
    pub cdw10: u32,
    /// Command dword 11.
    pub cdw11: u32,
}

impl AdminCommand {
    /// Identify (5.17) with the given controller or namespace structure (CNS).
    pub fn identify(cns: u8, nsid: u32) -> Self {
        AdminCommand { opcode: 0x06, nsid, cdw10: u32::from(cns), cdw11: 0 }
    }

    /// Format NVM (5.14, figure 189) with user data erase (SES = 001b), keeping the LBA format, the metadata
    /// settings and the protection information that the namespace has.
    pub fn format_user_data(namespace: &Namespace) -> Self {
        let layout = namespace.layout;
        let ses_user_data = 1u32 << 9;
        let cdw10 = u32::from(layout.format & 0xf)
            | u32::from(layout.extended_metadata) << 4
            | u32::from(layout.protection & 7) << 5
            | u32::from(layout.protection_first) << 8
            | ses_user_data
            | u32::from(layout.format >> 4) << 12;
        AdminCommand { opcode: 0x80, nsid: namespace.nsid, cdw10, cdw11: 0 }
    }

    /// The submission queue entry (figure 87), identifiers and pointers zero: for comparison with the
    /// specification, the kernel builds the one that is sent.
    pub fn entry(&self) -> [u8; 64] {
        let mut entry = [0; 64];
        entry[0] = self.opcode;
        entry[4..8].copy_from_slice(&self.nsid.to_le_bytes());
        entry[40..44].copy_from_slice(&self.cdw10.to_le_bytes());
        entry[44..48].copy_from_slice(&self.cdw11.to_le_bytes());
        entry
    }
}

/// How a namespace is formatted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// Index of the LBA format, 0..=63 (FLBAS).
    pub format: u8,
    /// Metadata is sent as part of an extended LBA (FLBAS bit 4).
    pub extended_metadata: bool,
    /// Protection information type, 0..=3 (DPS bits 2:0).
    pub protection: u8,
    /// Protection information is in the first bytes of the metadata (DPS bit 3).
    pub protection_first: bool,
}

/// What Identify said of a namespace and its controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its id.
    pub nsid: u32,
    /// Its format.
    pub layout: Layout,
    /// Deallocated blocks read as zeroes (DLFEAT bits 2:0 = 001b).
    pub deallocated_reads_zero: bool,
    /// Format NVM is supported (OACS bit 1).
    pub format_supported: bool,
    /// Format applies to all namespaces (FNA bit 0).
    pub format_is_global: bool,
    /// Secure erase by Format applies to all namespaces (FNA bit 1).
    pub erase_is_global: bool,
    /// It is the only namespace there is to be seen: no other is attached to this controller, nor, where the
    /// controller can tell, allocated in the subsystem.
    pub alone: bool,
}

impl Namespace {
    /// From the Identify structures: controller (CNS 01h), namespace (CNS 00h), active list (CNS 02h), and
    /// allocated list (CNS 10h) where the controller manages namespaces. `None` when one is too short.
    pub fn parse(
        nsid: u32,
        controller: &[u8],
        namespace: &[u8],
        active: &[u8],
        allocated: Option<&[u8]>,
    ) -> Option<Self> {
        let (controller, namespace) = (controller.get(..IDENTIFY_LENGTH)?, namespace.get(..IDENTIFY_LENGTH)?);
        let oacs = u16::from_le_bytes([controller[256], controller[257]]);
        let fna = controller[524];
        let (flbas, dps, dlfeat) = (namespace[26], namespace[29], namespace[33]);
        let only = |list: &[u8]| ids(list).all(|id| id == nsid);
        Some(Namespace {
            nsid,
            layout: Layout {
                format: (flbas & 0xf) | ((flbas >> 5) & 3) << 4,
                extended_metadata: flbas & (1 << 4) != 0,
                protection: dps & 7,
                protection_first: dps & (1 << 3) != 0,
            },
            deallocated_reads_zero: dlfeat & 7 == 1,
            format_supported: oacs & (1 << 1) != 0,
            format_is_global: fna & 1 != 0,
            erase_is_global: fna & 2 != 0,
            alone: only(active) && allocated.is_none_or(only),
        })
    }

    /// Whether Format with user data erase is supported and cannot reach any other namespace.
    pub fn may_format(&self) -> bool {
        self.format_supported && (self.alone || !(self.format_is_global || self.erase_is_global))
    }
}

/// Whether the controller manages namespaces (OACS bit 3), so that it can list allocated ones.
pub fn manages_namespaces(controller: &[u8]) -> bool {
    controller.get(256).is_some_and(|oacs| oacs & (1 << 3) != 0)
}

/// The ids of a namespace list (figure 270): ascending, ended by 0.
fn ids(list: &[u8]) -> impl Iterator<Item = u32> + '_ {
    list.chunks_exact(4).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]])).take_while(|&id| id != 0)
}

/// The words of an NVMe status (4.2.3), status code type and code, without the flags.
pub fn status_text(status: u16) -> String {
    let (kind, code) = ((status >> 8) & 7, status & 0xff);
    let words = match (kind, code) {
        (0, 0x01) => "Invalid Command Opcode",
        (0, 0x02) => "Invalid Field in Command",
        (0, 0x06) => "Internal Error",
        (0, 0x0b) => "Invalid Namespace or Format",
        (0, 0x15) => "Operation Denied",
        (0, 0x1d) => "Sanitize In Progress",
        (0, 0x20) => "Namespace is Write Protected",
        (0, 0x84) => "Format In Progress",
        (1, 0x0a) => "Invalid Format",
        _ => "see the NVMe Base Specification",
    };
    format!("NVMe status type {kind} code {code:#04x} ({words})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn structures(oacs: u16, fna: u8, flbas: u8, dps: u8, dlfeat: u8) -> (Vec<u8>, Vec<u8>) {
        let (mut controller, mut namespace) = (vec![0; 4096], vec![0; 4096]);
        controller[256..258].copy_from_slice(&oacs.to_le_bytes());
        controller[524] = fna;
        namespace[26] = flbas;
        namespace[29] = dps;
        namespace[33] = dlfeat;
        (controller, namespace)
    }

    fn list(ids: &[u32]) -> Vec<u8> {
        let mut list: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        list.resize(4096, 0);
        list
    }

    #[test]
    fn frozen_bytes_of_format_with_user_data_erase() {
        let (controller, namespace) = structures(0x2, 0, 0x01, 0, 1);
        let parsed = Namespace::parse(1, &controller, &namespace, &list(&[1]), None).unwrap();
        let mut expected = [0u8; 64];
        expected[0] = 0x80; // Format NVM
        expected[4] = 1; // NSID
        expected[40..44].copy_from_slice(&[0x01, 0x02, 0, 0]); // LBAF 1, SES 001b
        assert_eq!(AdminCommand::format_user_data(&parsed).entry(), expected);
    }

    #[test]
    fn format_keeps_metadata_protection_and_large_format_index() {
        // Format index 0x25: low nibble 5, high bits 10b in FLBAS 6:5; extended metadata; type 2, first bytes.
        let (controller, namespace) = structures(0x2, 0, 0b0101_0101, 0b1010, 0);
        let parsed = Namespace::parse(7, &controller, &namespace, &list(&[7]), None).unwrap();
        assert_eq!(parsed.layout.format, 0x25);
        let cdw10 = AdminCommand::format_user_data(&parsed).cdw10;
        assert_eq!(cdw10, 0x5 | 1 << 4 | 2 << 5 | 1 << 8 | 1 << 9 | 2 << 12);
    }

    #[test]
    fn identify_has_its_frozen_bytes() {
        let mut expected = [0u8; 64];
        expected[0] = 0x06;
        expected[40] = 0x02;
        assert_eq!(AdminCommand::identify(2, 0).entry(), expected);
    }

    #[test]
    fn namespace_ids_above_nine_are_seen() {
        let (controller, namespace) = structures(0xa, 1, 0, 0, 0);
        let parse = |active: &[u32], allocated: Option<Vec<u8>>| {
            Namespace::parse(1, &controller, &namespace, &list(active), allocated.as_deref()).unwrap()
        };
        assert!(parse(&[1], None).may_format());
        assert!(!parse(&[1, 10], None).may_format());
        assert!(!parse(&[1], Some(list(&[1, 31]))).may_format());
        assert!(manages_namespaces(&controller));
    }

    proptest! {
        #[test]
        fn a_global_format_never_touches_another_namespace(
            oacs: u16, fna: u8, flbas: u8, dps: u8, dlfeat: u8, nsid in 1u32..40, others in prop::collection::btree_set(1u32..40, 0..5),
        ) {
            let (controller, namespace) = structures(oacs, fna, flbas, dps, dlfeat);
            let mut active = others.clone();
            active.insert(nsid);
            let active: Vec<u32> = active.into_iter().collect();
            let parsed = Namespace::parse(nsid, &controller, &namespace, &list(&active), None).unwrap();
            if parsed.may_format() {
                prop_assert!(oacs & 2 != 0);
                prop_assert!(fna & 3 == 0 || active == [nsid]);
            }
            // The reserved bits of dword 10 stay clear and SES is 001b.
            let cdw10 = AdminCommand::format_user_data(&parsed).cdw10;
            prop_assert_eq!((cdw10 >> 9) & 7, 1);
            prop_assert_eq!(cdw10 >> 14, 0);
            prop_assert_eq!(cdw10 & 0xf, u32::from(flbas & 0xf));
        }
    }
}
