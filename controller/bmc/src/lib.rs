//! What is done with one node out-of-band: power, boot device, steps, inspection, through its BMC.
//!
//! ```text
//!   node.driver + node.driver_info ── open() ──▶ Arc<dyn Bmc> ──▶ redfish │ ipmi │ fake
//!                                  └─ validate()  pure: which key is missing or wrong
//!   node.driver + node.interfaces ─── interfaces.rs: the one table ──▶ abilities(), run_step()
//!                                                     ▲
//!                       Declared: constants beside the code of redfish, fake, direct
//! ```
//!
//! A [`Bmc`] holds no policy: it does not wait until a node is off, nor decide whether it may be
//! switched; the conductor polls [`Bmc::power_state`] and decides. Retries inside this crate are for
//! transient faults of one request only (connection reset, 503), and are bounded by the request's own
//! time budget. Passwords are never in an error, a log line, a URL or a command line.

mod declared;
mod direct;
mod driver_info;
mod drivers;
mod error;
mod execute;
pub mod fake;
mod interfaces;
mod ipmi;
mod priorities;
mod redfish;
mod secret;
mod settings;
mod types;

pub use declared::{Arg, Declared, StepCall, StepEnd, StepFn, StepFuture};
pub use drivers::{Builtin, DRIVERS, Drivers, open, properties, validate};
pub use error::{BmcError, ErrorKind};
pub use interfaces::{Implementation, Interface, abilities, interfaces};
pub use priorities::{BadPriorities, check_priorities};
pub use types::{BootDevice, BootMode, BootSetting, ParseError, PowerAction, PowerState};

use async_trait::async_trait;

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
    /// [`ErrorKind::Protocol`] when the BMC answers but does not know (Redfish `PowerState: null`).
    async fn power_state(&self) -> Result<PowerState, BmcError>;

    /// Ask for a power action; returns once the BMC has accepted it, the caller polls the state.
    ///
    /// An action whose result already holds is accepted and does nothing; a reboot of a node that is
    /// off switches it on, as in Ironic. Where the BMC has no hard reset, `Reboot` is off, a bounded
    /// wait for off, and on.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the BMC offers no such action.
    async fn set_power(&self, action: PowerAction) -> Result<(), BmcError>;

    /// The boot device override in force.
    ///
    /// # Errors
    /// As for any call; a BMC that cannot tell gives `device: None`.
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

    /// Really go out: the address answers, the credentials work, the system exists.
    ///
    /// # Errors
    /// The first thing that does not hold.
    async fn verify(&self) -> Result<(), BmcError>;

    /// Devices that [`Bmc::set_boot_device`] may be asked for: what the driver can say; the BMC itself
    /// may support fewer.
    fn supported_boot_devices(&self) -> &'static [BootDevice];
}
