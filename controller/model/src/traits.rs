//! Names of traits.

/// Most traits of one node, as in Ironic.
pub const MOST: usize = 50;

/// Longest name, in bytes.
pub const LONGEST: usize = 255;

/// Namespaces of the standard traits (os-traits). Ironic knows each name by itself; here every name in one of
/// them will do, so that a newer os-traits needs no newer controller.
const STANDARD: [&str; 5] = ["COMPUTE_", "HW_", "MISC_", "OWNER_", "STORAGE_"];

/// Namespace of custom traits.
pub const CUSTOM: &str = "CUSTOM_";

/// Whether this is the name of a trait.
pub fn is_name(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let spaces = STANDARD.into_iter().chain([CUSTOM]);
    let found = spaces.filter_map(|space| name.strip_prefix(space)).next();
    name.len() <= LONGEST && found.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(word))
}
