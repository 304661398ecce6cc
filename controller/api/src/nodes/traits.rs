//! `/v1/nodes/{ident}/traits`: names that schedulers match nodes by.

use crate::call::{Call, empty, json};
use crate::error::{ApiError, Reply};
use crate::{schema, traits, write};
use axum::extract::Path;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Ironic's answer to a request that is neither of the two.
const ONE_OR_ALL: &str = "A single node trait may be added via PUT /v1/nodes/<node identifier>/traits/<trait> \
                          with no body, or all node traits may be replaced via PUT /v1/nodes/<node \
                          identifier>/traits with the list of traits specified in the request body.";

/// `GET …/traits`.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.needs(37)?;
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    Ok(json(200, &json!({"traits": node.traits})))
}

/// `PUT …/traits {"traits": [...]}`: replace all.
pub async fn replace(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has(37).then_some(()).ok_or_else(no_method)?;
    call.args.only(&[])?;
    let given = body(&call)?.ok_or_else(|| ApiError::invalid(ONE_OR_ALL))?;
    change(&call, &ident, |_| Ok(given.clone())).await?;
    Ok(empty(204, None))
}

/// `PUT …/traits/{trait}`: one more.
pub async fn add(Path((ident, name)): Path<(String, String)>, call: Call) -> Reply {
    call.version.has(37).then_some(()).ok_or_else(no_method)?;
    call.args.only(&[])?;
    traits::name("trait", &Value::String(name.clone()))?;
    if body(&call)?.is_some() {
        return Err(ApiError::invalid(ONE_OR_ALL));
    }
    change(&call, &ident, |old| {
        let mut new = old.clone();
        new.insert(name.clone());
        Ok(new)
    })
    .await?;
    Ok(empty(204, Some(&call.links.v1(&format!("nodes/{ident}/traits/{name}")))))
}

/// `DELETE …/traits`: all of them.
pub async fn clear(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has(37).then_some(()).ok_or_else(ApiError::not_found)?;
    call.args.only(&[])?;
    change(&call, &ident, |_| Ok(BTreeSet::new())).await?;
    Ok(empty(204, None))
}

/// `DELETE …/traits/{trait}`.
pub async fn remove(Path((ident, name)): Path<(String, String)>, call: Call) -> Reply {
    call.version.has(37).then_some(()).ok_or_else(ApiError::not_found)?;
    call.args.only(&[])?;
    let uuid = call.node(&ident).await?.uuid;
    change(&call, &ident, |old| {
        let mut new = old.clone();
        if new.remove(&name) {
            return Ok(new);
        }
        Err(ApiError::client(404, format!("Node {uuid} doesn't have a trait '{name}'")))
    })
    .await?;
    Ok(empty(204, None))
}

fn no_method() -> ApiError {
    ApiError::plain(405, "")
}

/// The traits of the body, if it has any.
fn body(call: &Call) -> Result<Option<BTreeSet<String>>, ApiError> {
    let given = schema::object("body", call.json()?)?;
    let unknown: Vec<_> = given.keys().map(String::as_str).filter(|name| *name != "traits").collect();
    schema::no_others("body", &unknown)?;
    let items = match given.get("traits") {
        None => return Ok(None),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(schema::wrong_type("body", other, "'array'")),
    };
    items.iter().map(|item| traits::name("body", item).map(str::to_owned)).collect::<Result<_, _>>().map(Some)
}

/// Ironic changes traits under the node's lock; so a node that a conductor works on keeps them.
async fn change(
    call: &Call,
    ident: &str,
    decide: impl Fn(&BTreeSet<String>) -> Result<BTreeSet<String>, ApiError> + Send + Sync,
) -> Result<(), ApiError> {
    write::change_unlocked(call, ident, |old| {
        let mut new = old.clone();
        new.traits = decide(&old.traits)?;
        if new.traits.len() > traits::MOST {
            return Err(ApiError::invalid(format!(
                "Could not modify traits for node {} as it would exceed the maximum number of traits per node \
                 ({} vs. {})",
                old.uuid,
                new.traits.len(),
                traits::MOST
            )));
        }
        Ok((new, Vec::new()))
    })
    .await
    .map(drop)
}
