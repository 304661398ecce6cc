//! The machine as Redfish's ComputerSystem (DSP0268, `ComputerSystem` v1.16).

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Bmc, error};
use crate::machine::Lasting;
use crate::node::Boot;

/// The system.
pub const PATH: &str = "/redfish/v1/Systems/1";
/// Its reset action.
pub const RESET_PATH: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

const RESET_TYPES: &[&str] = &[
    "On",
    "ForceOn",
    "ForceOff",
    "GracefulShutdown",
    "GracefulRestart",
    "ForceRestart",
    "PowerCycle",
    "PushPowerButton",
];

/// `GET Systems/1`.
pub async fn show(State(bmc): State<Bmc>) -> Json<Value> {
    Json(document(&bmc).await)
}

async fn document(bmc: &Bmc) -> Value {
    let spec = bmc.machine.spec();
    let uefi = spec.firmware.is_uefi();
    let (target, enabled) = match bmc.machine.boot_choice().await {
        None => ("None", "Disabled"),
        Some((boot, lasting)) => (
            match boot {
                Boot::Disks => "Hdd",
                Boot::Pxe => "Pxe",
                Boot::Http => "UefiHttp",
                Boot::Cd => bmc.media.quirks.boots_by().unwrap_or("Cd"),
            },
            match lasting {
                Lasting::Once => "Once",
                Lasting::Always => "Continuous",
            },
        ),
    };
    let targets: &[&str] = if uefi { &["None", "Pxe", "Hdd", "UefiHttp"] } else { &["None", "Pxe", "Hdd"] };
    let targets = [targets, bmc.media.quirks.sources].concat();
    let mut document = json!({
        "@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem",
        "@odata.id": PATH,
        "Id": "1",
        "Name": spec.name,
        "SystemType": "Physical",
        "Manufacturer": "QEMU",
        "Model": "q35",
        "PowerState": if bmc.machine.is_on().await { "On" } else { "Off" },
        "Status": {"State": "Enabled", "Health": "OK"},
        "MemorySummary": {"TotalSystemMemoryGiB": f64::from(spec.memory_mib) / 1024.0},
        "Boot": {
            "BootSourceOverrideTarget": target,
            "BootSourceOverrideEnabled": enabled,
            "BootSourceOverrideMode": if uefi { "UEFI" } else { "Legacy" },
            "BootSourceOverrideTarget@Redfish.AllowableValues": targets,
            "BootOrder": bmc.machine.bios().await.order(),
        },
        "Bios": {"@odata.id": super::bios::PATH},
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": RESET_PATH,
                "ResetType@Redfish.AllowableValues": RESET_TYPES,
            },
        },
        "Links": {"ManagedBy": [{"@odata.id": "/redfish/v1/Managers/1"}]},
    });
    if uefi && !bmc.media.quirks.lacks_url {
        document["Boot"]["HttpBootUri"] = json!(bmc.machine.http_url().await.unwrap_or_default());
    }
    if spec.secure_boot.is_some() {
        document["SecureBoot"] = json!({"@odata.id": super::secure_boot::PATH});
    }
    if let Some(collection) = bmc.media.quirks.collection_of_system() {
        document["VirtualMedia"] = json!({"@odata.id": collection});
    }
    document
}

/// `PATCH Systems/1`: the boot override and the boot order, and nothing else.
pub async fn patch(State(bmc): State<Bmc>, body: Bytes) -> Response {
    let Ok(Value::Object(patch)) = serde_json::from_slice(&body) else {
        return error(StatusCode::BAD_REQUEST, "MalformedJSON", "the body is no JSON object");
    };
    if let Some(key) = patch.keys().find(|key| *key != "Boot") {
        let message = format!("{key} is not writable");
        return error(StatusCode::BAD_REQUEST, "PropertyNotWritable", &message);
    }
    let boot = patch.get("Boot").cloned().unwrap_or_default();
    if let Some(order) = boot["BootOrder"].as_array() {
        let names: Vec<&str> = order.iter().map(|name| name.as_str().unwrap_or_default()).collect();
        if let Err(cause) = bmc.machine.change_bios(|bios| bios.set_order(&names)).await {
            return error(
                StatusCode::BAD_REQUEST,
                "PropertyValueNotInList",
                &format!("BootOrder: {cause:#}"),
            );
        }
    }
    let uefi = bmc.machine.spec().firmware.is_uefi();
    if let Some(url) = boot.get("HttpBootUri").filter(|_| uefi && !bmc.media.quirks.forgets_urls) {
        bmc.machine.set_http_url(url.as_str().filter(|url| !url.is_empty()).map(str::to_owned)).await;
    }
    let present = bmc.machine.boot_choice().await;
    let choice = match choice(&boot, present, uefi, bmc.media.quirks.sources) {
        Ok(choice) => choice,
        Err(message) => {
            return error(StatusCode::BAD_REQUEST, "PropertyValueNotInList", &message);
        }
    };
    match bmc.machine.choose_boot(choice).await {
        Ok(()) => Json(document(&bmc).await).into_response(),
        Err(cause) => failed(&cause),
    }
}

/// The choice after a patch of `Boot`. Keys left out keep their values.
fn choice(
    boot: &Value,
    present: Option<(Boot, Lasting)>,
    uefi: bool,
    cds: &[&str],
) -> Result<Option<(Boot, Lasting)>, String> {
    let Some(boot) = boot.as_object() else { return Err("Boot is no object".to_owned()) };
    let mut target = present.map(|(boot, _)| boot);
    let mut lasting = present.map(|(_, lasting)| lasting);
    for (key, value) in boot {
        match (key.as_str(), value.as_str().unwrap_or_default()) {
            ("BootSourceOverrideTarget", "None") => target = None,
            ("BootSourceOverrideTarget", "Pxe") => target = Some(Boot::Pxe),
            ("BootSourceOverrideTarget", "Hdd") => target = Some(Boot::Disks),
            ("BootSourceOverrideTarget", "UefiHttp") if uefi => target = Some(Boot::Http),
            ("BootSourceOverrideTarget", cd) if cds.last() == Some(&cd) => target = Some(Boot::Cd),
            // A CD drive in the chassis, in which there is nothing.
            ("BootSourceOverrideTarget", cd) if cds.contains(&cd) => target = Some(Boot::Disks),
            ("BootSourceOverrideEnabled", "Disabled") => lasting = None,
            ("BootSourceOverrideEnabled", "Once") => lasting = Some(Lasting::Once),
            ("BootSourceOverrideEnabled", "Continuous") => lasting = Some(Lasting::Always),
            // The firmware is soldered on: only its own mode can be set.
            ("BootSourceOverrideMode", "UEFI") if uefi => {}
            ("BootSourceOverrideMode", "Legacy") if !uefi => {}
            ("BootOrder", _) if value.is_array() => {}
            ("HttpBootUri", _) if (value.is_string() || value.is_null()) && uefi => {}
            _ => return Err(format!("{key}: {value} is not allowed here")),
        }
    }
    // A target alone counts once (DSP0268: `BootSourceOverrideEnabled` of such a patch is `Once`
    // with most makers).
    if boot.contains_key("BootSourceOverrideTarget")
        && !boot.contains_key("BootSourceOverrideEnabled")
        && lasting.is_none()
    {
        lasting = Some(Lasting::Once);
    }
    Ok(target.zip(lasting))
}

/// `POST ComputerSystem.Reset`.
pub async fn reset(State(bmc): State<Bmc>, body: Bytes) -> Response {
    let body: Value = match serde_json::from_slice(&body) {
        Ok(body) => body,
        Err(_) => {
            return error(StatusCode::BAD_REQUEST, "MalformedJSON", "the body is no JSON");
        }
    };
    let kind = body["ResetType"].as_str().unwrap_or_default();
    let machine = &bmc.machine;
    let on = machine.is_on().await;
    let done = match kind {
        "On" | "ForceOn" => machine.power_on().await,
        "ForceOff" => machine.power_off().await,
        "GracefulShutdown" if on => machine.press_power_button().await,
        "GracefulRestart" | "ForceRestart" if on => machine.reset().await,
        "PushPowerButton" if on => machine.press_power_button().await,
        "PushPowerButton" => machine.power_on().await,
        "PowerCycle" if on => match machine.power_off().await {
            Ok(()) => machine.power_on().await,
            Err(cause) => Err(cause),
        },
        // Real BMCs answer 409 to these while the machine is off.
        "GracefulShutdown" | "GracefulRestart" | "ForceRestart" | "PowerCycle" => {
            let message = format!("{kind}: the system is off");
            return error(StatusCode::CONFLICT, "ActionNotSupported", &message);
        }
        other => {
            let message = format!("ResetType {other:?} is not in the list of allowed values");
            return error(StatusCode::BAD_REQUEST, "ActionParameterValueNotInList", &message);
        }
    };
    match done {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(cause) => failed(&cause),
    }
}

fn failed(cause: &anyhow::Error) -> Response {
    tracing::error!("BMC: {cause:#}");
    error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &format!("{cause:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_of_the_boot_override() {
        let both = json!({"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"});
        assert_eq!(choice(&both, None, false, &[]), Ok(Some((Boot::Pxe, Lasting::Once))));
        let target = json!({"BootSourceOverrideTarget": "Pxe"});
        assert_eq!(choice(&target, None, false, &[]), Ok(Some((Boot::Pxe, Lasting::Once))));
        let always = Some((Boot::Pxe, Lasting::Always));
        let disk = json!({"BootSourceOverrideTarget": "Hdd"});
        assert_eq!(choice(&disk, always, true, &[]), Ok(Some((Boot::Disks, Lasting::Always))));
        let off = json!({"BootSourceOverrideEnabled": "Disabled"});
        assert_eq!(choice(&off, always, true, &[]), Ok(None));
    }

    #[test]
    fn what_the_machine_cannot_do_is_refused_by_name() {
        let http = json!({"BootSourceOverrideTarget": "UefiHttp"});
        assert!(choice(&http, None, false, &[]).unwrap_err().contains("BootSourceOverrideTarget"));
        assert_eq!(choice(&json!({"BootOrder": ["Boot0002", "Boot0001"]}), None, false, &[]), Ok(None));
        let mode = json!({"BootSourceOverrideMode": "UEFI"});
        assert!(choice(&mode, None, false, &[]).is_err());
        assert!(choice(&json!("Pxe"), None, true, &[]).is_err());
    }
}
