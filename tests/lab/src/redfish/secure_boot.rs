//! Secure Boot of the firmware and its keys (DSP0268: `SecureBoot` v1.1, `SecureBootDatabase` v1.0, `Certificate` v1.5). What is changed
//! counts from the next power-on.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::{Bmc, collection, error};
use crate::key_lists::{DATABASES, KeyLists};
use crate::tls::{der_of, pem};

/// The resource.
pub const PATH: &str = "/redfish/v1/Systems/1/SecureBoot";
const RESET: &str = "/redfish/v1/Systems/1/SecureBoot/Actions/SecureBoot.ResetKeys";
const LISTS: &str = "/redfish/v1/Systems/1/SecureBoot/SecureBootDatabases";

/// Its routes, for a machine that has Secure Boot.
pub(super) fn routes() -> Router<Bmc> {
    Router::new()
        .route(PATH, get(show).patch(patch))
        .route(RESET, post(reset))
        .route(LISTS, get(databases))
        .route(&format!("{LISTS}/{{name}}"), get(database))
        .route(&format!("{LISTS}/{{name}}/Certificates"), get(certificates).post(add))
        .route(&format!("{LISTS}/{{name}}/Certificates/{{id}}"), get(certificate))
}

/// An error of the service: its status, its message's key, and its text.
struct Refused(StatusCode, &'static str, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        error(self.0, self.1, &self.2)
    }
}

async fn keys(bmc: &Bmc) -> Result<KeyLists, Refused> {
    bmc.machine.key_lists().await.map_err(|cause| failed(&cause))
}

fn failed(cause: &anyhow::Error) -> Refused {
    tracing::error!("BMC: {cause:#}");
    Refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", format!("{cause:#}"))
}

fn bad(key: &'static str, message: impl Into<String>) -> Refused {
    Refused(StatusCode::BAD_REQUEST, key, message.into())
}

fn missing() -> Refused {
    Refused(StatusCode::NOT_FOUND, "ResourceMissingAtURI", "no such resource".to_owned())
}

async fn show(State(bmc): State<Bmc>) -> Result<Json<Value>, Refused> {
    let keys = keys(&bmc).await?;
    Ok(Json(json!({
        "@odata.type": "#SecureBoot.v1_1_0.SecureBoot",
        "@odata.id": PATH,
        "Id": "SecureBoot",
        "Name": "UEFI Secure Boot",
        "SecureBootEnable": keys.is_on(),
        "SecureBootMode": if keys.has_platform_key() { "UserMode" } else { "SetupMode" },
        "SecureBootDatabases": {"@odata.id": LISTS},
        "Actions": {"#SecureBoot.ResetKeys": {
            "target": RESET,
            "ResetKeysType@Redfish.AllowableValues": ["ResetAllKeysToDefault", "DeleteAllKeys"],
        }},
    })))
}

async fn patch(State(bmc): State<Bmc>, body: Bytes) -> Result<Json<Value>, Refused> {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let on = body["SecureBootEnable"].as_bool();
    let on = on.ok_or_else(|| bad("PropertyMissing", "SecureBootEnable is missing"))?;
    let switched = bmc.machine.change_key_lists(|keys| keys.switch(on)).await;
    switched.map_err(|cause| Refused(StatusCode::CONFLICT, "ResourceInUse", format!("{cause:#}")))?;
    show(State(bmc)).await
}

async fn reset(State(bmc): State<Bmc>, body: Bytes) -> Result<StatusCode, Refused> {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let change: fn(&mut KeyLists) -> anyhow::Result<()> = match body["ResetKeysType"].as_str() {
        Some("ResetAllKeysToDefault") => KeyLists::restore_factory,
        Some("DeleteAllKeys") => |keys| {
            keys.clear();
            Ok(())
        },
        other => {
            let message = format!("ResetKeysType {other:?} is not in the list of allowed values");
            return Err(bad("ActionParameterValueNotInList", message));
        }
    };
    bmc.machine.change_key_lists(change).await.map_err(|cause| failed(&cause))?;
    Ok(StatusCode::NO_CONTENT)
}

async fn databases() -> Json<Value> {
    let paths = DATABASES.map(|name| format!("{LISTS}/{name}"));
    collection(LISTS, "SecureBootDatabase", &paths.each_ref().map(String::as_str))
}

/// The name of a list that there is.
fn known(name: String) -> Result<String, Refused> {
    if DATABASES.contains(&name.as_str()) { Ok(name) } else { Err(missing()) }
}

async fn database(Path(name): Path<String>) -> Result<Json<Value>, Refused> {
    let name = known(name)?;
    Ok(Json(json!({
        "@odata.type": "#SecureBootDatabase.v1_0_1.SecureBootDatabase",
        "@odata.id": format!("{LISTS}/{name}"),
        "Id": name,
        "Name": format!("Secure Boot database {name}"),
        "DatabaseId": name,
        "Certificates": {"@odata.id": format!("{LISTS}/{name}/Certificates")},
    })))
}

async fn certificates(State(bmc): State<Bmc>, Path(name): Path<String>) -> Result<Json<Value>, Refused> {
    let name = known(name)?;
    let path = format!("{LISTS}/{name}/Certificates");
    let count = keys(&bmc).await?.certificates(&name).len();
    let members: Vec<String> = (0..count).map(|place| format!("{path}/{place}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    Ok(collection(&path, "Certificate", &members))
}

fn document(name: &str, place: usize, der: &[u8]) -> Json<Value> {
    Json(json!({
        "@odata.type": "#Certificate.v1_5_0.Certificate",
        "@odata.id": format!("{LISTS}/{name}/Certificates/{place}"),
        "Id": place.to_string(),
        "Name": format!("Certificate {place} of {name}"),
        "CertificateString": pem(der),
        "CertificateType": "PEM",
    }))
}

async fn certificate(
    State(bmc): State<Bmc>,
    Path((name, place)): Path<(String, String)>,
) -> Result<Json<Value>, Refused> {
    let all = keys(&bmc).await?.certificates(&name);
    let place: usize = place.parse().map_err(|_| missing())?;
    let der = all.get(place).ok_or_else(missing)?;
    Ok(document(&name, place, der))
}

async fn add(
    State(bmc): State<Bmc>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<impl IntoResponse, Refused> {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if body["CertificateType"] != "PEM" {
        return Err(bad("PropertyValueNotInList", "CertificateType can only be PEM"));
    }
    let text = body["CertificateString"].as_str();
    let text = text.ok_or_else(|| bad("PropertyMissing", "CertificateString is missing"))?;
    let der = der_of(text).map_err(|_| bad("PropertyValueFormatError", "CertificateString is no PEM"))?;
    let mut place = 0;
    let added = |keys: &mut KeyLists| {
        place = keys.add(&name, &der)?;
        Ok(())
    };
    let added = bmc.machine.change_key_lists(added).await;
    added.map_err(|cause| bad("ResourceAlreadyExists", format!("{cause:#}")))?;
    let location = format!("{LISTS}/{name}/Certificates/{place}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], document(&name, place, &der)))
}
