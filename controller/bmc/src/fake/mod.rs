//! The `fake-hardware` driver: a node whose power, BIOS and RAID are variables.
//!
//! The state is kept per node in the process and is lost with it: after a restart every fake node is
//! off. Tests start an agent when [`subscribe`] says that a node was switched on.

mod inventory;
mod machine;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::driver_info::Reader;
use crate::{
    Bmc, BmcError, BootDevice, BootMode, BootSetting, ErrorKind, Indicator, IndicatorState, PowerState,
    PowerTarget,
};
pub(crate) use inventory::inspect;
pub use machine::{Configuration, PowerEvent, configuration, cut_power, subscribe};
use machine::{Machine, machine};
pub(crate) use steps::{BIOS_STEPS, DEPLOY_STEPS, MANAGEMENT_STEPS, RAID_STEPS, VENDOR_STEPS};

pub(crate) const NAME: &str = "fake-hardware";

pub(crate) const PROPERTIES: &[(&str, &str)] = &[(
    "fake_power_latency_ms",
    "Milliseconds each power or boot device call takes, 0 to 600000. Optional; default 0.",
)];

pub(crate) fn latency(info: &Map<String, Value>) -> Result<Duration, BmcError> {
    let mut reader = Reader::new(NAME, info);
    let latency = reader.number("fake_power_latency_ms", 0..=600_000).unwrap_or(0);
    reader.finish(Duration::from_millis(latency))
}

pub(crate) fn open(info: &Map<String, Value>, node_uuid: &str) -> Result<Arc<dyn Bmc>, BmcError> {
    Ok(Arc::new(Fake { node_uuid: node_uuid.to_owned(), latency: latency(info)? }))
}

struct Fake {
    node_uuid: String,
    latency: Duration,
}

impl Fake {
    async fn with<T>(&self, action: impl FnOnce(&mut Machine) -> T + Send) -> T {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        machine(&self.node_uuid, action)
    }
}

#[async_trait]
impl Bmc for Fake {
    async fn power_state(&self) -> Result<PowerState, BmcError> {
        Ok(self.with(|machine| machine.power).await)
    }

    async fn set_power(&self, action: PowerTarget) -> Result<(), BmcError> {
        self.with(|machine| machine.power(&self.node_uuid, action)).await;
        Ok(())
    }

    async fn boot_device(&self) -> Result<BootSetting, BmcError> {
        // What nothing has set is what Ironic's fake always reports.
        let set = self.with(|machine| machine.boot).await;
        let (device, persistent) = (set.device.unwrap_or(BootDevice::Pxe), set.persistent.unwrap_or(false));
        Ok(BootSetting { device: Some(device), persistent: Some(persistent), mode: set.mode })
    }

    async fn set_boot_device(
        &self,
        device: BootDevice,
        persistent: bool,
        mode: Option<BootMode>,
    ) -> Result<(), BmcError> {
        if !self.supported_boot_devices().contains(&device) {
            return Err(BmcError::new(
                ErrorKind::Unsupported,
                NAME,
                "set the boot device",
                format!("the fake does not boot from {device}"),
            ));
        }
        self.with(|machine| {
            let mode = mode.or(machine.boot.mode);
            machine.boot = BootSetting { device: Some(device), persistent: Some(persistent), mode };
        })
        .await;
        Ok(())
    }

    async fn verify(&self) -> Result<(), BmcError> {
        self.with(|_| ()).await;
        Ok(())
    }

    async fn bios_settings(&self) -> Result<Map<String, Value>, BmcError> {
        Ok(self.with(|machine| machine.configuration.bios.clone()).await)
    }

    /// Those of Ironic's fake driver: always lit, and setting them changes nothing.
    async fn indicators(&self) -> Result<Vec<Indicator>, BmcError> {
        const STATES: &[IndicatorState] =
            &[IndicatorState::Blinking, IndicatorState::Off, IndicatorState::On];
        Ok(vec![
            Indicator {
                component: "chassis",
                name: "led-0".to_owned(),
                read_only: true,
                states: &[IndicatorState::Off, IndicatorState::On],
            },
            Indicator { component: "system", name: "led".to_owned(), read_only: false, states: STATES },
        ])
    }

    async fn indicator(&self, _component: &str, _name: &str) -> Result<IndicatorState, BmcError> {
        Ok(IndicatorState::On)
    }

    fn supported_boot_devices(&self) -> &'static [BootDevice] {
        &[BootDevice::Pxe, BootDevice::Disk, BootDevice::Cdrom, BootDevice::UefiHttp]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fake_node_keeps_its_power_between_openings_and_rings_the_bell() {
        let mut events = subscribe();
        let info = Map::new();
        let first = open(&info, "fake-1").unwrap();
        assert_eq!(first.power_state().await.unwrap(), PowerState::Off);
        let unset = first.boot_device().await.unwrap();
        assert_eq!((unset.device, unset.persistent), (Some(BootDevice::Pxe), Some(false)));
        first.set_boot_device(BootDevice::Cdrom, false, None).await.unwrap();
        first.set_power(PowerTarget::On).await.unwrap();

        let again = open(&info, "fake-1").unwrap();
        assert_eq!(again.power_state().await.unwrap(), PowerState::On);
        let used = again.boot_device().await.unwrap();
        assert_eq!(used.device, Some(BootDevice::Pxe), "a one-time override is used up");
        let event = loop {
            let event = events.recv().await.unwrap();
            if event.node_uuid == "fake-1" {
                break event;
            }
        };
        assert_eq!((event.before, event.after), (PowerState::Off, PowerState::On));
        assert_eq!(event.boot.device, Some(BootDevice::Cdrom));

        cut_power("fake-1");
        assert_eq!(again.power_state().await.unwrap(), PowerState::Off);
        again.set_power(PowerTarget::Reboot).await.unwrap();
        assert_eq!(
            again.power_state().await.unwrap(),
            PowerState::On,
            "a reboot of a node that is off starts it"
        );
    }

    #[test]
    fn a_wrong_latency_is_named() {
        let info = serde_json::json!({"fake_power_latency_ms": "soon"});
        let error = latency(info.as_object().unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("fake_power_latency_ms"), "{error}");
    }
}
