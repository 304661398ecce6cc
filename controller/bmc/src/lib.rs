//! Out-of-band control of one node through its BMC: power, boot device, steps, inspection.
//!
//! ```text
//!   node.driver + node.driver_info ── Builtin::open() ──▶ Arc<dyn Bmc> ──▶ redfish │ ipmi │ fake
//!   Settings: [bmc] ────────────────┴─ Builtin::validate()  pure: which key is missing or wrong
//!   node.driver + node.interfaces ─── interfaces.rs: the one table ──▶ abilities(), run_step()
//!                                                     ▲
//!                       Declared: constants next to the code of redfish, fake, direct
//! ```
//!
//! A [`Bmc`] holds no policy: it does not wait until a node is off, nor decide whether it may be
//! switched; the conductor polls [`Bmc::power_state`] and decides. Retries inside this crate are for
//! transient faults of one request only (connection reset, 503), and are bounded by the request's own
//! time budget. Passwords are never in an error, a log line, a URL or a command line.

mod bios_settings;
mod certificates;
mod declared;
mod direct;
mod driver_info;
mod driver_names;
mod drivers;
mod error;
mod execute;
pub mod fake;
mod interfaces;
mod ipmi;
mod priorities;
mod ramdisk;
mod redfish;
mod secret;
mod settings;
mod small_file;
mod types;

pub use declared::{Arg, Declared, StepCall, StepEnd, StepFn, StepFuture};
pub use driver_names::DRIVERS;
pub use drivers::{Builtin, Drivers, host, properties};
pub use error::{BmcError, ErrorKind};
pub use interfaces::{Implementation, Interface, abilities, interfaces};
pub use priorities::{BadPriorities, check_priorities};
pub use settings::Settings;
pub use types::{
    BootDevice, BootMode, BootSetting, Indicator, IndicatorState, MediaKind, ParseError, VirtualDrive,
};

use async_trait::async_trait;
use model::Health;
pub use model::{PowerState, PowerTarget};
use serde_json::{Map, Value};
use std::time::Duration;

/// One request to a BMC, or one run of ipmitool, with its answer, takes no longer, whatever [`Settings::request_timeout_s`] is.
pub const LONGEST_REQUEST: Duration = Duration::from_secs(30);

/// One node's BMC.
///
/// Calls may be made from several tasks; each is complete in itself and safe to repeat. Every call is
/// bounded in time by the driver (about a minute at worst), so a dead BMC gives
/// [`ErrorKind::Unreachable`] or [`ErrorKind::Timeout`] and never hangs its caller.
#[async_trait]
pub trait Bmc: Send + Sync {
    /// Whether the node has power now, read from the BMC.
    ///
    /// # Errors
    /// [`ErrorKind::NoPowerState`] when the BMC answers but does not know (Redfish `PowerState: null`).
    async fn power_state(&self) -> Result<PowerState, BmcError>;

    /// Whether the node has power now, and the health of its hardware; `None` from a BMC that reports none. Sends no
    /// more requests than [`Bmc::power_state`].
    ///
    /// # Errors
    /// As [`Bmc::power_state`]: a BMC that reports no health is no error.
    async fn state(&self) -> Result<(PowerState, Option<Health>), BmcError> {
        Ok((self.power_state().await?, None))
    }

    /// Ask for a power action; returns once the BMC has accepted it, the caller polls the state.
    ///
    /// An action whose result already holds is accepted and does nothing; a reboot of a node that is
    /// off switches it on, as in Ironic. Where the BMC has no hard reset, `Reboot` is off, a bounded
    /// wait for off, and on.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the BMC offers no such action.
    async fn set_power(&self, action: PowerTarget) -> Result<(), BmcError>;

    /// The boot device override in force.
    ///
    /// # Errors
    /// As for any call; a BMC that does not report it gives `device: None`.
    async fn boot_device(&self) -> Result<BootSetting, BmcError>;

    /// Set the device of the next boot, or of every boot when `persistent`.
    ///
    /// `mode: None` leaves the boot mode (BIOS or UEFI) as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the BMC cannot boot from `device`, or has no such mode.
    async fn set_boot_device(
        &self,
        device: BootDevice,
        persistent: bool,
        mode: Option<BootMode>,
    ) -> Result<(), BmcError>;

    /// Check over the network that the address answers, the credentials work and the system exists.
    ///
    /// # Errors
    /// The first check that fails.
    async fn verify(&self) -> Result<(), BmcError>;

    /// Boot in this firmware mode from the next start on.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the BMC has no such mode, or the driver cannot set one.
    async fn set_boot_mode(&self, _mode: BootMode) -> Result<(), BmcError> {
        Err(BmcError::not_offered("set the boot mode"))
    }

    /// Secure boot, from the next start on.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the firmware has none, or does not boot in UEFI mode.
    async fn set_secure_boot(&self, _on: bool) -> Result<(), BmcError> {
        Err(BmcError::not_offered("set secure boot"))
    }

    /// Send the node a non-maskable interrupt.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the BMC offers none.
    async fn inject_nmi(&self) -> Result<(), BmcError> {
        Err(BmcError::not_offered("inject an NMI"))
    }

    /// The firmware's settings that are in force, by name. Some may be passwords.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the BMC reports none.
    async fn bios_settings(&self) -> Result<Map<String, Value>, BmcError> {
        Err(BmcError::not_offered("read the BIOS settings"))
    }

    /// The indicators (LEDs) of the node.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] with a driver that knows none.
    async fn indicators(&self) -> Result<Vec<Indicator>, BmcError> {
        Err(BmcError::not_offered("read the indicators"))
    }

    /// The state of one of [`Bmc::indicators`].
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when there is no such indicator.
    async fn indicator(&self, _component: &str, _name: &str) -> Result<IndicatorState, BmcError> {
        Err(BmcError::not_offered("read an indicator"))
    }

    /// Set the state of one of [`Bmc::indicators`].
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when there is no such indicator, or it has no such state.
    async fn set_indicator(
        &self,
        _component: &str,
        _name: &str,
        _state: IndicatorState,
    ) -> Result<(), BmcError> {
        Err(BmcError::not_offered("set an indicator"))
    }

    /// The virtual drives.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when there is none.
    async fn virtual_media(&self) -> Result<Vec<VirtualDrive>, BmcError> {
        Err(BmcError::not_offered("read the virtual media"))
    }

    /// Put the image of this URL, which the BMC must reach, into the first virtual drive of the kind,
    /// in place of what is in it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when there is no such drive.
    async fn insert_media(&self, _kind: MediaKind, _url: &str) -> Result<(), BmcError> {
        Err(BmcError::not_offered("insert virtual media"))
    }

    /// Empty the virtual drives of these kinds.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when there is no virtual drive at all.
    async fn eject_media(&self, _kinds: &[MediaKind]) -> Result<(), BmcError> {
        Err(BmcError::not_offered("eject virtual media"))
    }

    /// Put the image of this URL, which the BMC must reach, into a virtual CD drive that is empty or holds a medium whose URL
    /// or name contains `mark`. Any other medium stays.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when there is no such drive; the error names the media that are not ours.
    async fn insert_boot_medium(&self, _url: &str, _mark: &str) -> Result<(), BmcError> {
        Err(BmcError::not_offered("insert a boot medium"))
    }

    /// Empty the virtual drives that hold a medium whose URL or name contains `mark`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when there is no virtual drive at all, or when the BMC refuses for good to show them.
    async fn eject_boot_medium(&self, _mark: &str) -> Result<(), BmcError> {
        Err(BmcError::not_offered("eject a boot medium"))
    }

    /// Let the node's UEFI firmware download the image of this URL at its next boot, and boot that (`HttpBootUri`, or a setting of
    /// the BIOS). It takes the place of no URL without `mark`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the BMC has no URL for its firmware, or one that is not ours.
    async fn set_http_boot(&self, _url: &str, _mark: &str) -> Result<(), BmcError> {
        Err(BmcError::not_offered("boot from a URL"))
    }

    /// Take back the URL of [`Bmc::set_http_boot`], if it contains `mark`, and its boot override if that is still in force.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the BMC refuses for good to show the settings that could hold the URL, and what else it refuses.
    async fn clear_http_boot(&self, _mark: &str) -> Result<(), BmcError> {
        Err(BmcError::not_offered("forget a URL to boot from"))
    }

    /// Devices that [`Bmc::set_boot_device`] may be asked for: what the driver can say; the BMC itself
    /// may support fewer.
    fn supported_boot_devices(&self) -> &'static [BootDevice];
}
