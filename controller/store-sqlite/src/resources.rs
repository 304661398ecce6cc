//! Resources and bundles.

use crate::SqliteStore;
use crate::sql::{bundle, event_log, node, resource, resource_list};
use crate::writer::Change;
use async_trait::async_trait;
use model::{Bundle, Event, LoggedEvent, Node, Resource, ResourceKind, Scope};
use store::{ResourcePage, ResourceQuery, ResourceStore, ResourceWrite, Result, StoreError};
use uuid::Uuid;

#[async_trait]
impl ResourceStore for SqliteStore {
    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
        events: Vec<Event>,
    ) -> Result<Resource> {
        let node = match node {
            None => None,
            Some((mut node, events)) => {
                node.version = node.version.checked_add(1).ok_or(StoreError::Stale(node.uuid))?;
                Some((node::Document::of(&node)?, node.uuid, events))
            }
        };
        let deletes = matches!(write, ResourceWrite::Delete(..));
        let work = move |change: &mut Change<'_>| {
            if let Some((doc, node, events)) = node {
                node::update(change, &doc, &events, None)?;
                change.ring(node);
            }
            let written = resource::write(change, write)?;
            if !events.is_empty() {
                let node = written.node.map(|node| node::by_uuid(change, node)).transpose()?.flatten();
                for event in events {
                    event_log::append(change, &LoggedEvent::of_resource(&written, node.as_ref(), event))?;
                }
            }
            Ok(written)
        };
        if deletes { self.delete(work).await } else { self.writer.write(work).await }
    }

    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource> {
        let wanted = ident.to_owned();
        let found =
            self.readers.read(move |connection| resource::by_ident(connection, kind, &wanted)).await?;
        found.ok_or_else(|| StoreError::not_found(kind, ident))
    }

    async fn resource_by_key(&self, kind: ResourceKind, key: &str) -> Result<Resource> {
        let wanted = key.to_owned();
        let found = self.readers.read(move |connection| resource::by_key(connection, kind, &wanted)).await?;
        found.ok_or_else(|| StoreError::not_found(kind, key))
    }

    async fn resources_by_uuid(&self, kind: ResourceKind, uuids: &[Uuid]) -> Result<Vec<Resource>> {
        let uuids: Vec<_> = uuids.iter().map(Uuid::to_string).collect();
        self.readers.read(move |connection| resource::by_uuids(connection, kind, &uuids)).await
    }

    async fn resource_page(&self, query: ResourceQuery) -> Result<ResourcePage> {
        let limit = query.time_limit;
        self.readers.read_within(limit, move |connection| resource_list::page(connection, &query)).await
    }

    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>> {
        self.readers.read(move |connection| resource::all(connection, kind, node)).await
    }

    async fn put_bundle(&self, bundle: Bundle, event: Event) -> Result<Option<Bundle>> {
        let work = move |change: &mut Change<'_>| {
            let old = bundle::put(change, &bundle)?;
            log_bundles(change, std::slice::from_ref(&bundle), &event)?;
            Ok(old)
        };
        self.writer.write(work).await
    }

    async fn bundles(&self) -> Result<Vec<Bundle>> {
        self.readers.read(bundle::all).await
    }

    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>, event: Event) -> Result<Vec<Bundle>> {
        let (digest, scope) = (digest.to_owned(), scope.map(Scope::to_string));
        let work = move |change: &mut Change<'_>| {
            let gone = bundle::delete(change, &digest, scope.as_deref())?;
            log_bundles(change, &gone, &event)?;
            Ok(gone)
        };
        self.delete(work).await
    }
}

fn log_bundles(change: &Change<'_>, bundles: &[Bundle], event: &Event) -> Result<()> {
    LoggedEvent::of_bundles(bundles, event).iter().try_for_each(|one| event_log::append(change, one))
}
