//! Lists that are sorted by a field of which the store has no index, because few clients sort by it. All resources that
//! match are read, some at a time.

use super::resource::ResourceSpec;
use crate::call::Call;
use crate::error::ApiError;
use crate::page::Page;
use model::Resource;
use std::cmp::Ordering;
use std::time::Instant;
use store::{Place, ResourceFilter, ResourcePage, ResourceQuery, StoreError};

/// Resources that are read at a time.
const AT_ONCE: usize = 500;

/// The page after `marker`.
///
/// # Errors
/// 400: it takes longer than the time limit of lists.
pub async fn page(
    call: &Call,
    spec: &ResourceSpec,
    page: &Page,
    filter: ResourceFilter,
    marker: Option<Resource>,
) -> Result<ResourcePage, ApiError> {
    let (begun, limit) = (Instant::now(), call.app.settings.list_time_limit);
    let order = |one: &Resource, other: &Resource| {
        let (key, other_key) = (spec.read(one, &page.sort_key), spec.read(other, &page.sort_key));
        page.order(&key, &other_key).then((one.created_at, one.uuid).cmp(&(other.created_at, other.uuid)))
    };
    let mut query = ResourceQuery { time_limit: limit, ..ResourceQuery::first(AT_ONCE, filter) };
    // Never more than one page and what was read last.
    let mut first: Vec<Resource> = Vec::new();
    loop {
        let mut read = call.app.store.resource_page(query.clone()).await?;
        query.after = read.resources.last().map(|last| Place::of_resource(last, None));
        if let Some(marker) = &marker {
            read.resources.retain(|resource| order(resource, marker) == Ordering::Greater);
        }
        first.extend(read.resources);
        first.sort_by(order);
        first.truncate(page.limit.saturating_add(1));
        if !read.more {
            break;
        }
        if begun.elapsed() >= limit {
            return Err(StoreError::TooSlow(limit).into());
        }
    }
    let more = first.len() > page.limit;
    first.truncate(page.limit);
    Ok(ResourcePage { resources: first, more })
}
