//! What the node's `driver_internal_info` says about erasing, in Ironic's keys.

use hwm_sdk::StepError;
use serde_json::Value;

/// More disks than this at once gain nothing and cost memory.
const MOST: usize = 16;

/// How to erase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Disks worked on at once, 1..=16 (`disk_erasure_concurrency`; without it as many as there are).
    pub concurrency: usize,
    /// A read-only disk is skipped and fails nothing (`agent_erase_skip_read_only`).
    pub skip_read_only: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { concurrency: MOST, skip_read_only: false }
    }
}

impl Settings {
    /// From the node as the controller sent it. Absent keys have their defaults.
    ///
    /// # Errors
    /// [`StepError::Argument`] for a value of the wrong kind: erasing must not go on by a guess.
    pub fn from_node(node: &Value) -> Result<Self, StepError> {
        let info = &node["driver_internal_info"];
        let wrong = |name: &str, expected: &str, value: &Value| StepError::Argument {
            name: format!("node.driver_internal_info.{name}"),
            problem: format!("{value} is not {expected}"),
        };
        let name = "disk_erasure_concurrency";
        let concurrency = match &info[name] {
            Value::Null => MOST,
            value => value
                .as_u64()
                .filter(|&count| count > 0)
                .map(|count| usize::try_from(count).unwrap_or(MOST).min(MOST))
                .ok_or_else(|| wrong(name, "a whole number of at least 1", value))?,
        };
        let name = "agent_erase_skip_read_only";
        let skip_read_only = match &info[name] {
            Value::Null => false,
            value => value.as_bool().ok_or_else(|| wrong(name, "true or false", value))?,
        };
        Ok(Settings { concurrency, skip_read_only })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(info: Value) -> Result<Settings, StepError> {
        Settings::from_node(&json!({ "driver_internal_info": info }))
    }

    #[test]
    fn absent_keys_have_defaults_and_large_numbers_a_ceiling() {
        assert_eq!(Settings::from_node(&Value::Null).unwrap(), Settings::default());
        assert_eq!(parse(json!({})).unwrap(), Settings::default());
        let settings =
            parse(json!({"disk_erasure_concurrency": 900, "agent_erase_skip_read_only": true})).unwrap();
        assert_eq!(settings, Settings { concurrency: 16, skip_read_only: true });
        assert_eq!(parse(json!({"disk_erasure_concurrency": 4})).unwrap().concurrency, 4);
    }

    #[test]
    fn values_of_the_wrong_kind_are_named() {
        let zero = parse(json!({"disk_erasure_concurrency": 0})).unwrap_err().to_string();
        assert!(zero.contains("disk_erasure_concurrency") && zero.contains("at least 1"), "{zero}");
        let text = parse(json!({"agent_erase_skip_read_only": "yes"})).unwrap_err().to_string();
        assert!(text.contains("agent_erase_skip_read_only"), "{text}");
    }
}
