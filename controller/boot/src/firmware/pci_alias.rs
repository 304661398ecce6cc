//! Modaliases of PCI functions and the patterns of modules for them: `pci:v00008086d00001209sv*sd*bc02sc00i*` (Linux,
//! `scripts/mod/file2alias.c`).

/// Keys in their order: vendor, device, those of the subsystem, base class, subclass, programming interface.
const KEYS: [&str; 7] = ["v", "d", "sv", "sd", "bc", "sc", "i"];

/// A number for each key; `None`: any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PciAlias([Option<u32>; KEYS.len()]);

impl PciAlias {
    /// Of a modalias, or of a pattern; `None` for those of other buses and for what is neither.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix("pci:")?;
        let mut numbers = [None; KEYS.len()];
        for (number, key) in numbers.iter_mut().zip(KEYS) {
            rest = rest.strip_prefix(key)?;
            if let Some(behind) = rest.strip_prefix('*') {
                rest = behind;
                continue;
            }
            // Keys are in small letters, digits in capital ones.
            let end = rest.find(|digit: char| !matches!(digit, '0'..='9' | 'A'..='F')).unwrap_or(rest.len());
            *number = Some(u32::from_str_radix(&rest[..end], 16).ok()?);
            rest = &rest[end..];
        }
        // depmod puts a star behind everything.
        matches!(rest, "" | "*").then_some(Self(numbers))
    }

    /// Whether the module with this pattern drives a function with that modalias.
    pub(super) fn covers(&self, function: &Self) -> bool {
        self.0.iter().zip(function.0).all(|(wanted, found)| wanted.is_none() || *wanted == found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTION: &str = "pci:v00008086d00001209sv00001AF4sd00001100bc02sc00i00";

    fn covers(pattern: &str) -> bool {
        PciAlias::parse(pattern).unwrap().covers(&PciAlias::parse(FUNCTION).unwrap())
    }

    #[test]
    fn a_pattern_covers_what_it_does_not_contradict() {
        for (pattern, expected) in [
            ("pci:v00008086d00001209sv*sd*bc02sc00i*", true),
            ("pci:v00008086d00001229sv*sd*bc02sc00i*", false),
            ("pci:v*d*sv*sd*bc02sc00i00*", true),
            ("pci:v*d*sv*sd*bc01sc08i02*", false),
            ("pci:v00008086d00001209sv00001AF4sd00001100bc*sc*i*", true),
            ("pci:v00008086d00001209sv00001AF4sd00001101bc*sc*i*", false),
            ("pci:v*d*sv*sd*bc*sc*i*", true),
        ] {
            assert_eq!(covers(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn other_text_is_no_alias() {
        for text in [
            "",
            "pci:",
            "usb:v0BDAp8152d*dc*dsc*dp*ic*isc*ip*in*",
            "pci:v00008086",
            "pci:vd00001209sv*sd*bc02sc00i*",
            "pci:v00008086d00001209sv*sd*bc02sc00i0[0-2]*",
            "pci:v00008086d00001209sv*sd*bc02sc00i*x",
            "pci:v100000000d*sv*sd*bc*sc*i*",
        ] {
            assert_eq!(PciAlias::parse(text), None, "{text}");
        }
    }
}
