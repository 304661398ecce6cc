//! From a driver's name to a [`Bmc`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::Abilities;
use serde_json::{Map, Value};

use crate::driver_names::{not_enabled, unknown};
use crate::{
    Bmc, BmcError, ErrorKind, Settings, StepCall, StepEnd, execute, fake, interfaces, ipmi, redfish,
};

/// Opens the BMCs of nodes, and does what the drivers can do besides power and boot. A trait, so that tests can
/// replace the drivers.
#[async_trait]
pub trait Drivers: Send + Sync {
    /// The BMC of one node. Opens no connection and no file: that is done by the first call.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] naming every missing or invalid key, or the unknown driver.
    fn open(
        &self,
        driver: &str,
        driver_info: &Map<String, Value>,
        node_uuid: &str,
    ) -> Result<Arc<dyn Bmc>, BmcError>;

    /// How long one request to a BMC takes at most.
    fn longest_request(&self) -> Duration {
        crate::LONGEST_REQUEST
    }

    /// What a node can do through its driver and its `interfaces` (`deploy_interface` → `direct`): goes
    /// nowhere. Steps have the priorities they were declared with.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] naming the driver, interface or implementation that is not known, and those
    /// that are.
    fn abilities(&self, driver: &str, interfaces: &BTreeMap<String, String>) -> Result<Abilities, BmcError>;

    /// Runs an out-of-band step, or with `polling` asks how far it is. Ends within about a minute. The
    /// arguments are checked against their declaration before anything is done.
    ///
    /// # Errors
    /// [`ErrorKind::Step`] when the step does not exist, its arguments are not as declared, or it failed;
    /// otherwise what kept the BMC from being asked.
    async fn run_step(&self, call: &StepCall<'_>) -> Result<StepEnd, BmcError>;

    /// Inspects a node out-of-band: `{"inventory": {…}, "plugin_data": {…}}` in the form of
    /// ironic-python-agent's inspection. Ends within about two minutes.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] with a driver that cannot; otherwise why the BMC could not be read.
    async fn inspect(
        &self,
        driver: &str,
        driver_info: &Map<String, Value>,
        node_uuid: &str,
    ) -> Result<Value, BmcError>;
}

/// The drivers of this crate.
#[derive(Debug, Clone, Default)]
pub struct Builtin {
    settings: Arc<Settings>,
    /// Names of those that are enabled; `None`: all.
    enabled: Option<Arc<[String]>>,
}

impl Builtin {
    /// The drivers of a site with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings: Arc::new(settings), enabled: None }
    }

    /// Only these drivers: nodes of others are refused as if there were no such driver.
    #[must_use]
    pub fn enabling(self, drivers: &[String]) -> Self {
        Self { enabled: Some(drivers.into()), ..self }
    }

    /// The driver of this name, if it is enabled.
    fn known<'a>(&self, driver: &'a str) -> Result<&'a str, BmcError> {
        match &self.enabled {
            Some(enabled) if !enabled.iter().any(|name| name == driver) => Err(not_enabled(driver, enabled)),
            _ => Ok(driver),
        }
    }

    /// Whether `driver_info` is complete and well formed, without going out.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] naming every missing or invalid key, or the unknown driver.
    pub fn validate(&self, driver: &str, driver_info: &Map<String, Value>) -> Result<(), BmcError> {
        match self.known(driver)? {
            redfish::NAME => redfish::validate(driver_info, &self.settings),
            ipmi::NAME => ipmi::validate(driver_info, &self.settings),
            fake::NAME => fake::latency(driver_info).map(drop),
            _ => Err(unknown(driver)),
        }
    }
}

#[async_trait]
impl Drivers for Builtin {
    fn open(
        &self,
        driver: &str,
        driver_info: &Map<String, Value>,
        node_uuid: &str,
    ) -> Result<Arc<dyn Bmc>, BmcError> {
        match self.known(driver)? {
            redfish::NAME => redfish::open(driver_info, &self.settings),
            ipmi::NAME => ipmi::open(driver_info, &self.settings),
            fake::NAME => fake::open(driver_info, node_uuid),
            _ => Err(unknown(driver)),
        }
    }

    fn longest_request(&self) -> Duration {
        self.settings.request_timeout()
    }

    fn abilities(&self, driver: &str, names: &BTreeMap<String, String>) -> Result<Abilities, BmcError> {
        interfaces::abilities(self.known(driver)?, names)
    }

    async fn run_step(&self, call: &StepCall<'_>) -> Result<StepEnd, BmcError> {
        self.known(call.driver)?;
        execute::run_step(call, &self.settings).await
    }

    async fn inspect(
        &self,
        driver: &str,
        driver_info: &Map<String, Value>,
        node_uuid: &str,
    ) -> Result<Value, BmcError> {
        match self.known(driver)? {
            redfish::NAME => redfish::inspect(driver_info, &self.settings).await,
            fake::NAME => fake::inspect(driver_info, node_uuid),
            ipmi::NAME => {
                let message = "IPMI reports no inventory; inspect with inspect_interface 'agent'";
                Err(BmcError::new(ErrorKind::Unsupported, "", "inspect", message))
            }
            _ => Err(unknown(driver)),
        }
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

/// The host at which the BMC is managed: a name, or an address without brackets. `None` where the driver has none.
pub fn host(driver: &str, driver_info: &Map<String, Value>) -> Option<String> {
    match driver {
        redfish::NAME => redfish::host(driver_info),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DRIVERS;

    #[test]
    fn every_driver_has_properties_and_says_what_it_lacks() {
        for driver in DRIVERS {
            let described = properties(driver).unwrap();
            let result = Builtin::default().validate(driver, &Map::new());
            let Some(required) = described.iter().find(|(_, text)| text.contains(" Required.")) else {
                assert_eq!(result, Ok(()));
                continue;
            };
            let error = result.unwrap_err();
            assert!(error.to_string().contains(&format!("missing {}", required.0)), "{error}");
            assert_eq!(Builtin::default().open(driver, &Map::new(), "n1").err(), Some(error));
        }
    }

    #[test]
    fn a_driver_that_is_not_enabled_opens_nothing() {
        let drivers = Builtin::default().enabling(&["redfish".to_owned()]);
        let refused = drivers.open("fake-hardware", &Map::new(), "n1").err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Config);
        let says = "driver 'fake-hardware' is not enabled (enabled_hardware_types); enabled are: redfish";
        assert!(refused.to_string().contains(says), "{refused}");
        assert_eq!(drivers.validate("fake-hardware", &Map::new()).unwrap_err(), refused);
        assert_eq!(drivers.abilities("fake-hardware", &BTreeMap::new()).err(), Some(refused));
        assert!(drivers.abilities("redfish", &BTreeMap::new()).is_ok());
    }

    #[test]
    fn an_unknown_driver_is_named() {
        let error = Builtin::default().validate("idrac", &Map::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = error.to_string();
        assert!(text.contains("'idrac'") && text.contains("redfish, ipmi, fake-hardware"), "{text}");
        assert_eq!(properties("idrac"), None);
    }
}
