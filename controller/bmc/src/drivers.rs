//! From a driver's name to a [`Bmc`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Bmc, BmcError, ErrorKind, fake, ipmi, redfish};

/// Names of the drivers, as in Ironic.
pub const DRIVERS: &[&str] = &["redfish", "ipmi", "fake-hardware"];

/// Port for those who hold many nodes: opens BMCs; tests may put their own in its place.
pub trait Drivers: Send + Sync {
    /// As [`open`].
    ///
    /// # Errors
    /// As [`open`].
    fn open(
        &self,
        driver: &str,
        driver_info: &Map<String, Value>,
        node_uuid: &str,
    ) -> Result<Arc<dyn Bmc>, BmcError>;
}

fn unknown(driver: &str) -> BmcError {
    let driver: String = driver.chars().take(64).collect();
    let message = format!("unknown driver '{driver}'; known are: {}", DRIVERS.join(", "));
    BmcError::new(ErrorKind::Config, "", "choose a driver", message)
}

/// The BMC of one node. Opens no connection: that is done by the first call.
///
/// # Errors
/// [`ErrorKind::Config`] as from [`validate`].
pub fn open(
    driver: &str,
    driver_info: &Map<String, Value>,
    node_uuid: &str,
) -> Result<Arc<dyn Bmc>, BmcError> {
    match driver {
        redfish::NAME => redfish::open(driver_info),
        ipmi::NAME => ipmi::open(driver_info),
        fake::NAME => fake::open(driver_info, node_uuid),
        _ => Err(unknown(driver)),
    }
}

/// Whether `driver_info` is complete and well formed, without going out.
///
/// # Errors
/// [`ErrorKind::Config`] naming every missing or invalid key, or the unknown driver.
pub fn validate(driver: &str, driver_info: &Map<String, Value>) -> Result<(), BmcError> {
    match driver {
        redfish::NAME => redfish::validate(driver_info),
        ipmi::NAME => ipmi::validate(driver_info),
        fake::NAME => fake::latency(driver_info).map(drop),
        _ => Err(unknown(driver)),
    }
}

/// `driver_info` keys of a driver with their descriptions (`GET /v1/drivers/{name}/properties`); `None`
/// for an unknown driver.
pub fn properties(driver: &str) -> Option<BTreeMap<&'static str, &'static str>> {
    let properties = match driver {
        redfish::NAME => redfish::PROPERTIES,
        ipmi::NAME => ipmi::PROPERTIES,
        fake::NAME => fake::PROPERTIES,
        _ => return None,
    };
    Some(properties.iter().copied().collect())
}
