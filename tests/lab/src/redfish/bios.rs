//! The firmware's settings as Redfish's Bios (DSP0268, `Bios` v1.2) with its settings object (DSP0266, "Settings
//! resource"): a PATCH there is taken into force by the next boot.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::{Bmc, error};

/// The settings in force.
pub const PATH: &str = "/redfish/v1/Systems/1/Bios";
/// Those for the next boot.
pub const SETTINGS: &str = "/redfish/v1/Systems/1/Bios/Settings";
/// Action: those of the factory for the next boot.
pub const RESET: &str = "/redfish/v1/Systems/1/Bios/Actions/Bios.ResetBios";

fn document(path: &str, attributes: &Map<String, Value>) -> Value {
    json!({
        "@odata.type": "#Bios.v1_2_0.Bios",
        "@odata.id": path,
        "Id": "BIOS",
        "Name": "BIOS settings",
        "Attributes": attributes,
    })
}

/// `GET Bios`.
pub async fn show(State(bmc): State<Bmc>) -> Response {
    if let Some(status) = bmc.media.quirks.bios_refused[0] {
        return refused(status);
    }
    let mut document = document(PATH, &bmc.machine.bios().await.attributes);
    document["@Redfish.Settings"] = json!({
        "@odata.type": "#Settings.v1_3_0.Settings",
        "SettingsObject": {"@odata.id": SETTINGS},
        "SupportedApplyTimes": ["OnReset"],
    });
    document["Actions"] = json!({"#Bios.ResetBios": {"target": RESET}});
    Json(document).into_response()
}

fn refused(status: StatusCode) -> Response {
    error(status, "GeneralError", "BIOS settings are not shown")
}

/// `GET Bios/Settings`.
pub async fn pending(State(bmc): State<Bmc>) -> Response {
    if let Some(status) = bmc.media.quirks.bios_refused[1] {
        return refused(status);
    }
    Json(document(SETTINGS, &bmc.machine.bios().await.pending)).into_response()
}

/// `PATCH Bios/Settings`.
pub async fn patch(State(bmc): State<Bmc>, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(attributes) = body["Attributes"].as_object() else {
        return error(StatusCode::BAD_REQUEST, "PropertyMissing", "Attributes is missing");
    };
    match bmc.machine.change_bios(|bios| bios.set(attributes)).await {
        Ok(()) => pending(State(bmc)).await,
        Err(cause) => error(StatusCode::BAD_REQUEST, "PropertyUnknown", &format!("{cause:#}")),
    }
}

/// `POST Bios.ResetBios`.
pub async fn reset(State(bmc): State<Bmc>) -> StatusCode {
    bmc.machine.change_bios(crate::bios::Bios::reset).await;
    StatusCode::NO_CONTENT
}
