//! Lists of a resource, and one of it.

use super::resource::{ResourceHandler, ResourceSpec};
use super::{scan, view};
use crate::call::{Call, json, json_text};
use crate::error::{ApiError, Reply};
use crate::list_body::list_body;
use crate::page::{self, Page};
use crate::shown;
use axum::extract::Path;
use model::Resource;
use store::{Place, ResourceField, ResourceFilter, ResourcePage, ResourceQuery};

/// `GET /v1/…`.
pub async fn list<R: ResourceHandler>(call: Call) -> Reply {
    all::<R>(&call, false).await
}

/// `GET /v1/…/detail`.
pub async fn detail<R: ResourceHandler>(call: Call) -> Reply {
    all::<R>(&call, true).await
}

/// `GET /v1/nodes/{ident}/…`.
pub async fn of_node<R: ResourceHandler>(Path(ident): Path<String>, call: Call) -> Reply {
    below_node::<R>(&call, &ident, false).await
}

/// `GET /v1/nodes/{ident}/…/detail`.
pub async fn of_node_detail<R: ResourceHandler>(Path(ident): Path<String>, call: Call) -> Reply {
    below_node::<R>(&call, &ident, true).await
}

async fn all<R: ResourceHandler>(call: &Call, detail: bool) -> Reply {
    R::SPEC.exists(call, 404)?;
    let wanted = wanted::<R>(call, detail)?;
    collection::<R>(call, ResourceFilter::all(R::SPEC.kind), &with_detail(R::SPEC.path, detail), wanted).await
}

async fn below_node<R: ResourceHandler>(call: &Call, ident: &str, detail: bool) -> Reply {
    R::SPEC.exists(call, 404)?;
    let wanted = wanted::<R>(call, detail)?;
    let node = call.node(ident).await?.uuid;
    let path = format!("nodes/{ident}/{}", R::SPEC.path);
    collection::<R>(call, ResourceFilter::of_node(R::SPEC.kind, node), &with_detail(&path, detail), wanted)
        .await
}

/// The path of a list, or of the same list with all fields.
pub fn with_detail(path: &str, detail: bool) -> String {
    if detail { format!("{path}/detail") } else { path.to_owned() }
}

/// `GET /v1/…/{ident}[?fields=a,b]`.
pub async fn show<R: ResourceHandler>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SPEC.exists(&call, 404)?;
    call.args.only(&["fields"])?;
    let wanted = fields_asked::<R>(&call)?;
    let resource = R::SPEC.find(&call, &ident).await?;
    Ok(json(200, &view::view::<R>(&call, &resource, wanted.as_deref())))
}

/// The fields that the client wants to see, if it says so.
pub fn fields_asked<R: ResourceHandler>(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    shown::fields(call, |wanted| view::check_wanted::<R>(call, wanted))
}

/// The fields that a list shows; none: all.
pub fn wanted<R: ResourceHandler>(call: &Call, detail: bool) -> Result<Option<Vec<String>>, ApiError> {
    if detail {
        return shown::all(call);
    }
    shown::in_list(call, R::SPEC.detail, R::SPEC.short, |wanted| view::check_wanted::<R>(call, wanted))
}

/// The page that the query asks for of those that pass `filter`.
pub async fn collection<R: ResourceHandler>(
    call: &Call,
    filter: ResourceFilter,
    path: &str,
    wanted: Option<Vec<String>>,
) -> Reply {
    let spec = &R::SPEC;
    let mut known = page::ARGS.to_vec();
    known.push("fields");
    known.extend(spec.detail.map(|_| "detail"));
    known.extend(spec.filters.iter().map(|(name, _)| *name));
    call.args.only(&known)?;
    for (name, since) in spec.filters {
        if call.args.text(name).is_some() {
            call.version.needs_for_filter(*since)?;
        }
    }
    let page = Page::from_args(&call.args, call.app.settings.max_limit)?;
    if page.sort_key != "id" {
        let known = spec.field(&page.sort_key);
        let field = known.filter(|field| field.sortable).ok_or_else(|| page.bad_key(known.is_some()))?;
        call.version.needs(field.since)?;
    }
    let marker = match page.marker() {
        None => None,
        Some(marker) => Some(call.app.store.resource(spec.kind, &marker.to_string()).await?),
    };
    let ResourcePage { resources: found, more } = match R::narrowed(call, filter).await? {
        None => ResourcePage::default(),
        Some(filter) => page_of(call, spec, &page, filter, marker).await?,
    };
    let shown = found.iter().map(|resource| view::view::<R>(call, resource, wanted.as_deref()).to_string());
    let last = found.last().filter(|_| more);
    let next = last.map(|last| page.next(&call.links, path, &call.args, last.uuid));
    Ok(json_text(200, list_body(spec.list, shown, next)))
}

/// The page after `marker`.
async fn page_of(
    call: &Call,
    spec: &ResourceSpec,
    page: &Page,
    filter: ResourceFilter,
    marker: Option<Resource>,
) -> Result<ResourcePage, ApiError> {
    let sort = match page.sort_key.as_str() {
        "id" => None,
        key => match ResourceField::named(key) {
            Some(field) => Some(field),
            None => return scan::page(call, spec, page, filter, marker).await,
        },
    };
    let query = ResourceQuery {
        filter,
        sort,
        descending: page.descending,
        after: marker.map(|marker| Place::of_resource(&marker, sort)),
        limit: page.limit,
        time_limit: call.app.settings.list_time_limit,
    };
    Ok(call.app.store.resource_page(query).await?)
}
