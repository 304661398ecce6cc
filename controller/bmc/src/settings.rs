//! What the site says about connections to BMCs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `[bmc]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Directory of the files that `redfish_verify_ca` names. Users of the API can have no other file opened.
    pub ca_directory: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self { ca_directory: "/etc/anneal/bmc-ca".into() }
    }
}
