//! Lists of a resource, and one of it.

use super::resource::ResourceHandler;
use super::view;
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::page::{self, Page};
use axum::extract::Path;
use model::Resource;
use serde_json::json;
use uuid::Uuid;

/// `GET /v1/…`.
pub async fn list<R: ResourceHandler>(call: Call) -> Reply {
    R::SPEC.exists(&call, 404)?;
    let wanted = wanted::<R>(&call)?;
    collection::<R>(&call, None, R::SPEC.path, wanted).await
}

/// `GET /v1/…/detail`.
pub async fn detail<R: ResourceHandler>(call: Call) -> Reply {
    R::SPEC.exists(&call, 404)?;
    no_fields(&call)?;
    collection::<R>(&call, None, &format!("{}/detail", R::SPEC.path), None).await
}

/// `GET /v1/nodes/{ident}/…`.
pub async fn of_node<R: ResourceHandler>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SPEC.exists(&call, 404)?;
    let wanted = wanted::<R>(&call)?;
    let node = call.node(&ident).await?.uuid;
    collection::<R>(&call, Some(node), &format!("nodes/{ident}/{}", R::SPEC.path), wanted).await
}

/// `GET /v1/nodes/{ident}/…/detail`.
pub async fn of_node_detail<R: ResourceHandler>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SPEC.exists(&call, 404)?;
    no_fields(&call)?;
    let node = call.node(&ident).await?.uuid;
    collection::<R>(&call, Some(node), &format!("nodes/{ident}/{}/detail", R::SPEC.path), None).await
}

/// `GET /v1/…/{ident}[?fields=a,b]`.
pub async fn show<R: ResourceHandler>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SPEC.exists(&call, 404)?;
    call.args.only(&["fields"])?;
    let wanted = fields::<R>(&call)?;
    let resource = R::SPEC.find(&call, &ident).await?;
    Ok(json(200, &view::view::<R>(&call, &resource, wanted.as_deref())))
}

fn no_fields(call: &Call) -> Result<(), ApiError> {
    match call.args.text("fields") {
        Some(_) => Err(ApiError::invalid("Unexpected arguments: fields")),
        None => Ok(()),
    }
}

/// The fields asked for, checked.
pub fn fields<R: ResourceHandler>(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    let Some(wanted) = call.args.list("fields") else { return Ok(None) };
    call.version.needs(8)?;
    view::check_wanted::<R>(call, &wanted)?;
    Ok(Some(wanted))
}

/// The fields that a list shows; none: all.
fn wanted<R: ResourceHandler>(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    let detail = match R::SPEC.detail {
        Some(since) => {
            let detail = call.args.boolean("detail")?;
            if detail.is_some() && !call.version.has(since) {
                let detail = call.args.text("detail").unwrap_or_default();
                return Err(ApiError::invalid(format!("Invalid query parameter ?detail={detail} received.")));
            }
            detail.unwrap_or(false)
        }
        None => false,
    };
    match (fields::<R>(call)?, detail) {
        (Some(_), true) => {
            Err(ApiError::invalid("Can not specify ?detail=True and fields in the same request."))
        }
        (None, true) => Ok(None),
        (wanted, false) => {
            Ok(Some(wanted.unwrap_or_else(|| R::SPEC.short.iter().map(|name| (*name).to_owned()).collect())))
        }
    }
}

async fn collection<R: ResourceHandler>(
    call: &Call,
    node: Option<Uuid>,
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
    if let Some(marker) = page.marker() {
        call.app.store.resource(spec.kind, &marker.to_string()).await?;
    }
    let found = call.app.store.resources(spec.kind, node).await?;
    let found = R::filtered(call, found).await?;
    let key = |resource: &Resource| spec.read(resource, &page.sort_key);
    let (found, more) = page.cut(found, |resource| resource.uuid, key);
    let shown: Vec<_> =
        found.iter().map(|resource| view::view::<R>(call, resource, wanted.as_deref())).collect();
    let mut body = json!({spec.list: shown});
    if let Some(last) = found.last().filter(|_| more) {
        body["next"] = page.next(&call.links, path, &call.args, last.uuid).into();
    }
    Ok(json(200, &body))
}

/// The node that a query asks for: `node=name or UUID`.
pub async fn node_asked(call: &Call) -> Result<Option<Uuid>, ApiError> {
    match call.args.text("node") {
        None => Ok(None),
        Some(ident) => Ok(Some(call.node(ident).await?.uuid)),
    }
}
