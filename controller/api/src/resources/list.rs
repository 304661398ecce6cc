//! Lists of a resource, and one of it.

use super::{Rest, field, view};
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::page::{self, Page};
use axum::extract::Path;
use model::Resource;
use serde_json::json;
use uuid::Uuid;

/// `GET /v1/…`.
pub async fn list<R: Rest>(call: Call) -> Reply {
    R::SORT.exists(&call, 404)?;
    let wanted = wanted::<R>(&call)?;
    collection::<R>(&call, None, R::SORT.path, wanted).await
}

/// `GET /v1/…/detail`.
pub async fn detail<R: Rest>(call: Call) -> Reply {
    R::SORT.exists(&call, 404)?;
    no_fields(&call)?;
    collection::<R>(&call, None, &format!("{}/detail", R::SORT.path), None).await
}

/// `GET /v1/nodes/{ident}/…`.
pub async fn of_node<R: Rest>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SORT.exists(&call, 404)?;
    let wanted = wanted::<R>(&call)?;
    let node = call.node(&ident).await?.uuid;
    collection::<R>(&call, Some(node), &format!("nodes/{ident}/{}", R::SORT.path), wanted).await
}

/// `GET /v1/nodes/{ident}/…/detail`.
pub async fn of_node_detail<R: Rest>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SORT.exists(&call, 404)?;
    no_fields(&call)?;
    let node = call.node(&ident).await?.uuid;
    collection::<R>(&call, Some(node), &format!("nodes/{ident}/{}/detail", R::SORT.path), None).await
}

/// `GET /v1/…/{ident}[?fields=a,b]`.
pub async fn show<R: Rest>(Path(ident): Path<String>, call: Call) -> Reply {
    R::SORT.exists(&call, 404)?;
    call.args.only(&["fields"])?;
    let wanted = fields::<R>(&call)?;
    let resource = R::SORT.find(&call, &ident).await?;
    Ok(json(200, &view::view::<R>(&call, &resource, wanted.as_deref())))
}

fn no_fields(call: &Call) -> Result<(), ApiError> {
    match call.args.text("fields") {
        Some(_) => Err(ApiError::invalid("Unexpected arguments: fields")),
        None => Ok(()),
    }
}

/// The fields asked for, checked.
pub fn fields<R: Rest>(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    let Some(wanted) = call.args.list("fields") else { return Ok(None) };
    call.version.needs(8)?;
    view::check_wanted::<R>(call, &wanted)?;
    Ok(Some(wanted))
}

/// The fields that a list shows; none: all.
fn wanted<R: Rest>(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    let detail = match R::SORT.detail {
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
            Ok(Some(wanted.unwrap_or_else(|| R::SORT.short.iter().map(|name| (*name).to_owned()).collect())))
        }
    }
}

async fn collection<R: Rest>(
    call: &Call,
    node: Option<Uuid>,
    path: &str,
    wanted: Option<Vec<String>>,
) -> Reply {
    let sort = &R::SORT;
    let mut known = page::ARGS.to_vec();
    known.push("fields");
    known.extend(sort.detail.map(|_| "detail"));
    known.extend(sort.filters.iter().map(|(name, _)| *name));
    call.args.only(&known)?;
    for (name, since) in sort.filters {
        if call.args.text(name).is_some() {
            call.version.needs_for_filter(*since)?;
        }
    }
    let page = Page::from_args(&call.args, call.app.settings.max_limit)?;
    if page.sort_key != "id" {
        let known = sort.field(&page.sort_key);
        let field = known.filter(|field| field.sortable).ok_or_else(|| page.bad_key(known.is_some()))?;
        call.version.needs(field.since)?;
    }
    if let Some(marker) = page.marker() {
        call.app.store.resource(sort.kind, &marker.to_string()).await?;
    }
    let found = call.app.store.resources(sort.kind, node).await?;
    let found = R::filtered(call, found).await?;
    let key = |resource: &Resource| field::read(sort, resource, &page.sort_key);
    let (found, more) = page.cut(found, |resource| resource.uuid, key);
    let shown: Vec<_> =
        found.iter().map(|resource| view::view::<R>(call, resource, wanted.as_deref())).collect();
    let mut body = json!({sort.list: shown});
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
