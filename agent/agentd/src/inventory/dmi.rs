//! DMI identity, from `/sys/class/dmi/id`.

use super::sysfs::read;
use agent_protocol::inventory::{Firmware, SystemVendor};
use std::path::Path;

/// What is missing (no DMI, not root) is empty.
pub fn vendor(id: &Path) -> SystemVendor {
    let field = |name: &str| read(&id.join(name)).unwrap_or_default();
    SystemVendor {
        product_name: field("product_name"),
        serial_number: field("product_serial"),
        manufacturer: field("sys_vendor"),
        firmware: Firmware {
            vendor: field("bios_vendor"),
            version: field("bios_version"),
            build_date: field("bios_date"),
        },
    }
}
