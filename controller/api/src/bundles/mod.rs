//! `/v1/anneal/bundles`: vendors' hardware managers, stored here and offered to the agents of the nodes that they are
//! for. An extension of Anneal's, so no microversion guards it.
//!
//! ```text
//!   admin ── POST … (the file) ──▶ BundleStore: an upload on the disk ─▶ bundle::verify ─▶ named by its digest ─▶ store
//!   agent ── lookup ─────────────▶ offers ── GET …/{digest}/file (node and token in headers) ──▶ the file
//! ```

mod bundle_store;
mod file;
mod read;
mod scope;
mod write;

pub use bundle_store::BundleStore;
pub(crate) use file::agent;

use crate::call::Call;
use crate::endpoint::{Endpoint, rows};
use crate::error::ApiError;
use agent_protocol::lookup::BundleOffer;
use model::Node;

/// Endpoints of bundles.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/bundles" 1 "anneal:bundle:get", "bundles of hardware managers" => read::list;
        GET "/v1/anneal/bundles/{digest}" 1 "anneal:bundle:get", "a bundle" => read::show;
        DELETE "/v1/anneal/bundles/{digest}" 1 "anneal:bundle:delete", "remove it" => write::delete;
    ];
    let file = rows![
        GET "/v1/anneal/bundles/{digest}/file" 1 "anneal:bundle:get", "its file, also for an agent with its token"
            => file::file;
    ];
    let upload = rows![POST "/v1/anneal/bundles" 1 "anneal:bundle:create", "add one" => write::add;];
    let upload = upload.into_iter().map(|row| row.taking("application/octet-stream"));
    rows.into_iter()
        .chain(upload)
        .chain(file.into_iter().map(Endpoint::or_agents))
        .map(Endpoint::own)
        .collect()
}

/// The bundles that the agent of a node is to fetch.
pub(crate) async fn offers(call: &Call, node: &Node) -> Result<Vec<BundleOffer>, ApiError> {
    if call.app.bundles.is_none() {
        return Ok(Vec::new());
    }
    let bundles = call.app.store.bundles().await?;
    let offer = |bundle: &model::Bundle| BundleOffer {
        name: bundle.name.clone(),
        version: bundle.version.clone(),
        digest: bundle.digest.clone(),
        size: bundle.size,
        signed_by: bundle.signed_by.clone(),
    };
    Ok(model::bundle::of_node(&bundles, node).into_iter().map(offer).collect())
}
