//! Names of traits: of nodes, of deploy templates.

use crate::body::python;
use crate::error::ApiError;
use serde_json::Value;

/// Most traits of one node, as in Ironic.
pub const MOST: usize = 50;

/// Longest name, in bytes.
const LONGEST: usize = 255;

/// Namespaces of the standard traits (os-traits). Ironic knows each name by itself; here every name in one of
/// them will do, so that a newer os-traits needs no newer controller.
const STANDARD: [&str; 5] = ["COMPUTE_", "HW_", "MISC_", "OWNER_", "STORAGE_"];

/// Namespace of everybody's own traits.
const CUSTOM: &str = "CUSTOM_";

/// The name of a trait, or 400 in the words of Ironic's schema. `what` is what is being read: `body`, `trait`,
/// `template`, `patch`.
pub fn name<'a>(what: &str, value: &'a Value) -> Result<&'a str, ApiError> {
    let bad = |why: &str| Err(ApiError::invalid(format!("Schema error for {what}: {} {why}", python(value))));
    let Value::String(name) = value else { return bad("is not of type 'string'") };
    match name.chars().count() {
        0 => return bad("should be non-empty"),
        1..=LONGEST => {}
        _ => return bad("is too long"),
    }
    let word = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let spaces = STANDARD.into_iter().chain([CUSTOM]);
    let found = spaces.filter_map(|space| name.strip_prefix(space)).next();
    if found.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(word)) {
        return Ok(name);
    }
    bad(&format!(
        "is not valid under any of the given schemas. Possible root cause: {} does not match \
         '^{CUSTOM}[A-Z0-9_]+$'",
        python(value)
    ))
}

#[cfg(test)]
mod tests {
    use super::name;
    use serde_json::json;

    #[test]
    fn names() {
        let long = format!("CUSTOM_{}", "A".repeat(248));
        for good in ["CUSTOM_A", "CUSTOM_0_", "HW_CPU_X86_VMX", "COMPUTE_NODE", &long] {
            assert_eq!(name("body", &json!(good)).unwrap(), good);
        }
        for bad in
            ["", "CUSTOM_", "CUSTOM_a", "custom_A", "CUSTOM-A", "HW_", "HWX", "X_A", "CUSTOM_Ä", "CUSTOM_A "]
        {
            assert!(name("body", &json!(bad)).is_err(), "{bad}");
        }
        assert!(name("body", &json!(long + "A")).unwrap_err().message.ends_with("is too long"));
        assert_eq!(
            name("body", &json!(5)).unwrap_err().message,
            "Schema error for body: 5 is not of type 'string'"
        );
    }
}
