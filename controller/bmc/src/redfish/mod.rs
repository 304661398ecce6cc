//! The `redfish` driver: our own thin client, for power, boot, BIOS settings and the inventory.

mod bios;
mod boot_mode;
mod boot_settings;
mod causes;
mod client;
mod config;
mod connections;
mod http_boot;
mod http_settings;
mod image_names;
mod indicators;
mod inspect;
mod inventory;
mod media;
mod resolver;
mod secure_boot_keys;
mod system;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::Health;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use crate::{
    Bmc, BmcError, BootDevice, BootMode, BootSetting, ErrorKind, Indicator, IndicatorState, MediaKind,
    PowerState, PowerTarget, Settings, VirtualDrive,
};
pub(crate) use bios::BIOS_STEPS;
use client::{Client, Reply};
use config::Config;
pub(crate) use config::{NAME, PROPERTIES, host};
pub(crate) use inspect::inspect;
pub(crate) use secure_boot_keys::SECURE_BOOT_STEPS;
use system::{Reset, TaskProgress};

const SYSTEMS: &str = "/redfish/v1/Systems";
/// How long a task that a BMC made of our request is watched for an early failure. The caller watches
/// the power state in any case.
const TASK: Duration = Duration::from_secs(5);
/// A reboot as off and on waits this long for off.
const OFF: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_secs(1);

pub(crate) fn validate(info: &Map<String, Value>, settings: &Arc<Settings>) -> Result<(), BmcError> {
    config::parse(info, settings).map(drop)
}

pub(crate) fn open(info: &Map<String, Value>, settings: &Arc<Settings>) -> Result<Arc<dyn Bmc>, BmcError> {
    Ok(Arc::new(Redfish::new(info, settings)?))
}

struct Redfish {
    client: Arc<Client>,
    config: Config,
    /// Path of the system, once found.
    system: OnceCell<String>,
}

impl Redfish {
    fn new(info: &Map<String, Value>, settings: &Arc<Settings>) -> Result<Self, BmcError> {
        let config = config::parse(info, settings)?;
        let client = client::shared(&config.endpoint);
        Ok(Self { client, config, system: OnceCell::new() })
    }

    /// The configured system, or the only one there is.
    async fn system_path(&self, action: &str) -> Result<&str, BmcError> {
        let found = self.system.get_or_try_init(|| async {
            if let Some(path) = &self.config.system {
                return Ok(path.clone());
            }
            let root = self.client.get(action, "/redfish/v1/").await?;
            let systems = system::link(root.body.get("Systems")).unwrap_or(SYSTEMS);
            let collection = self.client.get(action, systems).await?;
            match system::members(&collection.body).as_slice() {
                [only] => Ok((*only).to_owned()),
                [] => Err(self.client.error(ErrorKind::Protocol, action, "it lists no system")),
                several => {
                    let message = format!(
                        "driver_info needs redfish_system_id: BMC {} has {} systems: {}",
                        self.config.endpoint.address(),
                        several.len(),
                        several.join(", ")
                    );
                    Err(self.client.error(ErrorKind::Config, action, &message))
                }
            }
        });
        found.await.map(String::as_str)
    }

    async fn system(&self, action: &str) -> Result<Reply, BmcError> {
        let path = self.system_path(action).await?;
        self.client.get(action, path).await
    }

    fn power_of(&self, action: &str, system: &Value) -> Result<PowerState, BmcError> {
        // A BMC that does not know now may know soon.
        let failed = |kind, why: &str| self.client.error(kind, action, why).with_retryable(true);
        match system::power_state(system) {
            Ok(Some(state)) => Ok(state),
            Ok(None) => Err(failed(ErrorKind::NoPowerState, "the BMC does not know the PowerState now")),
            Err(why) => Err(failed(ErrorKind::Protocol, &why)),
        }
    }

    /// Where resets are posted, and which types the BMC says it has.
    async fn resets(&self, action: &str, system: &Value) -> Result<(String, Option<Vec<String>>), BmcError> {
        let reset = system::reset_action(system)
            .ok_or_else(|| self.client.error(ErrorKind::Unsupported, action, "it offers no reset"))?;
        let allowed = match (reset.allowed, &reset.info) {
            (Some(allowed), _) => Some(allowed),
            (None, Some(info)) => system::allowed_by_info(&self.client.get(action, info).await?.body),
            (None, None) => None,
        };
        Ok((reset.target, allowed))
    }

    /// The error of reading `what`: a refusal for good, as of a resource that is missing or that the user may not see, says that the
    /// BMC does not offer it.
    fn unshown(&self, action: &str, what: &str, error: BmcError) -> BmcError {
        match error.kind() {
            ErrorKind::Auth | ErrorKind::Protocol if !error.is_retryable() => {
                let message = format!("it does not show its {what}: {}", error.message());
                self.client.error(ErrorKind::Unsupported, action, &message)
            }
            _ => error,
        }
    }

    fn offers_only(&self, action: &str, allowed: Option<&[String]>) -> BmcError {
        let message = format!("it offers only {}", allowed.unwrap_or_default().join(", "));
        self.client.error(ErrorKind::Unsupported, action, &message)
    }

    async fn reset(&self, action: &str, target: &str, kind: &str) -> Result<(), BmcError> {
        let body = json!({ "ResetType": kind });
        let reply = self.client.request(action, Method::POST, target, Some(&body), None).await?;
        self.client.succeeded(action, &reply)?;
        self.watch(action, reply).await
    }

    /// A 202 names a task; a failure of that task within the first seconds is reported as the call's error.
    async fn watch(&self, action: &str, mut reply: Reply) -> Result<(), BmcError> {
        let task = system::link(Some(&reply.body)).map(str::to_owned);
        let Some(monitor) = reply.location.take().or(task) else { return Ok(()) };
        let deadline = tokio::time::Instant::now() + TASK;
        while reply.status == StatusCode::ACCEPTED {
            match system::task_progress(&reply.body) {
                TaskProgress::Running => {}
                TaskProgress::Done => return Ok(()),
                TaskProgress::Failed(why) => {
                    return Err(self.client.error(ErrorKind::Protocol, action, &why));
                }
            }
            if tokio::time::Instant::now() >= deadline {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
            reply = self.client.request(action, Method::GET, &monitor, None, None).await?;
            // A monitor that is gone has done its work.
            if matches!(reply.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
                return Ok(());
            }
            self.client.succeeded(action, &reply)?;
            if let TaskProgress::Failed(why) = system::task_progress(&reply.body) {
                return Err(self.client.error(ErrorKind::Protocol, action, &why));
            }
        }
        Ok(())
    }

    async fn wait_for_off(&self, action: &str) -> Result<(), BmcError> {
        let deadline = tokio::time::Instant::now() + OFF;
        loop {
            let system = self.system(action).await?;
            if system::is_settled(&system.body, PowerState::Off) {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                let message = format!("the node is not off {} s after ForceOff", OFF.as_secs());
                return Err(self.client.error(ErrorKind::Timeout, action, &message));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// PATCH of what was read, under the ETag the BMC gave; those that mistrust their own get it in other clothes.
    async fn patch(&self, action: &str, path: &str, read: &Reply, body: &Value) -> Result<(), BmcError> {
        let reply = self.patched(action, path, read, body).await?;
        self.client.succeeded(action, &reply)?;
        self.watch(action, reply).await
    }

    /// The reply to the PATCH, whatever it says.
    async fn patched(&self, action: &str, path: &str, read: &Reply, body: &Value) -> Result<Reply, BmcError> {
        let given = read
            .etag
            .clone()
            .or_else(|| read.body.get("@odata.etag").and_then(Value::as_str).map(str::to_owned));
        // RFC 9110 wants a strong tag in If-Match; some BMCs give weak ones and then refuse them, and
        // some refuse any.
        let strong = given.as_deref().and_then(|tag| tag.strip_prefix("W/")).map(str::to_owned);
        let tags = [given, strong].into_iter().flatten().map(Some).chain([None]);
        let mut tags = tags;
        loop {
            let tag = tags.next().flatten();
            let is_last = tag.is_none();
            let reply = self.client.request(action, Method::PATCH, path, Some(body), tag.as_deref()).await?;
            if is_last || reply.status != StatusCode::PRECONDITION_FAILED {
                return Ok(reply);
            }
        }
    }
}

#[async_trait]
impl Bmc for Redfish {
    async fn power_state(&self) -> Result<PowerState, BmcError> {
        let action = "read the power state";
        let system = self.system(action).await?;
        self.power_of(action, &system.body)
    }

    async fn state(&self) -> Result<(PowerState, Option<Health>), BmcError> {
        let action = "read the power state";
        let system = self.system(action).await?;
        Ok((self.power_of(action, &system.body)?, system::health(&system.body)))
    }

    async fn set_power(&self, power: PowerTarget) -> Result<(), BmcError> {
        let action = format!("do '{}'", power.as_str());
        let system = self.system(&action).await?.body;
        let settled_off = system::is_settled(&system, PowerState::Off);
        let power = match power {
            PowerTarget::On if system::is_settled(&system, PowerState::On) => return Ok(()),
            PowerTarget::Off | PowerTarget::SoftOff if settled_off => return Ok(()),
            PowerTarget::Reboot | PowerTarget::SoftReboot if settled_off => PowerTarget::On,
            power => power,
        };
        let (target, allowed) = self.resets(&action, &system).await?;
        let choice = system::choose_reset(power, allowed.as_deref())
            .ok_or_else(|| self.offers_only(&action, allowed.as_deref()))?;
        match choice {
            Reset::One(kind) => self.reset(&action, &target, kind).await,
            Reset::OffThenOn(off, on) => {
                self.reset(&action, &target, off).await?;
                self.wait_for_off(&action).await?;
                self.reset(&action, &target, on).await
            }
        }
    }

    async fn boot_device(&self) -> Result<BootSetting, BmcError> {
        Ok(system::boot_setting(&self.system("read the boot device").await?.body))
    }

    async fn set_boot_device(
        &self,
        device: BootDevice,
        persistent: bool,
        mode: Option<BootMode>,
    ) -> Result<(), BmcError> {
        let action = format!("set boot device {device}");
        let read = self.boot_resources(&action).await?;
        let patch = system::boot_patch(&read.offered(), device, persistent, mode)
            .map_err(|why| self.client.error(ErrorKind::Unsupported, &action, &why))?;
        self.change_boot(&action, &read, &patch).await
    }

    async fn verify(&self) -> Result<(), BmcError> {
        let action = "verify the system";
        let system = self.system(action).await?;
        if system.body.get("PowerState").is_none() {
            let path = self.system_path(action).await?;
            let message = format!("{path} is not a ComputerSystem: it has no PowerState");
            return Err(self.client.error(ErrorKind::Protocol, action, &message));
        }
        Ok(())
    }

    async fn set_boot_mode(&self, mode: BootMode) -> Result<(), BmcError> {
        self.change_boot_mode(mode).await
    }

    async fn set_secure_boot(&self, on: bool) -> Result<(), BmcError> {
        self.change_secure_boot(on).await
    }

    async fn inject_nmi(&self) -> Result<(), BmcError> {
        let action = "inject an NMI";
        let (target, allowed) = self.resets(action, &self.system(action).await?.body).await?;
        if allowed.as_ref().is_some_and(|allowed| !allowed.iter().any(|kind| kind == "Nmi")) {
            return Err(self.offers_only(action, allowed.as_deref()));
        }
        self.reset(action, &target, "Nmi").await
    }

    async fn bios_settings(&self) -> Result<Map<String, Value>, BmcError> {
        self.bios_attributes().await
    }

    async fn indicators(&self) -> Result<Vec<Indicator>, BmcError> {
        Ok(indicators::indicator(&self.system("read the indicators").await?.body).into_iter().collect())
    }

    async fn indicator(&self, _component: &str, _name: &str) -> Result<IndicatorState, BmcError> {
        Ok(indicators::state(&self.system("read an indicator").await?.body))
    }

    async fn set_indicator(
        &self,
        _component: &str,
        _name: &str,
        state: IndicatorState,
    ) -> Result<(), BmcError> {
        let action = "set an indicator";
        let system = self.system(action).await?;
        let patch = indicators::patch(&system.body, state)
            .ok_or_else(|| self.client.error(ErrorKind::Unsupported, action, "it has no such indicator"))?;
        self.patch(action, self.system_path(action).await?, &system, &patch).await
    }

    async fn virtual_media(&self) -> Result<Vec<VirtualDrive>, BmcError> {
        self.list_media().await
    }

    async fn insert_media(&self, kind: MediaKind, url: &str) -> Result<(), BmcError> {
        self.insert(kind, url).await
    }

    async fn eject_media(&self, kinds: &[MediaKind]) -> Result<(), BmcError> {
        self.eject(kinds).await
    }

    async fn insert_boot_medium(&self, url: &str, mark: &str) -> Result<(), BmcError> {
        self.insert_own(url, mark).await
    }

    async fn eject_boot_medium(&self, mark: &str) -> Result<(), BmcError> {
        self.eject_own(mark).await
    }

    async fn set_http_boot(&self, url: &str, mark: &str) -> Result<(), BmcError> {
        self.boot_from_url(url, mark).await
    }

    async fn clear_http_boot(&self, mark: &str) -> Result<(), BmcError> {
        self.forget_url(mark).await
    }

    fn supported_boot_devices(&self) -> &'static [BootDevice] {
        config::DEVICES
    }
}
