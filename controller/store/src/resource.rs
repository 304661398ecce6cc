//! How a resource is written.

use model::{Resource, ResourceKind};
use uuid::Uuid;

/// One write of a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceWrite {
    /// Add it. Its version becomes 1.
    Create(Resource),
    /// Write it at the version it carries; it comes back one larger.
    Update(Resource),
    /// Remove it at this version.
    Delete(ResourceKind, Uuid, u64),
}
