//! What the protocol asks of every request and every answer (DSP0266, "Request headers", "Response headers", "Query parameters"),
//! and the OData documents that clients may read.

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::error;

const ODATA_VERSION: &str = "odata-version";
/// Longest document.
const LONGEST: usize = 1 << 20;
/// Where DMTF publishes the schemas.
const SCHEMAS: &str = "http://redfish.dmtf.org/schemas/v1";

/// Refuses what no resource of ours can do, and describes each answer.
pub(super) async fn speak(request: Request, next: Next) -> Response {
    let version = request.headers().get(ODATA_VERSION).map(HeaderValue::as_bytes);
    if version.is_some_and(|version| version != b"4.0") {
        let message = "OData-Version can only be 4.0";
        return finished(error(StatusCode::PRECONDITION_FAILED, "HeaderInvalid", message));
    }
    if let Some(parameter) = unsupported_parameter(request.uri().query().unwrap_or_default()) {
        let message = format!("the query parameter {parameter} is not supported");
        return finished(error(StatusCode::NOT_IMPLEMENTED, "QueryNotSupported", &message));
    }
    finished(described(next.run(request).await).await)
}

/// Parameters that begin with `$` are commands, any other is ignored.
fn unsupported_parameter(query: &str) -> Option<&str> {
    let mut names = query.split('&').filter_map(|pair| pair.split('=').next());
    names.find(|name| name.starts_with('$') || name.starts_with("%24"))
}

fn finished(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(ODATA_VERSION, HeaderValue::from_static("4.0"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// With a link to the schema of the resource.
async fn described(response: Response) -> Response {
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !is_json || !response.status().is_success() {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, LONGEST).await else {
        return error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "the resource is too long");
    };
    let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let link = schema(&document).map(|schema| format!("<{SCHEMAS}/{schema}.json>; rel=describedby"));
    if let Some(link) = link.and_then(|link| HeaderValue::from_str(&link).ok()) {
        head.headers.insert(header::LINK, link);
    }
    Response::from_parts(head, Body::from(bytes))
}

/// Name and version of the schema: `#Bios.v1_2_0.Bios` is `Bios.v1_2_0`, and a collection has no version.
fn schema(document: &Value) -> Option<String> {
    let kind = document["@odata.type"].as_str()?.strip_prefix('#')?;
    let (schema, name) = kind.rsplit_once('.')?;
    Some(if schema == name { name.to_owned() } else { schema.to_owned() })
}

/// `GET odata`: the service document.
pub(super) async fn odata() -> Json<Value> {
    let member = |name: &str| {
        let url = if name == "Service" { "/redfish/v1/".to_owned() } else { format!("/redfish/v1/{name}") };
        json!({"name": name, "kind": "Singleton", "url": url})
    };
    let names = ["Service", "Systems", "Managers", "Chassis", "SessionService", "AccountService"];
    Json(json!({"@odata.context": "/redfish/v1/$metadata", "value": names.map(member)}))
}

/// `GET $metadata`.
pub(super) async fn metadata() -> impl IntoResponse {
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <edmx:Edmx xmlns:edmx=\"http://docs.oasis-open.org/odata/ns/edmx\" Version=\"4.0\">\n\
         <edmx:Reference Uri=\"{SCHEMAS}/ServiceRoot_v1.xml\">\
         <edmx:Include Namespace=\"ServiceRoot\"/><edmx:Include Namespace=\"ServiceRoot.v1_9_0\"/></edmx:Reference>\n\
         <edmx:DataServices><Schema xmlns=\"http://docs.oasis-open.org/odata/ns/edm\" Namespace=\"Service\">\
         <EntityContainer Name=\"Service\" Extends=\"ServiceRoot.v1_9_0.ServiceContainer\"/></Schema></edmx:DataServices>\n\
         </edmx:Edmx>\n"
    );
    ([(header::CONTENT_TYPE, "application/xml")], document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_a_query_are_seen_and_schemas_are_named() {
        assert_eq!(unsupported_parameter("a=1&$expand=."), Some("$expand"));
        assert_eq!(unsupported_parameter("only&price=$5"), None);
        let schema = |kind: &str| schema(&json!({ "@odata.type": kind }));
        assert_eq!(schema("#Bios.v1_2_0.Bios").as_deref(), Some("Bios.v1_2_0"));
        assert_eq!(schema("#RoleCollection.RoleCollection").as_deref(), Some("RoleCollection"));
        assert_eq!(schema("Bios"), None);
    }
}
