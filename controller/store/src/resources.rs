//! What clients create besides nodes.

use crate::error::{Result, StoreError};
use crate::resource_query::{ResourcePage, ResourceQuery};
use async_trait::async_trait;
use model::{Bundle, Event, Node, Resource, ResourceKind, Scope};
use uuid::Uuid;

/// One write of a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceWrite {
    /// Add it. Its version becomes 1.
    Create(Resource),
    /// Write it at the version it carries; it comes back one larger.
    Update(Resource),
    /// Delete it at this version.
    Delete(ResourceKind, Uuid, u64),
}

/// Resources and bundles.
#[async_trait]
pub trait ResourceStore: Send + Sync {
    /// Write a resource and, in the same transaction and before it, a node at the version it carries (as
    /// [`NodeStore::update_node`](crate::NodeStore::update_node) does). Returns the resource as stored, or as it was
    /// when deleted. Rings the bell for that node, and for the node of a port before and after the write. The log gets `events`, of the
    /// resource.
    ///
    /// # Errors
    /// `NotFound` of the resource or its node, `Stale` with the UUID of the resource or the node, `Duplicate` of the
    /// UUID, name or key.
    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
        events: Vec<Event>,
    ) -> Result<Resource>;
    /// The resource of a kind with this UUID (any letter case) or name.
    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource>;
    /// The resource of a kind with this [`Resource::key`]: the port with this MAC address.
    async fn resource_by_key(&self, kind: ResourceKind, key: &str) -> Result<Resource>;
    /// Those of a kind with these UUIDs, as far as there are any.
    async fn resources_by_uuid(&self, kind: ResourceKind, uuids: &[Uuid]) -> Result<Vec<Resource>> {
        let mut found = Vec::new();
        for uuid in uuids {
            match self.resource(kind, &uuid.to_string()).await {
                Ok(resource) => found.push(resource),
                Err(StoreError::NotFound { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(found)
    }
    /// A page of a list of resources, as [`ResourceQuery::page_of`] gives it of all. It costs what the page costs; of several
    /// filters, what the one that lets the fewest pass costs.
    ///
    /// # Errors
    /// `TooSlow`.
    async fn resource_page(&self, query: ResourceQuery) -> Result<ResourcePage>;
    /// Resources of a kind, of one node or all, ordered by creation then UUID: for what needs all of them, never for a
    /// list.
    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>>;

    /// Store a bundle in place of the one with its name and scope, which is returned. The log gets `event` of it, as
    /// [`LoggedEvent::of_bundles`](model::LoggedEvent::of_bundles) says. Rings no bell: a node gets its bundles at its next boot.
    ///
    /// # Errors
    /// `NotFound`: its scope is a node that does not exist.
    async fn put_bundle(&self, bundle: Bundle, event: Event) -> Result<Option<Bundle>>;
    /// All bundles, ordered by name, then by scope from the widest.
    async fn bundles(&self) -> Result<Vec<Bundle>>;
    /// Delete the bundle with this digest from a scope, or from all; returns the deleted ones, at least one. The log gets `event` of
    /// each, as above.
    ///
    /// # Errors
    /// `NotFound`.
    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>, event: Event) -> Result<Vec<Bundle>>;
}
