//! Resources and bundles.

use super::MemoryStore;
use super::state::State;
use crate::error::{Noun, Result, StoreError, Unique};
use crate::resource_query::{ResourcePage, ResourceQuery};
use crate::resources::{ResourceStore, ResourceWrite};
use async_trait::async_trait;
use model::{Bundle, Event, LoggedEvent, Node, Resource, ResourceKind, Scope};
use uuid::Uuid;

impl State {
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

    fn log_bundles(&mut self, bundles: &[Bundle], event: &Event) {
        LoggedEvent::of_bundles(bundles, event).into_iter().for_each(|one| self.log_event(one));
    }

    pub(super) fn by_key(&self, kind: ResourceKind, key: &str) -> Option<&Resource> {
        self.resources.values().find(|other| other.kind == kind && other.key.as_deref() == Some(key))
    }

    /// The resource, if it is still at this version.
    pub(super) fn at_version(&self, kind: ResourceKind, uuid: Uuid, version: u64) -> Result<&Resource> {
        let stored = self.resources.get(&(kind, uuid));
        let stored = stored.ok_or_else(|| StoreError::not_found(kind, uuid))?;
        if stored.version == version { Ok(stored) } else { Err(StoreError::Stale(uuid)) }
    }

    /// The resource as stored, or as it was when deleted, and the nodes that the bell rings for.
    pub(super) fn write_resource(&mut self, write: ResourceWrite) -> Result<(Resource, Vec<Uuid>)> {
        let (before, after) = match write {
            ResourceWrite::Create(mut resource) => {
                let place = (resource.kind, resource.uuid);
                if self.resources.contains_key(&place) {
                    return Err(StoreError::duplicate(Unique::ResourceUuid, resource.uuid));
                }
                self.sound_resource(&resource)?;
                resource.version = 1;
                self.resources.insert(place, resource.clone());
                (None, resource)
            }
            ResourceWrite::Update(mut resource) => {
                self.at_version(resource.kind, resource.uuid, resource.version)?;
                self.sound_resource(&resource)?;
                resource.version += 1;
                (self.resources.insert((resource.kind, resource.uuid), resource.clone()), resource)
            }
            ResourceWrite::Delete(kind, uuid, version) => {
                let gone = self.at_version(kind, uuid, version)?.clone();
                self.resources.remove(&(kind, uuid));
                (None, gone)
            }
        };
        let concerned = [before.as_ref(), Some(&after)].into_iter().flatten();
        let rings = concerned.filter_map(Resource::rings_for).collect();
        Ok((after, rings))
    }
}

#[async_trait]
impl ResourceStore for MemoryStore {
    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
        events: Vec<Event>,
    ) -> Result<Resource> {
        let mut state = self.state();
        let (written, rings) = match node {
            None => state.write_resource(write)?,
            Some((mut node, events)) => {
                // All of it or nothing.
                let mut after = state.clone();
                after.update(&mut node, events, None)?;
                let (written, mut rings) = after.write_resource(write)?;
                rings.push(node.uuid);
                *state = after;
                (written, rings)
            }
        };
        for event in events {
            let node = written.node.and_then(|node| state.nodes.get(&node)).map(|row| &row.node);
            let logged = LoggedEvent::of_resource(&written, node, event);
            state.log_event(logged);
        }
        drop(state);
        rings.into_iter().for_each(|node| self.bell.ring(node));
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

    async fn resource_by_key(&self, kind: ResourceKind, key: &str) -> Result<Resource> {
        self.state().by_key(kind, key).cloned().ok_or_else(|| StoreError::not_found(kind, key))
    }

    async fn resource_page(&self, query: ResourceQuery) -> Result<ResourcePage> {
        let state = self.state();
        Ok(query.page_of(state.resources.values(), |node| state.nodes.get(&node).map(|row| &row.node)))
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

    async fn put_bundle(&self, bundle: Bundle, event: Event) -> Result<Option<Bundle>> {
        let mut state = self.state();
        if let Scope::Node(node) = bundle.scope {
            state.row(node)?;
        }
        state.log_bundles(std::slice::from_ref(&bundle), &event);
        Ok(state.bundles.insert((bundle.name.clone(), bundle.scope.clone()), bundle))
    }

    async fn bundles(&self) -> Result<Vec<Bundle>> {
        Ok(self.state().bundles.values().cloned().collect())
    }

    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>, event: Event) -> Result<Vec<Bundle>> {
        let mut state = self.state();
        let meant = |_: &(String, Scope), bundle: &mut Bundle| {
            bundle.digest == digest && scope.is_none_or(|scope| bundle.scope == *scope)
        };
        let gone: Vec<_> = state.bundles.extract_if(.., meant).map(|(_, bundle)| bundle).collect();
        state.log_bundles(&gone, &event);
        if gone.is_empty() { Err(StoreError::not_found(Noun::Bundle, digest)) } else { Ok(gone) }
    }
}
