//! Ports, resources and bundles.

use crate::SqliteStore;
use crate::sql::{bundle, node, port, resource};
use async_trait::async_trait;
use model::{Bundle, Event, Node, Port, Resource, ResourceKind, Scope};
use store::{Noun, ResourceStore, ResourceWrite, Result, StoreError};
use uuid::Uuid;

#[async_trait]
impl ResourceStore for SqliteStore {
    async fn create_port(&self, port: Port) -> Result<Port> {
        let write = self.writer.write(move |change| {
            port::insert(change, &port)?;
            change.ring(port.node_uuid);
            Ok(port)
        });
        write.await
    }

    async fn port(&self, uuid: Uuid) -> Result<Port> {
        let found = self.readers.read(move |connection| port::by_uuid(connection, uuid)).await?;
        found.ok_or_else(|| StoreError::not_found(Noun::Port, uuid))
    }

    async fn port_by_address(&self, address: &str) -> Result<Port> {
        let wanted = address.to_owned();
        let found = self.readers.read(move |connection| port::by_address(connection, &wanted)).await?;
        found.ok_or_else(|| StoreError::not_found(Noun::Port, address))
    }

    async fn ports(&self, node: Option<Uuid>) -> Result<Vec<Port>> {
        let read = self.readers.read(move |connection| match node {
            Some(node) => port::of_node(connection, node),
            None => port::all(connection),
        });
        read.await
    }

    async fn update_port(&self, port: Port) -> Result<Port> {
        let write = self.writer.write(move |change| {
            let old = port::update(change, &port)?;
            change.ring(port.node_uuid);
            if old.node_uuid != port.node_uuid {
                change.ring(old.node_uuid);
            }
            Ok(port)
        });
        write.await
    }

    async fn delete_port(&self, uuid: Uuid) -> Result<()> {
        let write = self.writer.write(move |change| {
            let old = port::delete(change, uuid)?;
            change.ring(old.node_uuid);
            Ok(())
        });
        write.await
    }

    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
    ) -> Result<Resource> {
        let node = match node {
            None => None,
            Some((mut node, events)) => {
                node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
                let doc = node::document(&node)?;
                Some((node, doc, events))
            }
        };
        let write = self.writer.write(move |change| {
            if let Some((node, doc, events)) = node {
                node::update(change, &node, &doc, &events, None)?;
                change.ring(node.uuid);
            }
            resource::write(change, write)
        });
        write.await
    }

    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource> {
        let wanted = ident.to_owned();
        let found =
            self.readers.read(move |connection| resource::by_ident(connection, kind, &wanted)).await?;
        found.ok_or_else(|| StoreError::not_found(kind, ident))
    }

    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>> {
        self.readers.read(move |connection| resource::all(connection, kind, node)).await
    }

    async fn put_bundle(&self, bundle: Bundle) -> Result<Option<Bundle>> {
        self.writer.write(move |change| bundle::put(change, &bundle)).await
    }

    async fn bundles(&self) -> Result<Vec<Bundle>> {
        self.readers.read(bundle::all).await
    }

    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>) -> Result<Vec<Bundle>> {
        let (digest, scope) = (digest.to_owned(), scope.map(Scope::to_string));
        self.writer.write(move |change| bundle::delete(change, &digest, scope.as_deref())).await
    }
}
