//! What a node was made AVAILABLE on.

use crate::request_sender::RequestSender;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a node is AVAILABLE. Every way into that state is one of these; stored with the node while it is in that state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Basis {
    /// Every disk was erased, by evidence that the agent signed.
    Erased {
        /// Ids of the certificates of the cleaning, in the order of its steps.
        certificates: Vec<String>,
    },
    /// The same, but at least one disk was left alone or lost its metadata only.
    ErasedWithExceptions {
        /// Ids of the certificates.
        certificates: Vec<String>,
    },
    /// By that evidence no disk lost more than its partition tables and signatures.
    MetadataOnly {
        /// Ids of the certificates.
        certificates: Vec<String>,
    },
    /// By that evidence no disk was written: the node has none, or all were kept.
    NothingErased {
        /// Ids of the certificates.
        certificates: Vec<String>,
    },
    /// An agent that signs nothing reported that an erase step succeeded.
    IronicPythonAgent,
    /// The driver is fake-hardware, and no erase step ran.
    FakeHardware,
    /// The cleaning had no erase step: the priority of each is 0, or the agent offers none.
    NoEraseStep,
    /// Automated cleaning is switched off for the node or for all: nothing ran.
    NotCleaned,
    /// A client created it with an API version below 1.11, where new nodes begin in this state: nothing ran.
    CreatedAvailable,
    /// An administrator overrode a cleaning that failed.
    Override {
        /// The administrator's reason.
        reason: String,
        /// The administrator, as far as known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<RequestSender>,
    },
}

impl Basis {
    /// Its word, as on the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Erased { .. } => "erased",
            Self::ErasedWithExceptions { .. } => "erased-with-exceptions",
            Self::MetadataOnly { .. } => "metadata-only",
            Self::NothingErased { .. } => "nothing-erased",
            Self::IronicPythonAgent => "ironic-python-agent",
            Self::FakeHardware => "fake-hardware",
            Self::NoEraseStep => "no-erase-step",
            Self::NotCleaned => "not-cleaned",
            Self::CreatedAvailable => "created-available",
            Self::Override { .. } => "override",
        }
    }

    /// Ids of the certificates that it rests on.
    pub fn certificates(&self) -> &[String] {
        match self {
            Self::Erased { certificates }
            | Self::ErasedWithExceptions { certificates }
            | Self::MetadataOnly { certificates }
            | Self::NothingErased { certificates } => certificates,
            Self::IronicPythonAgent
            | Self::FakeHardware
            | Self::NoEraseStep
            | Self::NotCleaned
            | Self::CreatedAvailable
            | Self::Override { .. } => &[],
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        match self.certificates() {
            [] => Ok(()),
            ids => write!(f, " (certificates {})", ids.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn its_word_is_its_kind_on_the_wire() {
        let certificates = vec!["c".to_owned()];
        for (basis, wire) in [
            (
                Basis::Erased { certificates: certificates.clone() },
                json!({"kind": "erased", "certificates": ["c"]}),
            ),
            (
                Basis::ErasedWithExceptions { certificates: certificates.clone() },
                json!({"kind": "erased-with-exceptions", "certificates": ["c"]}),
            ),
            (
                Basis::MetadataOnly { certificates: certificates.clone() },
                json!({"kind": "metadata-only", "certificates": ["c"]}),
            ),
            (Basis::NothingErased { certificates }, json!({"kind": "nothing-erased", "certificates": ["c"]})),
            (Basis::IronicPythonAgent, json!({"kind": "ironic-python-agent"})),
            (Basis::FakeHardware, json!({"kind": "fake-hardware"})),
            (Basis::NoEraseStep, json!({"kind": "no-erase-step"})),
            (Basis::NotCleaned, json!({"kind": "not-cleaned"})),
            (Basis::CreatedAvailable, json!({"kind": "created-available"})),
            (
                Basis::Override { reason: "scrapped".to_owned(), by: None },
                json!({"kind": "override", "reason": "scrapped"}),
            ),
        ] {
            assert_eq!(json!(basis), wire);
            assert_eq!(wire["kind"], basis.as_str());
            assert_eq!(serde_json::from_value::<Basis>(wire).unwrap(), basis);
        }
    }
}
