//! NVMe: what a namespace can do, and the commands. NVM Express Base Specification 2.0 (referred to by section),
//! NVM Command Set Specification 1.0. Bytes only; the ioctl is in `sys`.

pub mod log;
pub mod sanitize;

use crate::sanitize::Support;

/// Length in bytes of every Identify data structure.
pub const IDENTIFY_LENGTH: usize = 4096;

/// Which queue a command goes to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Queue {
    /// The admin queue.
    #[default]
    Admin,
    /// An I/O queue.
    Io,
}

/// A command as far as this crate needs one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NvmeCommand {
    /// Its queue; the same opcode means other things on the other one.
    pub queue: Queue,
    /// Opcode.
    pub opcode: u8,
    /// Namespace id.
    pub nsid: u32,
    /// Command dword 10.
    pub cdw10: u32,
    /// Command dword 11.
    pub cdw11: u32,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Completion {
    /// Status field without the phase tag: 0 for success, else see [`status_text`].
    pub status: u16,
}

impl NvmeCommand {
    /// Identify (5.17) with the given controller or namespace structure (CNS).
    pub fn identify(cns: u8, nsid: u32) -> Self {
        NvmeCommand { opcode: 0x06, nsid, cdw10: u32::from(cns), ..Self::default() }
    }

    /// Get Log Page (5.16, figure 195): `length` bytes, a multiple of four, from the beginning of a page.
    pub fn log_page(page: u8, length: usize) -> Self {
        let dwords = u32::try_from(length / 4).unwrap_or(0).saturating_sub(1);
        let cdw10 = u32::from(page) | (dwords & 0xffff) << 16;
        NvmeCommand { opcode: 0x02, nsid: u32::MAX, cdw10, cdw11: dwords >> 16, ..Self::default() }
    }

    /// Reservation Report (NVM Command Set 1.0; Base 2.0, 7.5): `length` bytes, a multiple of four.
    pub fn reservation_report(nsid: u32, length: usize) -> Self {
        let dwords = u32::try_from(length / 4).unwrap_or(0).saturating_sub(1);
        NvmeCommand { queue: Queue::Io, opcode: 0x0e, nsid, cdw10: dwords, cdw11: 0 }
    }

    /// Format NVM (5.14, figure 189), keeping the LBA format, the metadata settings and the protection
    /// information that the namespace has.
    pub fn format(namespace: &Namespace, erase: SecureErase) -> Self {
        let layout = namespace.layout;
        let cdw10 = u32::from(layout.format & 0xf)
            | u32::from(layout.extended_metadata) << 4
            | u32::from(layout.protection & 7) << 5
            | u32::from(layout.protection_first) << 8
            | (erase as u32) << 9
            | u32::from(layout.format >> 4) << 12;
        NvmeCommand { opcode: 0x80, nsid: namespace.nsid, cdw10, ..Self::default() }
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

/// Secure Erase Settings of Format NVM (figure 189, SES).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecureErase {
    /// 001b: user data erase.
    UserData = 1,
    /// 010b: cryptographic erase.
    Crypto = 2,
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
    /// Format takes a cryptographic erase (FNA bit 2).
    pub format_crypto: bool,
    /// Sanitize (SANICAP bits 2:0), with the state from its log page.
    pub sanitize: Support,
    /// Estimates of the drive for its sanitize operations.
    pub sanitize_times: log::Times,
    /// Write Zeroes is supported (ONCS bit 3).
    pub write_zeroes: bool,
    /// Dataset Management is supported (ONCS bit 2).
    pub deallocate: bool,
    /// Reservations are supported (ONCS bit 5).
    pub reservations: bool,
    /// Claims of other hosts to it, where the controller reports them.
    pub reservation: Option<log::Reservation>,
    /// The namespace is write protected (NSATTR bit 0).
    pub write_protected: bool,
    /// Namespaces that are allocated in the subsystem, and attached to no controller that we see: their data
    /// is reached by no block device.
    pub hidden: u32,
    /// It is the only visible namespace: no other is attached to this controller or, where the controller reports
    /// that, allocated in the subsystem.
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
        let oncs = u16::from_le_bytes([controller[520], controller[521]]);
        let sanicap = controller[328];
        let only = |list: &[u8]| ids(list).all(|id| id == nsid);
        // FFFFFFFFh is no namespace; it stands for a list that could not be had.
        let hidden = |list: &[u8]| {
            ids(list).filter(|&id| id != u32::MAX && !ids(active).any(|seen| seen == id)).count()
        };
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
            format_crypto: fna & 4 != 0,
            sanitize: Support {
                crypto: sanicap & 1 != 0,
                block: sanicap & 2 != 0,
                overwrite: sanicap & 4 != 0,
                state: None,
            },
            sanitize_times: log::Times::default(),
            write_zeroes: oncs & (1 << 3) != 0,
            deallocate: oncs & (1 << 2) != 0,
            reservations: oncs & (1 << 5) != 0,
            reservation: None,
            write_protected: namespace[99] & 1 != 0,
            hidden: allocated.map_or(0, |list| u32::try_from(hidden(list)).unwrap_or(u32::MAX)),
            alone: only(active) && allocated.is_none_or(only),
        })
    }

    /// Whether Format with a secure erase is supported and cannot reach any other namespace.
    pub fn may_format(&self) -> bool {
        self.format_supported && (self.alone || !(self.format_is_global || self.erase_is_global))
    }

    /// Whether Sanitize cannot reach any other namespace: it is for the whole subsystem (5.24).
    pub fn may_sanitize(&self) -> bool {
        self.alone && self.hidden == 0
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
        (0, 0x1c) => "Sanitize Failed",
        (0, 0x1d) => "Sanitize In Progress",
        (0, 0x20) => "Namespace is Write Protected",
        (0, 0x84) => "Format In Progress",
        (1, 0x0a) => "Invalid Format",
        (1, 0x0b) => "Firmware Activation Requires Conventional Reset",
        (1, 0x23) => "Sanitize Prohibited While Persistent Memory Region is Enabled",
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
        assert_eq!(NvmeCommand::format(&parsed, SecureErase::UserData).entry(), expected);
    }

    #[test]
    fn format_keeps_metadata_protection_and_large_format_index() {
        // Format index 0x25: low nibble 5, high bits 10b in FLBAS 6:5; extended metadata; type 2, first bytes.
        let (controller, namespace) = structures(0x2, 0, 0b0101_0101, 0b1010, 0);
        let parsed = Namespace::parse(7, &controller, &namespace, &list(&[7]), None).unwrap();
        assert_eq!(parsed.layout.format, 0x25);
        let cdw10 = NvmeCommand::format(&parsed, SecureErase::UserData).cdw10;
        assert_eq!(cdw10, 0x5 | 1 << 4 | 2 << 5 | 1 << 8 | 1 << 9 | 2 << 12);
    }

    #[test]
    fn questions_have_their_frozen_bytes() {
        let entry = |opcode: u8, nsid: [u8; 4], cdw10: [u8; 4], cdw11: [u8; 4]| {
            let mut entry = [0u8; 64];
            entry[0] = opcode;
            entry[4..8].copy_from_slice(&nsid);
            entry[40..44].copy_from_slice(&cdw10);
            entry[44..48].copy_from_slice(&cdw11);
            entry
        };
        assert_eq!(NvmeCommand::identify(2, 0).entry(), entry(0x06, [0; 4], [2, 0, 0, 0], [0; 4]));
        // 512 bytes are 128 dwords; the field counts from zero.
        assert_eq!(
            NvmeCommand::log_page(0x81, 512).entry(),
            entry(0x02, [0xff; 4], [0x81, 0, 127, 0], [0; 4])
        );
        let report = NvmeCommand::reservation_report(3, 64);
        assert_eq!(report.entry(), entry(0x0e, [3, 0, 0, 0], [15, 0, 0, 0], [0; 4]));
        assert_eq!(report.queue, Queue::Io);
    }

    #[test]
    fn what_identify_says_of_erasing() {
        let (mut controller, mut namespace) = structures(0xa, 0b100, 0, 0, 0);
        controller[328] = 0b101; // SANICAP: crypto erase, overwrite
        controller[520] = 0b10_1100; // ONCS: dataset management, write zeroes, reservations
        namespace[99] = 1; // NSATTR: write protected
        let parse = |allocated: &[u32]| {
            Namespace::parse(1, &controller, &namespace, &list(&[1]), Some(&list(allocated))).unwrap()
        };
        let parsed = parse(&[1]);
        assert!(parsed.format_crypto && parsed.sanitize.crypto && parsed.sanitize.overwrite);
        assert!(!parsed.sanitize.block && parsed.write_zeroes && parsed.deallocate && parsed.reservations);
        assert!(parsed.write_protected && parsed.may_sanitize());
        assert_eq!(parsed.sanitize.state, None, "the state is in a log page");
        let (two, unknown) = (parse(&[1, 2]), parse(&[1, u32::MAX]));
        assert_eq!((two.hidden, two.may_sanitize()), (1, false));
        assert_eq!((unknown.hidden, unknown.may_sanitize()), (0, false));
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
            let cdw10 = NvmeCommand::format(&parsed, SecureErase::UserData).cdw10;
            prop_assert_eq!((cdw10 >> 9) & 7, 1);
            prop_assert_eq!(cdw10 >> 14, 0);
            prop_assert_eq!(cdw10 & 0xf, u32::from(flbas & 0xf));
        }
    }
}
