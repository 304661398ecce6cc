//! The BMCs: Redfish (DMTF DSP0266, DSP0268) with one system each, distinguished by the address that a client connected to.

use crate::journal::{What, now};
use crate::machine::{BootSetting, Machine};
use crate::medium;
use anyhow::Result;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// The only system of a BMC.
pub const SYSTEM: &str = "/redfish/v1/Systems/1";
/// User and password of every BMC.
pub const USER: (&str, &str) = ("fleet", "fleet");

const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
/// `Basic` and [`USER`] in base64.
const AUTHORIZATION: &str = "Basic ZmxlZXQ6ZmxlZXQ=";
const RESETS: [&str; 4] = ["On", "ForceOff", "GracefulShutdown", "ForceRestart"];
const TARGETS: [&str; 4] = ["None", "Pxe", "Hdd", "Cd"];
const ENABLED: [&str; 3] = ["Disabled", "Once", "Continuous"];

/// Status and body of an answer.
pub type Reply = (StatusCode, Value);

/// Serves one connection to its end.
///
/// # Errors
/// When it breaks.
pub async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    machine: Arc<Machine>,
    from: IpAddr,
) -> Result<()> {
    stream.set_nodelay(true)?;
    match tls {
        Some(tls) => serve(tls.accept(stream).await?, &machine, from).await,
        None => serve(stream, &machine, from).await,
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    machine: &Arc<Machine>,
    from: IpAddr,
) -> Result<()> {
    let service = service_fn(|request| answer(machine, from, request));
    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

async fn answer(
    machine: &Arc<Machine>,
    from: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let at = now();
    let (head, body) = request.into_parts();
    let body = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or(Value::Null);
    let (method, path) = (&head.method, head.uri.path());
    let behaviour = &machine.behaviour().bmc;
    let fails = machine.chance().happens(behaviour.error_rate, "error", machine.turn());
    // It acts when the request has arrived: a slow BMC answers late what it has done.
    let (status, reply) = match fails {
        true => refuse(StatusCode::SERVICE_UNAVAILABLE, "GeneralError"),
        false if !may(path, &head.headers) => refuse(StatusCode::UNAUTHORIZED, "NoValidSession"),
        false => act(machine, method, path, &body),
    };
    let user_agent = head.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let (user_agent, call) = (user_agent.map(str::to_owned), describe(method, path, &body));
    machine.shared.journal.note(
        at,
        machine.number,
        What::Bmc { from, user_agent, call, status: status.as_u16() },
    );
    tokio::time::sleep(machine.chance().time(behaviour.delay_ms, "bmc", machine.turn())).await;
    let text = if reply.is_null() { String::new() } else { reply.to_string() };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// A call as the journal has it.
fn describe(method: &Method, path: &str, body: &Value) -> String {
    match (body["ResetType"].as_str(), &body["Boot"]) {
        (Some(kind), _) => format!("{method} {kind}"),
        (None, boot) if boot.is_object() => format!("{method} {}", boot["BootSourceOverrideTarget"]),
        _ => format!("{method} {path}"),
    }
}

/// DSP0266: the service root is open to all.
fn may(path: &str, headers: &HeaderMap) -> bool {
    path.trim_end_matches('/') == "/redfish/v1"
        || headers.get(header::AUTHORIZATION).is_some_and(|value| value == AUTHORIZATION)
}

fn act(machine: &Arc<Machine>, method: &Method, path: &str, body: &Value) -> Reply {
    match (method.as_str(), path) {
        ("GET", "/redfish/v1" | "/redfish/v1/") => {
            let link = |path: &str| json!({ "@odata.id": path });
            let root = json!({ "@odata.id": "/redfish/v1/", "RedfishVersion": "1.11.0", "Systems": link("/redfish/v1/Systems") });
            (StatusCode::OK, root)
        }
        ("GET", "/redfish/v1/Systems") => (StatusCode::OK, json!({ "Members": [{ "@odata.id": SYSTEM }] })),
        ("GET", SYSTEM) => (StatusCode::OK, system(machine)),
        ("PATCH", SYSTEM) => match patched(&machine.boot_setting(), &body["Boot"]) {
            Some(setting) => {
                machine.set_boot(setting);
                (StatusCode::NO_CONTENT, Value::Null)
            }
            None => refuse(StatusCode::BAD_REQUEST, "PropertyValueNotInList"),
        },
        ("POST", RESET) => reset(machine, body["ResetType"].as_str().unwrap_or_default()),
        (_, path) if path.starts_with(medium::DRIVES) => medium::act(machine, method, path, body),
        _ => refuse(StatusCode::NOT_FOUND, "ResourceMissingAtURI"),
    }
}

fn system(machine: &Machine) -> Value {
    let setting = machine.boot_setting();
    json!({
        "@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem",
        "@odata.id": SYSTEM,
        "Id": "1",
        "Name": format!("fleet {}", machine.number),
        "UUID": crate::network::uuid(machine.number),
        "Manufacturer": "Anneal",
        "Model": "fleet",
        "SerialNumber": machine.mac.replace(':', ""),
        "PowerState": if machine.is_on() { "On" } else { "Off" },
        "Status": { "State": "Enabled", "Health": "OK" },
        "Boot": {
            "BootSourceOverrideTarget": setting.target,
            "BootSourceOverrideEnabled": setting.enabled,
            "BootSourceOverrideMode": "UEFI",
            "BootSourceOverrideTarget@Redfish.AllowableValues": TARGETS,
        },
        "VirtualMedia": { "@odata.id": medium::DRIVES },
        "Actions": { "#ComputerSystem.Reset": {
            "target": RESET,
            "ResetType@Redfish.AllowableValues": RESETS,
        } },
    })
}

/// The setting after a patch of `Boot`, whose keys that are left out keep their values; `None`: it cannot be.
fn patched(before: &BootSetting, boot: &Value) -> Option<BootSetting> {
    let one_of = |key: &str, known: &[&str], before: &str| match boot.get(key) {
        None => Some(before.to_owned()),
        Some(value) => value.as_str().filter(|value| known.contains(value)).map(str::to_owned),
    };
    let target = one_of("BootSourceOverrideTarget", &TARGETS, &before.target)?;
    let enabled = one_of("BootSourceOverrideEnabled", &ENABLED, &before.enabled)?;
    boot.is_object().then_some(BootSetting { target, enabled })
}

fn reset(machine: &Arc<Machine>, kind: &str) -> Reply {
    match kind {
        "On" => machine.switch(true),
        "ForceOff" | "GracefulShutdown" => machine.switch(false),
        "ForceRestart" if machine.is_on() => {
            machine.switch(false);
            machine.switch(true);
        }
        // Real BMCs answer 409 to it while the machine is off.
        "ForceRestart" => return refuse(StatusCode::CONFLICT, "ActionNotSupported"),
        _ => return refuse(StatusCode::BAD_REQUEST, "ActionParameterValueNotInList"),
    }
    (StatusCode::NO_CONTENT, Value::Null)
}

/// An error in the form of DSP0266.
pub fn refuse(status: StatusCode, key: &str) -> Reply {
    (status, json!({ "error": { "code": format!("Base.1.8.{key}"), "message": key } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_what_it_names() {
        let before = BootSetting { target: "Pxe".into(), enabled: "Once".into() };
        let boot = json!({ "BootSourceOverrideTarget": "Hdd" });
        assert_eq!(patched(&before, &boot), Some(BootSetting { target: "Hdd".into(), ..before.clone() }));
        for bad in [
            json!({ "BootSourceOverrideTarget": "Moon" }),
            json!({ "BootSourceOverrideEnabled": 1 }),
            json!(1),
        ] {
            assert_eq!(patched(&before, &bad), None, "{bad}");
        }
    }

    #[test]
    fn a_call_is_noted_by_what_it_asks_for() {
        let say = |method: Method, body: Value| describe(&method, RESET, &body);
        assert_eq!(say(Method::POST, json!({ "ResetType": "On" })), "POST On");
        assert_eq!(
            say(Method::PATCH, json!({ "Boot": { "BootSourceOverrideTarget": "Pxe" } })),
            "PATCH \"Pxe\""
        );
        assert_eq!(say(Method::GET, Value::Null), format!("GET {RESET}"));
    }
}
