//! The inventory of the fake: made up, always the same for one node, and saying so.

use serde_json::{Map, Value, json};

use super::{BmcError, latency};

/// As ironic-python-agent inspects; every number is made up.
pub(crate) fn inspect(info: &Map<String, Value>, node_uuid: &str) -> Result<Value, BmcError> {
    latency(info)?;
    // FNV-1a: two nodes do not get one address, which is locally administered.
    let hash = node_uuid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    let mac = format!("02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}");
    let gib = 1_u64 << 30;
    Ok(json!({
        "inventory": {
            "cpu": {"count": 4, "architecture": "x86_64", "model_name": "fake processor", "frequency": 2000},
            "memory": {"physical_mb": 8192, "total": 8 * gib},
            "interfaces": [{"name": "fake0", "mac_address": mac, "has_carrier": true}],
            "disks": [{"name": "fake-disk-0", "size": 20 * gib, "model": "fake disk", "serial": "fake-0",
                "rotational": false}],
            "system_vendor": {"manufacturer": "Anneal", "product_name": "fake-hardware (made up)",
                "serial_number": node_uuid},
            "boot": {"current_boot_mode": "uefi"},
        },
        "plugin_data": {"fake": "this inventory is made up by the driver fake-hardware"},
    }))
}
