//! The names of the drivers.

use crate::{BmcError, ErrorKind};

/// Names of the drivers, as in Ironic.
pub const DRIVERS: &[&str] = &["redfish", "ipmi", "fake-hardware"];

/// The error for a driver that the site has not enabled.
pub(crate) fn not_enabled(driver: &str, enabled: &[String]) -> BmcError {
    let driver: String = driver.chars().take(64).collect();
    let message = format!(
        "driver '{driver}' is not enabled (enabled_hardware_types); enabled are: {}",
        enabled.join(", ")
    );
    BmcError::new(ErrorKind::Config, "", "choose a driver", message)
}

/// The error for a driver that is not in [`DRIVERS`].
pub(crate) fn unknown(driver: &str) -> BmcError {
    let driver: String = driver.chars().take(64).collect();
    let message = format!("unknown driver '{driver}'; known are: {}", DRIVERS.join(", "));
    BmcError::new(ErrorKind::Config, "", "choose a driver", message)
}
