//! The core step of deploy interfaces, and which of them starts the node by itself.

use crate::step::CatalogueStep;

/// The core step of the deploy interfaces: `direct` gets the image ready in it, [`RAMDISK`] starts the node.
pub const DEPLOY: &str = "deploy";

/// Name of the deploy interface that boots a kernel and a ramdisk of the node's user.
pub const RAMDISK: &str = "ramdisk";

/// Whether this is the step with which [`RAMDISK`] starts the node.
pub fn is_deploy_step(step: &CatalogueStep) -> bool {
    step.provider == RAMDISK && step.step == DEPLOY
}
