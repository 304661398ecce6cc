//! The methods of `docs/erase.md`: which level each reaches, and what a disk must read back as after it. The agent's own
//! table is in `block`, which is no part of a controller; `tests/methods.rs` compares the two.

/// A method as a record names it.
pub(crate) struct EraseMethod {
    /// Its word.
    pub(crate) name: &'static str,
    /// Levels that it reaches, on one kind of disk or another.
    pub(crate) levels: &'static [&'static str],
    /// What it promises of the content afterwards, one of these: `zeroes`, `pattern`, `random`; or `changed`, which is no
    /// particular content and the only promise that samples can prove.
    pub(crate) promises: &'static [&'static str],
    /// Whether a log of the drive reports its success.
    pub(crate) attested: bool,
}

const CLEAR: &[&str] = &["clear"];
const PURGE: &[&str] = &["purge"];
const CHANGED: &[&str] = &["changed"];
const ZEROES: &[&str] = &["zeroes"];
// The pattern may be zeroes.
const PATTERN: &[&str] = &["pattern", "zeroes"];
const RANDOM: &[&str] = &["random"];

const fn by(
    name: &'static str,
    levels: &'static [&'static str],
    promises: &'static [&'static str],
) -> EraseMethod {
    EraseMethod { name, levels, promises, attested: false }
}

const fn attested(method: EraseMethod) -> EraseMethod {
    EraseMethod { attested: true, ..method }
}

/// All of them.
pub(crate) const METHODS: &[EraseMethod] = &[
    attested(by("nvme-sanitize-crypto", PURGE, CHANGED)),
    attested(by("nvme-sanitize-block", PURGE, CHANGED)),
    attested(by("nvme-sanitize-overwrite", PURGE, ZEROES)),
    attested(by("ata-sanitize-crypto", PURGE, CHANGED)),
    attested(by("ata-sanitize-block", PURGE, CHANGED)),
    attested(by("ata-sanitize-overwrite", PURGE, ZEROES)),
    attested(by("scsi-sanitize-crypto", PURGE, CHANGED)),
    attested(by("scsi-sanitize-block", PURGE, CHANGED)),
    attested(by("scsi-sanitize-overwrite", PURGE, ZEROES)),
    attested(by("opal-psid-revert", PURGE, CHANGED)),
    by("nvme-format-crypto", CLEAR, CHANGED),
    by("nvme-format-user-data", CLEAR, CHANGED),
    // Of a spinning disk purge, of flash clear.
    by("ata-secure-erase-enhanced", &["clear", "purge"], CHANGED),
    by("ata-secure-erase", CLEAR, ZEROES),
    by("emmc-sanitize", CLEAR, CHANGED),
    by("secure-discard", CLEAR, CHANGED),
    by("zero-out", CLEAR, ZEROES),
    by("discard", CLEAR, ZEROES),
    by("overwrite-zeroes", CLEAR, ZEROES),
    by("overwrite-pattern", CLEAR, PATTERN),
    by("overwrite-random", CLEAR, RANDOM),
    by("scsi-format-unit", CLEAR, ZEROES),
];

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Level, Method};
    use std::collections::BTreeSet;

    /// `block` compares its methods with the rows of `docs/erase.md`.
    #[test]
    fn the_methods_are_those_of_the_agent_with_their_levels_and_promises() {
        assert_eq!(METHODS.len(), Method::ALL.len());
        for method in Method::ALL {
            let known = METHODS.iter().find(|known| known.name == method.as_str());
            let known = known.unwrap_or_else(|| panic!("{}", method.as_str()));
            let levels = [false, true].map(|rotational| method.level(rotational)).map(Level::as_str);
            assert_eq!(BTreeSet::from(levels), known.levels.iter().copied().collect(), "{}", known.name);
            assert!(known.promises.contains(&method.expected_content().as_str()), "{}", known.name);
            let several = known.name == "overwrite-pattern";
            assert_eq!(known.promises.len(), 1 + usize::from(several), "{}", known.name);
            assert_eq!(known.attested, method.device_status().is_some(), "{}", known.name);
        }
    }
}
