//! What the medium of one boot carries besides kernel and initramfs.

use crate::ramdisk_agent::RamdiskAgent;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Decided at the first read of a medium. It is read in many parts, and a TPM shows later what was on it; meanwhile the node, its
/// inventory and the other controllers may have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediumContent {
    /// The agent that it boots.
    pub agent: RamdiskAgent,
    /// The agent's parameters.
    pub parameters: AgentParameters,
    /// The node's own network (`agent_protocol::boot_medium::StaticNetwork`); `None`: DHCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Value>,
    /// Whether it has the archive of a rescue.
    #[serde(default)]
    pub rescue: bool,
    /// Names of the archives of add-on firmware.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firmware: Vec<String>,
    /// Whether it has loaders that a firmware with Secure Boot starts.
    #[serde(default)]
    pub through_shim: bool,
}

/// The parameters of an agent, in the form of a kernel command line. A secret: the nonce of the boot is among them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentParameters(String);

impl AgentParameters {
    /// These.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret, for the medium.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for AgentParameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AgentParameters(******)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_stored_in_one_form_and_its_nonce_is_not_shown() {
        let parameters = AgentParameters::new("anneal.boot-nonce=5ec2e7".to_owned());
        let plain = MediumContent {
            agent: RamdiskAgent::Anneal,
            parameters,
            network: None,
            rescue: false,
            firmware: Vec::new(),
            through_shim: true,
        };
        let stored = json!({
            "agent": "anneal", "parameters": "anneal.boot-nonce=5ec2e7", "rescue": false, "through_shim": true
        });
        assert_eq!(serde_json::to_value(&plain).unwrap(), stored);
        assert_eq!(serde_json::from_value::<MediumContent>(stored).unwrap(), plain);
        assert!(!format!("{plain:?}").contains("5ec2e7"));
        let full = MediumContent {
            agent: RamdiskAgent::IronicPythonAgent,
            network: Some(json!({"interfaces": []})),
            rescue: true,
            firmware: vec!["qed.cpio.zst".to_owned()],
            ..plain
        };
        let stored = serde_json::to_value(&full).unwrap();
        assert_eq!(stored["agent"], "ironic-python-agent");
        assert_eq!(serde_json::from_value::<MediumContent>(stored).unwrap(), full);
    }
}
