//! The report of an agent: what identifies its node, and what it found.

use super::report_body::ReportBody;
use crate::bounded_json;
use crate::error::ApiError;
use crate::schema;
use mac::Mac;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::net::IpAddr;

/// Most network interfaces of one server that are looked up.
const INTERFACES_MAX: usize = 256;

/// What identifies the node of a report.
pub struct Sender {
    /// MAC addresses of the interfaces.
    pub addresses: Vec<Mac>,
    /// Addresses of the BMC.
    pub bmc: Vec<IpAddr>,
}

/// What is read of a report before its node is known; nothing is built of the rest.
#[derive(Deserialize)]
struct Outline {
    inventory: OutlineInventory,
}

#[derive(Deserialize)]
struct OutlineInventory {
    interfaces: Vec<OutlineInterface>,
    bmc_address: Option<String>,
    bmc_v6address: Option<String>,
}

#[derive(Deserialize)]
struct OutlineInterface {
    mac_address: String,
}

impl Sender {
    /// Read only that, and build nothing of the rest.
    ///
    /// # Errors
    /// 400: it is not in the report. 413: the report is too large.
    pub fn read(body: &ReportBody) -> Result<Self, ApiError> {
        body.check_structure()?;
        match serde_json::from_slice::<Outline>(&body.bytes) {
            Ok(Outline { inventory }) if (1..=INTERFACES_MAX).contains(&inventory.interfaces.len()) => {
                let macs = inventory.interfaces.iter().map(|interface| interface.mac_address.trim());
                let bmc = [inventory.bmc_address, inventory.bmc_v6address].into_iter().flatten();
                Ok(Self {
                    addresses: macs.filter_map(|text| text.parse().ok()).collect(),
                    bmc: bmc.filter_map(|text| bmc_address(&text)).collect(),
                })
            }
            // An honest agent sends no such report; a small one is answered in Ironic's words.
            _ if body.is_small() => Self::of_tree(bounded_json::parse(match body.bytes.as_slice() {
                [] => &b"{}"[..],
                bytes => bytes,
            })?),
            Ok(_) => {
                Err(ApiError::invalid("Schema error for data: the number of interfaces is not accepted"))
            }
            Err(error) => Err(bounded_json::invalid(&error)),
        }
    }

    fn of_tree(given: Value) -> Result<Self, ApiError> {
        let Report { inventory, .. } = Report::read(given)?;
        let fields = schema::object("data", inventory)?;
        let addresses = addresses(&fields)?;
        let mut bmc = Vec::new();
        for key in ["bmc_address", "bmc_v6address"] {
            match fields.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => bmc.extend(bmc_address(text)),
                Some(other) => return Err(wrong(&format!("inventory.{key}"), other, "'string', 'null'")),
            }
        }
        Ok(Self { addresses, bmc })
    }
}

/// The address of a BMC; ironic-python-agent reports 0.0.0.0 and ::/0 if there is none.
fn bmc_address(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().filter(|address| !address.is_unspecified())
}

/// A report of an agent: `inventory`, and all the rest, which Ironic calls plugin data.
pub struct Report {
    /// What it found.
    pub inventory: Value,
    /// All the rest.
    pub plugin_data: Value,
}

impl Report {
    /// Take the parts of a report.
    ///
    /// # Errors
    /// 400: it has no inventory.
    pub fn read(given: Value) -> Result<Self, ApiError> {
        let mut given = schema::object("data", given)?;
        let inventory = given.remove("inventory").ok_or_else(|| missing("inventory"))?;
        if !inventory.is_object() {
            return Err(wrong("inventory", &inventory, "'object'"));
        }
        given.remove("logs");
        Ok(Self { inventory, plugin_data: Value::Object(given) })
    }
}

/// The MAC addresses of an inventory; invalid ones are left out, as in Ironic.
fn addresses(inventory: &Map<String, Value>) -> Result<Vec<Mac>, ApiError> {
    let interfaces = inventory.get("interfaces").ok_or_else(|| missing("interfaces"))?;
    let Value::Array(items) = interfaces else {
        return Err(wrong("inventory.interfaces", interfaces, "'array'"));
    };
    if items.is_empty() {
        return Err(ApiError::invalid(
            "Schema error for data: [] should be non-empty (field \"inventory.interfaces\")",
        ));
    }
    if items.len() > INTERFACES_MAX {
        return Err(ApiError::invalid(format!(
            "Schema error for data: {} interfaces are too many, at most {INTERFACES_MAX} are taken",
            items.len()
        )));
    }
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let place = format!("inventory.interfaces[{index}]");
        let Value::Object(interface) = item else { return Err(wrong(&place, item, "'object'")) };
        match interface.get("mac_address") {
            Some(Value::String(text)) => found.extend(text.trim().parse::<Mac>()),
            Some(other) => return Err(wrong(&format!("{place}.mac_address"), other, "'string'")),
            None => return Err(missing("mac_address")),
        }
    }
    Ok(found)
}

fn missing(key: &str) -> ApiError {
    ApiError::invalid(format!("Schema error for data: '{key}' is a required property"))
}

fn wrong(place: &str, value: &Value, types: &str) -> ApiError {
    schema::wrong_field("data", place, value, types)
}
