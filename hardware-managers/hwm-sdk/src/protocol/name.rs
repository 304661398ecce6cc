//! Names that managers and steps may have, and names that are taken.

/// Interfaces of steps, Ironic's.
pub const INTERFACES: &[&str] = &["power", "management", "firmware", "deploy", "bios", "raid", "vendor"];
/// Longest name of a manager, a step or a version, in bytes.
const LONGEST: usize = 64;
/// Steps that are the agent's or the controller's alone.
const RESERVED_STEPS: &[&str] = &[
    "erase_devices",
    "erase_devices_metadata",
    "erase_devices_express",
    "hold",
    "wait",
    "power_on",
    "power_off",
    "reboot",
];

/// What is wrong with the name of a manager, if anything: it is `[a-z][a-z0-9_]*`, at most 64 bytes.
pub fn bad_manager_name(name: &str) -> Option<String> {
    bad_word("manager name", name)
}

/// What is wrong with the name of a step, if anything: it is `[a-z][a-z0-9_]*`, at most 64 bytes.
pub fn bad_step_name(name: &str) -> Option<String> {
    bad_word("step name", name)
}

/// What is wrong with a version, if anything: it is 1 to 64 of the characters `A-Za-z0-9.+~_-`.
pub fn bad_version(version: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".+~_-".contains(&byte);
    let good = !version.is_empty() && version.len() <= LONGEST && version.bytes().all(allowed);
    (!good).then(|| format!("version {:?} is not 1 to {LONGEST} of A-Za-z0-9.+~_-", shortened(version)))
}

/// Whether no external manager may have this name: it is one of Anneal's.
pub fn is_reserved_manager(name: &str) -> bool {
    name == "generic_hardware_manager" || name.starts_with("anneal")
}

/// Whether no external manager may offer this step: it is the agent's or the controller's alone.
pub fn is_reserved_step(interface: &str, step: &str) -> bool {
    interface == "power" || RESERVED_STEPS.contains(&step)
}

fn bad_word(what: &str, word: &str) -> Option<String> {
    let starts = word.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let rest = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let good = starts && rest && word.len() <= LONGEST;
    (!good).then(|| format!("{what} {:?} is not [a-z][a-z0-9_]* of at most {LONGEST} bytes", shortened(word)))
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_the_reserved_ones_are_known() {
        for good in ["a", "acme_raid", "x2"] {
            assert_eq!(bad_step_name(good), None);
        }
        let long = "a".repeat(65);
        for bad in ["", "_a", "2x", "Acme", "a.b", "a b", "a@b", "ä", long.as_str()] {
            assert!(bad_manager_name(bad).is_some(), "{bad}");
        }
        assert_eq!(bad_version("1.2.3-rc1+b5"), None);
        assert!(bad_version("1 2").is_some() && bad_version("").is_some() && bad_version("1@2").is_some());
        assert!(is_reserved_manager("generic_hardware_manager") && is_reserved_manager("anneal_x"));
        assert!(!is_reserved_manager("acme"));
        assert!(is_reserved_step("deploy", "erase_devices_metadata") && is_reserved_step("power", "cycle"));
        assert!(!is_reserved_step("raid", "create_configuration"));
    }
}
