//! The sender of an API request.

use serde::{Deserialize, Serialize};

/// The sender of a request. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSender {
    /// Name of the user; `None`: the request was not authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The project that the user's role is limited to; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// IP address that the request came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}
