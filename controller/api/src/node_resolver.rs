//! From the name in a path, a query or a body to the node.

use crate::args::is_logical_name;
use crate::error::ApiError;
use crate::microversion::{MIN, Version};
use axum::http::Extensions;
use model::Node;
use std::sync::Arc;
use store::{ApiStore, StoreError};
use uuid::Uuid;

/// Last part of a path that came with `.json`, without that suffix. Until 1.91 both may be the name of a node.
#[derive(Clone)]
pub struct Suffixed(pub String);

/// Finds the node that a request names. The guard and the handler both use it, so that the guard judges the same node
/// that the handler will find.
#[derive(Clone)]
pub struct NodeResolver {
    /// The microversion of the request.
    pub version: Version,
    /// The last part of the path, if `.json` was cut from it.
    suffixed: Option<String>,
}

impl NodeResolver {
    /// From the extensions that the front of the API has set.
    pub fn of(extensions: &Extensions) -> Self {
        Self {
            version: extensions.get::<Version>().copied().unwrap_or(Version(MIN)),
            suffixed: extensions.get::<Suffixed>().map(|suffixed| suffixed.0.clone()),
        }
    }

    /// The node with this UUID or name in `store`. A name from which `.json` was cut may end in `.json` itself.
    ///
    /// # Errors
    /// 404: no such node. 400: `ident` is not a valid name.
    pub async fn node(&self, store: &dyn ApiStore, ident: &str) -> Result<Node, ApiError> {
        self.shared_node(store, ident).await.map(Arc::unwrap_or_clone)
    }

    /// The same, not copied where the store has it in memory.
    ///
    /// # Errors
    /// As above.
    pub async fn shared_node(&self, store: &dyn ApiStore, ident: &str) -> Result<Arc<Node>, ApiError> {
        match self.named(store, ident).await {
            Err(error) if error.status == 404 && self.suffixed.as_deref() == Some(ident) => {
                self.named(store, &format!("{ident}.json")).await
            }
            found => found,
        }
    }

    async fn named(&self, store: &dyn ApiStore, ident: &str) -> Result<Arc<Node>, ApiError> {
        if let Ok(uuid) = Uuid::parse_str(ident) {
            return store.shared_node(uuid).await.map_err(|error| match error {
                StoreError::NotFound { .. } => ApiError::no_node(ident),
                other => other.into(),
            });
        }
        if !is_logical_name(ident) {
            return Err(ApiError::invalid(format!("Expected UUID or name for node_ident: {ident}")));
        }
        if !self.version.has(5) {
            return Err(ApiError::no_node(ident));
        }
        Ok(Arc::new(store.node_by_ident(ident).await?))
    }
}
