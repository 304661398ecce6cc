//! The drivers of the `bmc` crate behind the API's queries.

use crate::boot_contents::BootContents;
use crate::node_media::NodeMedia;
use api::{
    BootDevice, BootMediumKind, DriverDescription, DriverError, DriverQueries, Indicator, IndicatorId,
    InterfaceChoice, Validity,
};
use async_trait::async_trait;
use bmc::{Bmc, BmcError, Builtin, Drivers, ErrorKind};
use conductor::Settings;
use conductor::agent_client::{AgentClient, PlanError};
use model::boot::BootNonce;
use model::{Abilities, CatalogueStep, Contact, Node, StepKind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

/// Answers the API's queries to drivers and agents.
pub struct BmcDrivers {
    drivers: Vec<DriverDescription>,
    bmc: Builtin,
    settings: Settings,
    agents: AgentClient,
    media: Option<NodeMedia>,
    contents: Option<Arc<BootContents>>,
}

impl BmcDrivers {
    /// The enabled drivers. Steps have the priorities of `settings`; erase plans are requested through `agents`.
    pub fn new(enabled: &[String], bmc: Builtin, settings: Settings, agents: AgentClient) -> Self {
        let drivers = enabled.iter().map(|name| described(name)).collect();
        Self { drivers, bmc, settings, agents, media: None, contents: None }
    }

    /// With boot media for nodes that boot by virtual media.
    #[must_use]
    pub fn serving(mut self, media: NodeMedia) -> Self {
        self.media = Some(media);
        self
    }

    /// With what those nodes boot.
    #[must_use]
    pub fn booting(mut self, contents: Option<Arc<BootContents>>) -> Self {
        self.contents = contents;
        self
    }

    fn of(&self, node: &Node) -> Result<Arc<dyn Bmc>, DriverError> {
        self.bmc.open(&node.driver, &node.driver_info, &node.uuid.to_string()).map_err(refused)
    }
}

/// A driver as the API shows it.
fn described(name: &str) -> DriverDescription {
    let interfaces = bmc::interfaces(name).unwrap_or_default().iter().map(|interface| {
        let choice = InterfaceChoice {
            default: interface.default().name.to_owned(),
            enabled: interface.enabled.iter().map(|known| known.name.to_owned()).collect(),
        };
        (interface.name, choice)
    });
    DriverDescription { name: name.to_owned(), interfaces: interfaces.collect() }
}

fn refused(error: BmcError) -> DriverError {
    match error.kind() {
        ErrorKind::Config | ErrorKind::Unsupported => DriverError::Invalid(error.to_string()),
        _ => DriverError::Bmc(error.to_string()),
    }
}

/// As [`refused`], but with Ironic's error text when no BMC of this driver has the feature: then the error has no
/// address.
fn lacking(node: &Node, extension: &'static str, error: BmcError) -> DriverError {
    match error.kind() {
        ErrorKind::Unsupported if error.address().is_empty() => DriverError::unsupported(node, extension),
        _ => refused(error),
    }
}

fn parsed<T: FromStr<Err = bmc::ParseError>>(text: &str) -> Result<T, DriverError> {
    text.parse().map_err(|error: bmc::ParseError| DriverError::Invalid(error.to_string()))
}

#[async_trait]
impl DriverQueries for BmcDrivers {
    fn drivers(&self) -> &[DriverDescription] {
        &self.drivers
    }

    fn properties(&self, driver: &str) -> Option<BTreeMap<String, String>> {
        self.drivers.iter().find(|known| known.name == driver)?;
        let properties = bmc::properties(driver)?;
        Some(properties.into_iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect())
    }

    async fn validate(&self, driver: &str, driver_info: &Map<String, Value>) -> BTreeMap<String, Validity> {
        let validity = match self.bmc.validate(driver, driver_info) {
            Ok(()) => Validity { result: Some(true), reason: None },
            Err(error) => Validity { result: Some(false), reason: Some(error.to_string()) },
        };
        ["power", "management"]
            .into_iter()
            .map(|interface| (interface.to_owned(), validity.clone()))
            .collect()
    }

    fn abilities(&self, node: &Node) -> Result<Abilities, DriverError> {
        conductor::act::abilities(&self.bmc, &self.settings, node).map_err(refused)
    }

    fn configured(&self, kind: StepKind, steps: Vec<CatalogueStep>) -> Vec<CatalogueStep> {
        self.settings.override_priorities(kind, steps)
    }

    async fn boot_device(&self, node: &Node) -> Result<BootDevice, DriverError> {
        let setting = self.of(node)?.boot_device().await.map_err(refused)?;
        Ok(BootDevice {
            device: setting.device.map(|device| device.to_string()),
            persistent: setting.persistent,
        })
    }

    async fn set_boot_device(&self, node: &Node, device: &str, persistent: bool) -> Result<(), DriverError> {
        self.of(node)?.set_boot_device(parsed(device)?, persistent, None).await.map_err(refused)
    }

    async fn supported_boot_devices(&self, node: &Node) -> Result<Vec<String>, DriverError> {
        Ok(self.of(node)?.supported_boot_devices().iter().map(ToString::to_string).collect())
    }

    async fn set_boot_mode(&self, node: &Node, mode: &str) -> Result<(), DriverError> {
        let mode = parsed(mode)?;
        self.of(node)?.set_boot_mode(mode).await.map_err(|error| lacking(node, "set_boot_mode", error))
    }

    async fn set_secure_boot(&self, node: &Node, on: bool) -> Result<(), DriverError> {
        self.of(node)?
            .set_secure_boot(on)
            .await
            .map_err(|error| lacking(node, "set_secure_boot_state", error))
    }

    async fn inject_nmi(&self, node: &Node) -> Result<(), DriverError> {
        self.of(node)?.inject_nmi().await.map_err(|error| lacking(node, "inject_nmi", error))
    }

    async fn bios_settings(&self, node: &Node) -> Result<Map<String, Value>, DriverError> {
        match self.of(node)?.bios_settings().await {
            // Nothing to show, as after a cleaning in which nothing could be stored.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Map::new()),
            settings => settings.map_err(refused),
        }
    }

    async fn indicators(&self, node: &Node) -> Result<Vec<Indicator>, DriverError> {
        let lamps = self.of(node)?.indicators().await;
        let lamps = lamps.map_err(|error| lacking(node, "get_supported_indicators", error))?;
        let shown = lamps.into_iter().map(|lamp| Indicator {
            lamp: IndicatorId { component: lamp.component.to_owned(), name: lamp.name },
            read_only: lamp.read_only,
            states: lamp.states.iter().map(ToString::to_string).collect(),
        });
        Ok(shown.collect())
    }

    async fn indicator(&self, node: &Node, lamp: &IndicatorId) -> Result<String, DriverError> {
        let state = self.of(node)?.indicator(&lamp.component, &lamp.name).await;
        Ok(state.map_err(|error| lacking(node, "get_indicator_state", error))?.to_string())
    }

    async fn set_indicator(&self, node: &Node, lamp: &IndicatorId, state: &str) -> Result<(), DriverError> {
        let done = self.of(node)?.set_indicator(&lamp.component, &lamp.name, parsed(state)?).await;
        done.map_err(|error| lacking(node, "set_indicator_state", error))
    }

    async fn virtual_media(&self, node: &Node) -> Result<Value, DriverError> {
        let drives = self.of(node)?.virtual_media().await;
        let drives = drives.map_err(|error| lacking(node, "get_virtual_media", error))?;
        serde_json::to_value(drives).map_err(|error| DriverError::Bmc(error.to_string()))
    }

    async fn attach_media(&self, node: &Node, device: &str, url: &str) -> Result<(), DriverError> {
        let done = self.of(node)?.insert_media(parsed(device)?, url).await;
        done.map_err(|error| lacking(node, "attach_virtual_media", error))
    }

    async fn detach_media(&self, node: &Node, devices: Option<&[String]>) -> Result<(), DriverError> {
        let kinds = match devices {
            Some(devices) => devices.iter().map(|device| parsed(device)).collect::<Result<Vec<_>, _>>()?,
            None => bmc::MediaKind::ALL.to_vec(),
        };
        let done = self.of(node)?.eject_media(&kinds).await;
        done.map_err(|error| lacking(node, "detach_virtual_media", error))
    }

    fn boot_medium(&self, node: &Node) -> Result<BootMediumKind, String> {
        let media = self.media.as_ref().ok_or("this controller serves no boot media")?;
        media.check(node).map(|_| media.kind(node))
    }

    async fn predicted_boot(&self, node: &Node, nonce: &BootNonce) -> Result<Arc<tpm::Prediction>, String> {
        let (Some(media), Some(contents)) = (&self.media, &self.contents) else {
            return Err("this controller serves no boot media".to_owned());
        };
        match media.kind(node) {
            BootMediumKind::Shim => contents.measured_through_shim(node, nonce).await.map(Arc::new),
            BootMediumKind::Signed | BootMediumKind::Unsigned => media.predicted().await,
        }
    }

    async fn erase_plan(&self, node: &Node, contact: &Contact, step: &Value) -> Result<Value, DriverError> {
        let planned = self.agents.plan_erase(node, contact, step).await;
        planned.map_err(|error| match error {
            PlanError::Busy(text) => DriverError::Busy(text),
            PlanError::Refused(text) => DriverError::Invalid(text),
            PlanError::Unreachable(text) => DriverError::Agent(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;
    use std::time::Duration;
    use uuid::Uuid;

    fn with(settings: Settings) -> BmcDrivers {
        let all: Vec<_> = bmc::DRIVERS.iter().map(|name| (*name).to_owned()).collect();
        BmcDrivers::new(&all, Builtin::default(), settings, AgentClient::new(Duration::from_secs(1)))
    }

    fn drivers() -> BmcDrivers {
        with(Settings::default())
    }

    fn node(driver: &str, driver_info: &[(&str, &str)]) -> Node {
        let mut node = Node::enrolled(Uuid::new_v4(), driver, Timestamp(0));
        let pairs = driver_info.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
        node.driver_info = pairs.collect();
        node
    }

    #[tokio::test]
    async fn a_feature_that_no_bmc_of_the_driver_has_is_reported_in_ironics_words_without_a_request() {
        let drivers = drivers();
        let ipmi = node("ipmi", &[("ipmi_address", "192.0.2.1")]);
        let lamp = IndicatorId { component: "system".into(), name: "led".into() };
        for (driver, extension, result) in [
            ("ipmi", "set_boot_mode", drivers.set_boot_mode(&ipmi, "uefi").await),
            ("ipmi", "set_secure_boot_state", drivers.set_secure_boot(&ipmi, true).await),
            ("ipmi", "get_supported_indicators", drivers.indicators(&ipmi).await.map(drop)),
            ("ipmi", "attach_virtual_media", drivers.attach_media(&ipmi, "cdrom", "http://x/y").await),
            ("fake-hardware", "inject_nmi", drivers.inject_nmi(&node("fake-hardware", &[])).await),
            (
                "fake-hardware",
                "get_virtual_media",
                drivers.virtual_media(&node("fake-hardware", &[])).await.map(drop),
            ),
            (
                "fake-hardware",
                "set_indicator_state",
                drivers.set_indicator(&node("fake-hardware", &[]), &lamp, "on").await,
            ),
        ] {
            let expected = DriverError::Unsupported { driver: driver.to_owned(), extension };
            assert_eq!(result, Err(expected));
        }
        assert_eq!(drivers.bios_settings(&ipmi).await, Ok(Map::new()));
        let wrong = drivers.set_boot_mode(&ipmi, "efi").await;
        assert!(matches!(wrong, Err(DriverError::Invalid(why)) if why.contains("'efi'")));
    }

    #[test]
    fn only_enabled_drivers_are_offered() {
        let enabled = ["redfish".to_owned()];
        let agents = AgentClient::new(Duration::from_secs(1));
        let drivers = BmcDrivers::new(&enabled, Builtin::default(), Settings::default(), agents);
        let names: Vec<_> = drivers.drivers().iter().map(|driver| driver.name.as_str()).collect();
        assert_eq!(names, ["redfish"]);
        assert!(drivers.properties("redfish").is_some() && drivers.properties("fake-hardware").is_none());
    }

    #[tokio::test]
    async fn the_fake_driver_reports_bios_settings_and_indicators() {
        let (drivers, fake) = (drivers(), node("fake-hardware", &[]));
        assert!(!drivers.bios_settings(&fake).await.unwrap().is_empty());
        let lamps = drivers.indicators(&fake).await.unwrap();
        assert_eq!(lamps.len(), 2);
        assert_eq!(lamps[0].states, ["off", "on"]);
        assert_eq!(drivers.indicator(&fake, &lamps[0].lamp).await, Ok("on".to_owned()));
    }

    #[test]
    fn steps_of_agents_have_the_priorities_of_the_present_configuration() {
        let mut settings = Settings::default();
        settings.clean_step_priority_override.insert("deploy.erase_devices".to_owned(), 0.0);
        let drivers = with(settings);
        let advertised = serde_json::json!({"interface": "deploy", "step": "erase_devices", "priority": 10});
        let steps: Vec<CatalogueStep> = vec![serde_json::from_value(advertised).unwrap()];
        let shown = |kind| drivers.configured(kind, steps.clone())[0].priority.to_string();
        assert_eq!((shown(StepKind::Clean), shown(StepKind::Deploy)), ("0.0".into(), "10".into()));
    }

    /// Not as a BMC that lacks the feature.
    #[tokio::test]
    async fn a_bmc_that_does_not_answer_is_reported_as_such() {
        let redfish = node(
            "redfish",
            &[("redfish_address", "http://127.0.0.1:1"), ("redfish_system_id", "/redfish/v1/Systems/1")],
        );
        let result = drivers().inject_nmi(&redfish).await;
        assert!(matches!(result, Err(DriverError::Bmc(_))), "{result:?}");
    }
}
