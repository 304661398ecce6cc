//! The methods of `docs/erase.md`: which level each reaches, and what a disk must read back as after it. The agent's own
//! table is in `block`, which is no part of a controller; `tests/methods.rs` compares the two.

/// A method as a record names it.
pub(crate) struct ErasedBy {
    /// Its word.
    pub(crate) name: &'static str,
    /// Levels that it reaches, on one kind of disk or another.
    pub(crate) levels: &'static [&'static str],
    /// What it promises of the content afterwards: `zeroes`, `pattern`, `random`; or `changed`, which is no particular
    /// content and the only promise that samples can prove.
    pub(crate) promises: &'static str,
}

const CLEAR: &[&str] = &["clear"];
const PURGE: &[&str] = &["purge"];

const fn by(name: &'static str, levels: &'static [&'static str], promises: &'static str) -> ErasedBy {
    ErasedBy { name, levels, promises }
}

/// All of them.
pub(crate) const METHODS: &[ErasedBy] = &[
    by("nvme-sanitize-crypto", PURGE, "changed"),
    by("nvme-sanitize-block", PURGE, "changed"),
    by("nvme-sanitize-overwrite", PURGE, "zeroes"),
    by("ata-sanitize-crypto", PURGE, "changed"),
    by("ata-sanitize-block", PURGE, "changed"),
    by("ata-sanitize-overwrite", PURGE, "zeroes"),
    by("scsi-sanitize-crypto", PURGE, "changed"),
    by("scsi-sanitize-block", PURGE, "changed"),
    by("scsi-sanitize-overwrite", PURGE, "zeroes"),
    by("opal-psid-revert", PURGE, "changed"),
    by("nvme-format-crypto", CLEAR, "changed"),
    by("nvme-format-user-data", CLEAR, "changed"),
    // Of a spinning disk purge, of flash clear.
    by("ata-secure-erase-enhanced", &["clear", "purge"], "changed"),
    by("ata-secure-erase", CLEAR, "zeroes"),
    by("emmc-sanitize", CLEAR, "changed"),
    by("secure-discard", CLEAR, "changed"),
    by("zero-out", CLEAR, "zeroes"),
    by("discard", CLEAR, "zeroes"),
    by("overwrite-zeroes", CLEAR, "zeroes"),
    by("overwrite-pattern", CLEAR, "pattern"),
    by("overwrite-random", CLEAR, "random"),
    by("scsi-format-unit", CLEAR, "zeroes"),
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
            let known = METHODS.iter().find(|known| known.name == method.as_str()).expect(method.as_str());
            let levels = [false, true].map(|rotational| method.level(rotational)).map(Level::as_str);
            assert_eq!(BTreeSet::from(levels), known.levels.iter().copied().collect(), "{}", known.name);
            assert_eq!(known.promises, method.expected_content().as_str(), "{}", known.name);
        }
    }
}
