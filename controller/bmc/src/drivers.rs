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

/// The drivers of this crate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Builtin;

impl Drivers for Builtin {
    fn open(
        &self,
        driver: &str,
        driver_info: &Map<String, Value>,
        node_uuid: &str,
    ) -> Result<Arc<dyn Bmc>, BmcError> {
        open(driver, driver_info, node_uuid)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_has_properties_and_says_what_it_lacks() {
        for driver in DRIVERS {
            let described = properties(driver).unwrap();
            let result = validate(driver, &Map::new());
            let Some(required) = described.iter().find(|(_, text)| text.contains(" Required.")) else {
                assert_eq!(result, Ok(()));
                continue;
            };
            let error = result.unwrap_err();
            assert!(error.to_string().contains(&format!("missing {}", required.0)), "{error}");
            assert_eq!(Builtin.open(driver, &Map::new(), "n1").err(), Some(error));
        }
    }

    #[test]
    fn an_unknown_driver_is_named() {
        let error = validate("idrac", &Map::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = error.to_string();
        assert!(text.contains("'idrac'") && text.contains("redfish, ipmi, fake-hardware"), "{text}");
        assert_eq!(properties("idrac"), None);
    }
}
