//! Lists of templates, and one template.

use super::{find, refused, since, view};
use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use crate::page::{self, Page};
use axum::extract::Path;
use serde_json::{Value, json};

/// `GET /v1/deploy_templates[?detail=true|fields=a,b]`.
pub async fn list(call: Call) -> Reply {
    since(&call, 404)?;
    let mut known = page::ARGS.to_vec();
    known.extend(["detail", "fields"]);
    call.args.only(&known)?;
    let detail = call.args.boolean("detail")?.unwrap_or(false);
    let wanted = call.args.list("fields");
    view::check_wanted(wanted.as_deref().unwrap_or_default())?;
    let wanted = match (wanted, detail) {
        (Some(_), true) => {
            return Err(ApiError::invalid("Can not specify ?detail=True and fields in the same request."));
        }
        (None, true) => None,
        (wanted, false) => Some(wanted.unwrap_or_else(|| vec!["uuid".to_owned(), "name".to_owned()])),
    };
    let page = Page::from_args(&call.args, call.app.settings.max_limit)?;
    if page.sort_key != "id" {
        let known = view::FIELDS.contains(&page.sort_key.as_str());
        if !known || view::UNSORTABLE.contains(&page.sort_key.as_str()) {
            return Err(page.bad_key(known));
        }
    }
    if let Some(marker) = page.marker() {
        call.app.store.template(&marker.to_string()).await.map_err(refused)?;
    }
    let found = call.app.store.templates().await?;
    let key = [page.sort_key.clone()];
    let (found, more) = page.cut(
        found,
        |template| template.uuid,
        |template| {
            let shown = view::view(template, &call.links, Some(&key));
            shown.get(&page.sort_key).cloned().unwrap_or(Value::Null)
        },
    );
    let shown: Vec<_> =
        found.iter().map(|template| view::view(template, &call.links, wanted.as_deref())).collect();
    let mut body = json!({"deploy_templates": shown});
    if let Some(last) = found.last().filter(|_| more) {
        body["next"] = page.next(&call.links, "deploy_templates", &call.args, last.uuid).into();
    }
    Ok(json(200, &body))
}

/// `GET /v1/deploy_templates/{ident}[?fields=a,b]`.
pub async fn show(Path(ident): Path<String>, call: Call) -> Reply {
    since(&call, 404)?;
    call.args.only(&["fields"])?;
    let wanted = call.args.list("fields");
    view::check_wanted(wanted.as_deref().unwrap_or_default())?;
    let template = find(&call, &ident).await?;
    Ok(json(200, &view::view(&template, &call.links, wanted.as_deref())))
}
