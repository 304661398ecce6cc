//! Resources and bundles.

use crate::PostgresStore;
use crate::change::Change;
use crate::sql::node::{self, NodeRow};
use crate::sql::{bundle, event_log, resource, resource_list};
use async_trait::async_trait;
use model::{Bundle, Event, LoggedEvent, Node, Resource, ResourceKind, Scope};
use store::{ResourcePage, ResourceQuery, ResourceStore, ResourceWrite, Result, StoreError};
use uuid::Uuid;

#[async_trait]
impl ResourceStore for PostgresStore {
    async fn write_resource(
        &self,
        write: ResourceWrite,
        node: Option<(Node, Vec<Event>)>,
        events: Vec<Event>,
    ) -> Result<Resource> {
        let with = match node {
            None => None,
            Some((node, events)) => Some((NodeRow::next(&self.key, node)?, events)),
        };
        let (key, write, with, events) = (&self.key, &write, &with, &events);
        let written = self.database.write(|change, _| {
            Box::pin(async move {
                if let Some((node, events)) = with {
                    node::update(change, node, events, None).await?;
                    change.ring(node.node.uuid);
                }
                let written = resource::write(change, key, write.clone()).await?;
                if !events.is_empty() {
                    let node = match written.node {
                        Some(node) => node::by_uuid_in(change, key, node).await?,
                        None => None,
                    };
                    let of = |event: &Event| LoggedEvent::of_resource(&written, node.as_ref(), event.clone());
                    event_log::add(change, &events.iter().map(of).collect::<Vec<_>>()).await?;
                }
                Ok(written)
            })
        });
        written.await
    }

    async fn resource(&self, kind: ResourceKind, ident: &str) -> Result<Resource> {
        let key = &self.key;
        let found =
            self.database.read(|client, _| Box::pin(resource::by_ident(client, key, kind, ident))).await?;
        found.ok_or_else(|| StoreError::not_found(kind, ident))
    }

    async fn resource_by_key(&self, kind: ResourceKind, wanted: &str) -> Result<Resource> {
        let key = &self.key;
        let found =
            self.database.read(|client, _| Box::pin(resource::by_key(client, key, kind, wanted))).await?;
        found.ok_or_else(|| StoreError::not_found(kind, wanted))
    }

    async fn resources_by_uuid(&self, kind: ResourceKind, uuids: &[Uuid]) -> Result<Vec<Resource>> {
        let key = &self.key;
        self.database.read(|client, _| Box::pin(resource::by_uuids(client, key, kind, uuids))).await
    }

    async fn resource_page(&self, query: ResourceQuery) -> Result<ResourcePage> {
        let (key, query) = (&self.key, &query);
        self.database
            .read_within(query.time_limit, |change, _| Box::pin(resource_list::page(change, key, query)))
            .await
    }

    async fn resources(&self, kind: ResourceKind, node: Option<Uuid>) -> Result<Vec<Resource>> {
        let key = &self.key;
        self.database.read(|client, _| Box::pin(resource::all(client, key, kind, node))).await
    }

    async fn put_bundle(&self, bundle: Bundle, event: Event) -> Result<Option<Bundle>> {
        let (bundle, event) = (&bundle, &event);
        let put = self.database.write(|change, _| {
            Box::pin(async move {
                let old = bundle::put(change, bundle).await?;
                log_bundles(change, std::slice::from_ref(bundle), event).await?;
                Ok(old)
            })
        });
        put.await
    }

    async fn bundles(&self) -> Result<Vec<Bundle>> {
        self.database.read(|client, _| Box::pin(bundle::all(client))).await
    }

    async fn delete_bundle(&self, digest: &str, scope: Option<&Scope>, event: Event) -> Result<Vec<Bundle>> {
        let scope = scope.map(Scope::to_string);
        let (scope, event) = (scope.as_deref(), &event);
        let deleted = self.database.write(|change, _| {
            Box::pin(async move {
                let gone = bundle::delete(change, digest, scope).await?;
                log_bundles(change, &gone, event).await?;
                Ok(gone)
            })
        });
        deleted.await
    }
}

async fn log_bundles(change: &Change, bundles: &[Bundle], event: &Event) -> Result<()> {
    event_log::add(change, &LoggedEvent::of_bundles(bundles, event)).await
}
