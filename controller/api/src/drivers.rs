//! `/v1/drivers`.

use crate::call::{Call, json};
use crate::driver_queries::{DriverDescription, INTERFACES};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::nodes::raid;
use crate::shown;
use crate::vendor;
use axum::extract::Path;
use serde_json::{Map, Value, json};

/// Endpoints of drivers.
pub fn endpoints() -> Vec<Endpoint> {
    let mut rows = rows![
        GET "/v1/drivers" 1 "baremetal:driver:get", "drivers" => list;
        GET "/v1/drivers/{name}" 1 "baremetal:driver:get", "a driver" => show;
        GET "/v1/drivers/{name}/properties" 1 "baremetal:driver:get_properties", "what its driver_info may hold"
            => properties;
        GET "/v1/drivers/{name}/raid/logical_disk_properties" 12 "baremetal:driver:get_raid_logical_disk_properties",
            "properties of a logical disk" => logical_disk_properties;
    ];
    let vendors = rows![
        GET "/v1/drivers/{name}/vendor_passthru" 1 "baremetal:driver:vendor_passthru", "a vendor's method" => vendor::driver;
        POST "/v1/drivers/{name}/vendor_passthru" 1 "baremetal:driver:vendor_passthru", "a vendor's method" => vendor::driver;
        PUT "/v1/drivers/{name}/vendor_passthru" 1 "baremetal:driver:vendor_passthru", "a vendor's method" => vendor::driver;
        PATCH "/v1/drivers/{name}/vendor_passthru" 1 "baremetal:driver:vendor_passthru", "a vendor's method"
            => vendor::driver;
        DELETE "/v1/drivers/{name}/vendor_passthru" 1 "baremetal:driver:vendor_passthru", "a vendor's method"
            => vendor::driver;
        GET "/v1/drivers/{name}/vendor_passthru/methods" 1 "baremetal:driver:vendor_passthru", "list of its methods"
            => vendor::driver_methods;
    ];
    rows.extend(vendors.into_iter().map(|row| row.noop(vendor::NOOP)));
    rows
}

/// `GET /v1/drivers`.
pub async fn list(call: Call) -> Reply {
    call.args.only(&["type", "detail", "fields"])?;
    let detail = call.args.boolean("detail")?;
    let wanted = wanted(&call)?;
    if wanted.is_some() && detail == Some(true) {
        return Err(ApiError::invalid("Can not specify ?detail=True and fields in the same request."));
    }
    if detail.is_some() {
        call.version.needs_for_filter(30)?;
    }
    let kind = call.args.text("type");
    if kind.is_some() {
        call.version.needs_for_filter(30)?;
    }
    let drivers = match kind {
        None | Some("dynamic") => call.app.drivers.drivers(),
        // Classic drivers are gone from Ironic as well.
        Some("classic") => &[],
        Some(_) => {
            return Err(ApiError::invalid(
                "\"type\" filter must be one of \"classic\" or \"dynamic\", if specified.",
            ));
        }
    };
    let drivers = drivers
        .iter()
        .map(|driver| view(&call, driver, detail == Some(true), wanted.as_deref()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(json(200, &json!({"drivers": drivers})))
}

/// `GET /v1/drivers/{name}`.
pub async fn show(Path(name): Path<String>, call: Call) -> Reply {
    call.args.only(&["fields"])?;
    let wanted = wanted(&call)?;
    let driver = call.app.driver(&name)?;
    Ok(json(200, &view(&call, driver, true, wanted.as_deref())?))
}

/// `GET /v1/drivers/{name}/properties`.
pub async fn properties(Path(name): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let properties = call.app.drivers.properties(&name).ok_or_else(|| ApiError::no_driver(&name))?;
    Ok(json(200, &json!(properties)))
}

/// `GET /v1/drivers/{name}/raid/logical_disk_properties`.
pub async fn logical_disk_properties(Path(name): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    call.version.needs(12)?;
    call.app.driver(&name)?;
    let properties: Map<_, _> =
        raid::DISK.into_iter().map(|(name, about)| (name.to_owned(), Value::from(about))).collect();
    Ok(json(200, &Value::Object(properties)))
}

fn wanted(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    let wanted = call.args.list("fields");
    if wanted.is_some() {
        call.version.needs(77)?;
    }
    Ok(wanted)
}

fn view(
    call: &Call,
    driver: &DriverDescription,
    detail: bool,
    wanted: Option<&[String]>,
) -> Result<Value, ApiError> {
    let path = format!("drivers/{}", driver.name);
    let mut view = Map::new();
    view.insert("name".into(), driver.name.clone().into());
    view.insert("hosts".into(), json!([call.app.members.own()]));
    view.insert("links".into(), call.links.pair(&path));
    if call.version.has(14) {
        view.insert("properties".into(), call.links.pair(&format!("{path}/properties")));
    }
    if call.version.has(30) {
        view.insert("type".into(), "dynamic".into());
        if detail {
            for interface in INTERFACES.into_iter().filter(|interface| call.version.has(since(interface))) {
                let choice = driver.interfaces.get(interface);
                let default = choice.map_or(Value::Null, |choice| choice.default.clone().into());
                let enabled = choice.map_or_else(|| json!([]), |choice| json!(choice.enabled));
                view.insert(format!("default_{interface}_interface"), default);
                view.insert(format!("enabled_{interface}_interfaces"), enabled);
            }
        }
    }
    let Some(wanted) = wanted else { return Ok(Value::Object(view)) };
    shown::check_known(wanted, |name| view.contains_key(name))?;
    view.retain(|name, _| name == "links" || wanted.contains(name));
    Ok(Value::Object(view))
}

fn since(interface: &str) -> u16 {
    match interface {
        "storage" => 33,
        "rescue" => 38,
        "bios" => 40,
        "firmware" => 86,
        _ => 30,
    }
}
