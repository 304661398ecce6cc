//! Lists that are sorted by a field of which the store has no index, because few clients sort by it. All resources that
//! match are read, some at a time.

use super::resource::ResourceSpec;
use crate::call::Call;
use crate::error::ApiError;
use crate::first_page::{AT_ONCE, FirstPage};
use crate::page::Page;
use model::Resource;
use store::{Place, ResourceFilter, ResourcePage, ResourceQuery};

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
    let order = |one: &Resource, other: &Resource| {
        let (key, other_key) = (spec.read(one, &page.sort_key), spec.read(other, &page.sort_key));
        page.order(&key, &other_key).then((one.created_at, one.uuid).cmp(&(other.created_at, other.uuid)))
    };
    let time_limit = call.app.settings.list_time_limit;
    let mut query = ResourceQuery { time_limit, ..ResourceQuery::first(AT_ONCE, filter) };
    let mut first = FirstPage::new(&call.app, page, order, marker);
    loop {
        let read = call.app.store.resource_page(query.clone()).await?;
        query.after = read.resources.last().map(|last| Place::of_resource(last, None));
        if !first.take(read.resources, read.more)? {
            break;
        }
    }
    let (resources, more) = first.end();
    Ok(ResourcePage { resources, more })
}
