//! Ports, resources and bundles.

use super::MemoryStore;
use super::state::State;
use crate::error::{Noun, Result, StoreError, Unique};
use crate::resources::{ResourceStore, ResourceWrite};
use async_trait::async_trait;
use model::{Bundle, Event, Node, Port, Resource, ResourceKind, Scope};
use uuid::Uuid;

impl State {
    /// Refuses a port of an unknown node, or with the address of another port.
    fn sound_port(&self, port: &Port) -> Result<()> {
        if !self.nodes.contains_key(&port.node_uuid) {
            return Err(StoreError::not_found(Noun::Node, port.node_uuid));
        }
        if self.ports.values().any(|other| other.uuid != port.uuid && other.address == port.address) {
            return Err(StoreError::duplicate(Unique::PortAddress, &port.address));
        }
        Ok(())
    }

    /// Refuses a resource of an unknown node, or with a name or key of another one of its kind.
    fn sound_resource(&self, resource: &Resource) -> Result<()> {
        if let Some(node) = resource.node.filter(|node| !self.nodes.contains_key(node)) {
            return Err(StoreError::not_found(Noun::Node, node));
        }
        let others = || {
            let same = |other: &&Resource| other.kind == resource.kind && other.uuid != resource.uuid;
            self.resources.values().filter(same)
        };
        if let Some(name) = &resource.name
            && others().any(|other| other.name.as_ref() == Some(name))
        {
            return Err(StoreError::duplicate(Unique::ResourceName, name));
        }
        if let Some(key) = &resource.key
            && others().any(|other| other.key.as_ref() == Some(key))
        {
            return Err(StoreError::duplicate(Unique::ResourceKey, key));
        }
        Ok(())
    }

    /// The resource, if it is still at this version.
    fn at_version(&self, kind: ResourceKind, uuid: Uuid, version: u64) -> Result<&Resource> {
        let stored = self.resources.get(&(kind, uuid));
        let stored = stored.ok_or_else(|| StoreError::not_found(kind, uuid))?;
        if stored.version == version { Ok(stored) } else { Err(StoreError::Stale(uuid)) }
    }

    fn write_resource(&mut self, write: ResourceWrite) -> Result<Resource> {
        match write {
            ResourceWrite::Create(mut resource) => {
                let place = (resource.kind, resource.uuid);
                if self.resources.contains_key(&place) {
                    return Err(StoreError::duplicate(Unique::ResourceUuid, resource.uuid));
                }
                self.sound_resource(&resource)?;
                resource.version = 1;
                self.resources.insert(place, resource.clone());
                Ok(resource)
            }
            ResourceWrite::Update(mut resource) => {
                self.at_version(resource.kind, resource.uuid, resource.version)?;
                self.sound_resource(&resource)?;
                resource.version += 1;
                self.resources.insert((resource.kind, resource.uuid), resource.clone());
                Ok(resource)
            }
            ResourceWrite::Delete(kind, uuid, version) => {
                let gone = self.at_version(kind, uuid, version)?.clone();
                self.resources.remove(&(kind, uuid));
                Ok(gone)
            }
        }
    }
}

#[async_trait]
impl ResourceStore for MemoryStore {
    async fn create_port(&self, port: Port) -> Result<Port> {
        let mut state = self.state();
        if state.ports.contains_key(&port.uuid) {
            return Err(StoreError::duplicate(Unique::PortUuid, port.uuid));
        }
        state.sound_port(&port)?;
        state.ports.insert(port.uuid, port.clone());
        drop(state);
        self.bell.ring(port.node_uuid);
        Ok(port)
    }

    async fn port(&self, uuid: Uuid) -> Result<Port> {
        self.state().ports.get(&uuid).cloned().ok_or_else(|| StoreError::not_found(Noun::Port, uuid))
    }

    async fn port_by_address(&self, address: &str) -> Result<Port> {
        let state = self.state();
        let found = state.ports.values().find(|port| port.address == address);
        found.cloned().ok_or_else(|| StoreError::not_found(Noun::Port, address))
    }

    async fn ports(&self, node: Option<Uuid>) -> Result<Vec<Port>> {
        let state = self.state();
        let wanted = |port: &&Port| node.is_none_or(|node| port.node_uuid == node);
        let mut ports: Vec<_> = state.ports.values().filter(wanted).cloned().collect();
        ports.sort_by_key(|port| (port.created_at, port.uuid));
        Ok(ports)
    }

    async fn update_port(&self, port: Port) -> Result<Port> {
        let mut state = self.state();
        let Some(old) = state.ports.get(&port.uuid) else {
            return Err(StoreError::not_found(Noun::Port, port.uuid));
        };
        let old_node = old.node_uuid;
        state.sound_port(&port)?;
        state.ports.insert(port.uuid, port.clone());
        drop(state);
        self.bell.ring(port.node_uuid);
        if old_node != port.node_uuid {
            self.bell.ring(old_node);
        }
        Ok(port)
    }

    async fn delete_port(&self, uuid: Uuid) -> Result<()> {
        let gone = self.state().ports.remove(&uuid);
        let port = gone.ok_or_else(|| StoreError::not_found(Noun::Port, uuid))?;
        self.bell.ring(port.node_uuid);
        Ok(())
    }

    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
    ) -> Result<Resource> {
        let mut state = self.state();
        let Some((mut node, events)) = node else { return state.write_resource(write) };
        // All of it or nothing.
        let mut after = state.clone();
        after.update(&mut node, events, None)?;
        let written = after.write_resource(write)?;
        *state = after;
        drop(state);
        self.bell.ring(node.uuid);
        Ok(written)
    }

    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource> {
        let state = self.state();
        let by_uuid = Uuid::parse_str(ident).ok().and_then(|uuid| state.resources.get(&(kind, uuid)));
        let named = |resource: &&Resource| resource.kind == kind && resource.name.as_deref() == Some(ident);
        by_uuid
            .or_else(|| state.resources.values().find(named))
            .cloned()
            .ok_or_else(|| StoreError::not_found(kind, ident))
    }

    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>> {
        let state = self.state();
        let wanted = |resource: &&Resource| {
            resource.kind == kind && node.is_none_or(|node| resource.node == Some(node))
        };
        let mut found: Vec<_> = state.resources.values().filter(wanted).cloned().collect();
        found.sort_by_key(|resource| (resource.created_at, resource.uuid));
        Ok(found)
    }

    async fn put_bundle(&self, bundle: Bundle) -> Result<Option<Bundle>> {
        let mut state = self.state();
        if let Scope::Node(node) = bundle.scope {
            state.row(node)?;
        }
        Ok(state.bundles.insert((bundle.name.clone(), bundle.scope.clone()), bundle))
    }

    async fn bundles(&self) -> Result<Vec<Bundle>> {
        Ok(self.state().bundles.values().cloned().collect())
    }

    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>) -> Result<Vec<Bundle>> {
        let meant = |_: &(String, Scope), bundle: &mut Bundle| {
            bundle.digest == digest && scope.is_none_or(|scope| bundle.scope == *scope)
        };
        let gone: Vec<_> = self.state().bundles.extract_if(.., meant).map(|(_, bundle)| bundle).collect();
        if gone.is_empty() { Err(StoreError::not_found(Noun::Bundle, digest)) } else { Ok(gone) }
    }
}
