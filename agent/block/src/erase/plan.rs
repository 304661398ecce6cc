//! Which methods a disk truly supports, best first. Pure.

use crate::probe::Probe;

/// A way to erase a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// NVMe Format with user data erase.
    NvmeFormat,
    /// The device's own write of zeroes (NVMe Write Zeroes, SCSI WRITE SAME, virtio).
    ZeroOut,
    /// Discard, on devices that say that discarded sectors read as zeroes.
    Discard,
    /// Zeroes written over everything.
    Overwrite,
}

/// What a method promises of the content afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Every byte is zero.
    Zeroes,
    /// No sector is as it was.
    Changed,
}

impl Method {
    /// The word for records and progress.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::NvmeFormat => "nvme-format-user-data",
            Method::ZeroOut => "zero-out",
            Method::Discard => "discard",
            Method::Overwrite => "overwrite-zeroes",
        }
    }

    /// What it promises. Of a user data erase the content is indeterminate (NVM Express Base Specification
    /// 2.0, figure 189: "may be zero filled, one filled, etc.").
    pub fn promise(self) -> Promise {
        match self {
            Method::NvmeFormat => Promise::Changed,
            Method::ZeroOut | Method::Discard | Method::Overwrite => Promise::Zeroes,
        }
    }
}

impl Promise {
    /// The word for records.
    pub fn as_str(self) -> &'static str {
        match self {
            Promise::Zeroes => "zeroes",
            Promise::Changed => "changed",
        }
    }
}

/// The methods for a disk, best first. Overwriting is always the last: every disk can be written.
///
/// Discard is taken only where the device itself says that discarded sectors read as zeroes, and even then a
/// device may ignore parts of a discard: reading back decides.
pub fn plan(probe: &Probe) -> Vec<Method> {
    let disk = &probe.disk;
    let nvme = probe.nvme.as_ref();
    let discard_zeroes = disk.discard_reads_zero || nvme.is_some_and(|nvme| nvme.deallocated_reads_zero);
    [
        (nvme.is_some_and(|nvme| nvme.may_format()), Method::NvmeFormat),
        (disk.write_zeroes_max > 0, Method::ZeroOut),
        (disk.discard_max > 0 && discard_zeroes, Method::Discard),
        (true, Method::Overwrite),
    ]
    .into_iter()
    .filter_map(|(supported, method)| supported.then_some(method))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::nvme::Namespace;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_supported_methods_in_order_and_overwrite_last(
            write_zeroes_max in prop::sample::select(vec![0u64, 1 << 20]),
            discard_max in prop::sample::select(vec![0u64, 1 << 20]),
            discard_reads_zero: bool, is_nvme: bool, deallocated_reads_zero: bool,
            format_supported: bool, format_is_global: bool, erase_is_global: bool, alone: bool,
        ) {
            let disk = Disk { write_zeroes_max, discard_max, discard_reads_zero, ..Disk::default() };
            let nvme = is_nvme.then_some(Namespace {
                deallocated_reads_zero, format_supported, format_is_global, erase_is_global, alone,
                ..Namespace::default()
            });
            let methods = plan(&Probe { disk, nvme, ..Probe::default() });
            prop_assert_eq!(methods.last(), Some(&Method::Overwrite));
            let rank = |method: &Method| *method as usize;
            prop_assert!(methods.windows(2).all(|pair| rank(&pair[0]) < rank(&pair[1])));
            let has = |method| methods.contains(&method);
            prop_assert_eq!(has(Method::ZeroOut), write_zeroes_max > 0);
            prop_assert!(!has(Method::Discard) || discard_max > 0
                && (discard_reads_zero || is_nvme && deallocated_reads_zero));
            prop_assert!(!has(Method::NvmeFormat) || is_nvme && format_supported
                && (alone || !format_is_global && !erase_is_global));
        }
    }
}
