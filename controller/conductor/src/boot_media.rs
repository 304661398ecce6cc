//! The port to what serves boot media to BMCs.

use model::Node;
use model::boot::BootNonce;

/// Says where the boot medium of a node is.
pub trait BootMedia: Send + Sync {
    /// The URL of the medium of the boot with this nonce, for the node's BMC.
    ///
    /// # Errors
    /// Why the node has none: in words for its operator.
    fn url(&self, node: &Node, nonce: &BootNonce) -> Result<String, String>;
}

/// A controller that serves none.
pub struct NoBootMedia;

impl BootMedia for NoBootMedia {
    fn url(&self, _node: &Node, _nonce: &BootNonce) -> Result<String, String> {
        Err("this controller serves no boot media: [boot] enabled is not set".to_owned())
    }
}
