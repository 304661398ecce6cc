//! The `ipmi` driver: `ipmitool` over RMCP+ (lanplus).

mod config;
mod parse;
mod tool;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::{Bmc, BmcError, BootDevice, BootMode, BootSetting, ErrorKind, PowerState, PowerTarget, Settings};
use config::Config;
pub(crate) use config::{NAME, PROPERTIES};

const DEVICES: &[BootDevice] = &[
    BootDevice::Pxe,
    BootDevice::Disk,
    BootDevice::Cdrom,
    BootDevice::Bios,
    BootDevice::Safe,
    BootDevice::Floppy,
];

pub(crate) fn validate(info: &Map<String, Value>, settings: &Arc<Settings>) -> Result<(), BmcError> {
    config::parse(info, settings).map(drop)
}

pub(crate) fn open(info: &Map<String, Value>, settings: &Arc<Settings>) -> Result<Arc<dyn Bmc>, BmcError> {
    Ok(Arc::new(Ipmi { config: config::parse(info, settings)? }))
}

struct Ipmi {
    config: Config,
}

impl Ipmi {
    async fn power(&self, action: &str) -> Result<PowerState, BmcError> {
        let output = tool::run(&self.config, action, &["chassis", "power", "status"]).await?;
        parse::power_state(&output).ok_or_else(|| {
            let message = format!("it reports no power state: {output}");
            tool::error(&self.config, ErrorKind::Protocol, action, &message)
        })
    }

    async fn boot(&self, action: &str) -> Result<BootSetting, BmcError> {
        let output = tool::run(&self.config, action, &["chassis", "bootparam", "get", "5"]).await?;
        parse::boot_setting(&output).ok_or_else(|| {
            let message = format!("it reports no boot flags: {output}");
            tool::error(&self.config, ErrorKind::Protocol, action, &message)
        })
    }

    fn unsupported(&self, action: &str, message: &str) -> BmcError {
        tool::error(&self.config, ErrorKind::Unsupported, action, message)
    }
}

#[async_trait]
impl Bmc for Ipmi {
    async fn power_state(&self) -> Result<PowerState, BmcError> {
        self.power("read the power state").await
    }

    async fn set_power(&self, power: PowerTarget) -> Result<(), BmcError> {
        let action = format!("do '{}'", power.as_str());
        let now = self.power(&action).await?;
        let word = match power {
            PowerTarget::SoftReboot => {
                return Err(
                    self.unsupported(&action, "IPMI has no soft reboot; use soft power off, then power on")
                );
            }
            PowerTarget::On | PowerTarget::Off | PowerTarget::SoftOff if now == power.resulting_state() => {
                return Ok(());
            }
            PowerTarget::On => "on",
            PowerTarget::Off => "off",
            PowerTarget::SoftOff => "soft",
            // A reset of a node that is off is refused ("not supported in present state").
            PowerTarget::Reboot if now == PowerState::Off => "on",
            PowerTarget::Reboot => "reset",
        };
        tool::run(&self.config, &action, &["chassis", "power", word]).await.map(drop)
    }

    async fn boot_device(&self) -> Result<BootSetting, BmcError> {
        self.boot("read the boot device").await
    }

    async fn set_boot_device(
        &self,
        device: BootDevice,
        persistent: bool,
        mode: Option<BootMode>,
    ) -> Result<(), BmcError> {
        let action = format!("set boot device {device}");
        let name = parse::device_name(device)
            .ok_or_else(|| self.unsupported(&action, &format!("IPMI has no boot device {device}")))?;
        // The boot flags hold the mode too: setting the device without it would set BIOS mode.
        let mode = match mode {
            Some(mode) => Some(mode),
            None => self.boot(&action).await.ok().and_then(|now| now.mode),
        };
        // Without this, the BMC forgets the flags 60 s later if no boot has happened (IPMI 2.0, table
        // 28-14, parameter 3). Not every BMC has it; then the 60 s hold.
        if let Err(error) = tool::run(&self.config, &action, &["raw", "0x00", "0x08", "0x03", "0x08"]).await {
            if error.kind() == ErrorKind::Auth || error.kind() == ErrorKind::Unreachable {
                return Err(error);
            }
            tracing::debug!(%error, "BMC: the time limit of boot flags stays");
        }
        let mut options = Vec::new();
        if mode == Some(BootMode::Uefi) {
            options.push("efiboot");
        }
        if persistent {
            options.push("persistent");
        }
        let options = format!("options={}", options.join(","));
        let mut command = vec!["chassis", "bootdev", name];
        if options.len() > "options=".len() {
            command.push(&options);
        }
        tool::run(&self.config, &action, &command).await.map(drop)
    }

    async fn verify(&self) -> Result<(), BmcError> {
        self.power("verify the BMC").await.map(drop)
    }

    async fn inject_nmi(&self) -> Result<(), BmcError> {
        tool::run(&self.config, "inject an NMI", &["chassis", "power", "diag"]).await.map(drop)
    }

    fn supported_boot_devices(&self) -> &'static [BootDevice] {
        DEVICES
    }
}
