//! Names of traits: of nodes, of deploy templates.

use crate::body::python;
use crate::error::ApiError;
pub use model::traits::MOST;
use model::traits::{CUSTOM, LONGEST, is_name};
use serde_json::Value;

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
    if is_name(name) {
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
