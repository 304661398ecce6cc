//! Network interfaces that are hardware: `/sys/class/net` and their addresses.

use super::sysfs::read;
use agent_protocol::inventory::Interface;
use nix::ifaddrs::getifaddrs;
use std::net::IpAddr;
use std::path::Path;

/// ARPHRD_ETHER of linux/if_arp.h.
const ETHERNET: &str = "1";
const NO_MAC: &str = "00:00:00:00:00:00";

/// All physical Ethernet interfaces, by name. Bridges, VLANs, loopback and other interfaces without
/// a device behind them are left out, as in ironic-python-agent.
pub fn interfaces(class: &Path) -> Vec<Interface> {
    let Ok(entries) = std::fs::read_dir(class) else { return Vec::new() };
    let mut found: Vec<Interface> = entries.flatten().filter_map(|entry| interface(&entry.path())).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    for (name, ip) in addresses() {
        let Some(interface) = found.iter_mut().find(|interface| interface.name == name) else { continue };
        match ip {
            IpAddr::V4(ip) => interface.ipv4_address.get_or_insert_with(|| ip.to_string()),
            IpAddr::V6(ip) => interface.ipv6_address.get_or_insert_with(|| ip.to_string()),
        };
    }
    found
}

fn interface(path: &Path) -> Option<Interface> {
    let device = path.join("device");
    // A card in a bond shows the bond's address as its own.
    let own = read(&path.join("bonding_slave/perm_hwaddr")).or_else(|| read(&path.join("address")));
    let mac_address = own.filter(|mac| mac.len() == 17 && mac != NO_MAC)?;
    if !device.exists() || read(&path.join("type")).as_deref() != Some(ETHERNET) {
        return None;
    }
    let target = |path: &Path| Some(std::fs::canonicalize(path).ok()?.file_name()?.to_str()?.to_owned());
    Some(Interface {
        name: path.file_name()?.to_str()?.to_owned(),
        mac_address: mac_address.to_lowercase(),
        // Reading the carrier of an interface that is down is an error; it has none.
        has_carrier: read(&path.join("carrier")).as_deref() == Some("1"),
        vendor: pci_id(&device, "vendor"),
        product: pci_id(&device, "device"),
        speed_mbps: read(&path.join("speed")).and_then(|speed| speed.parse().ok()).filter(|&speed| speed > 0),
        driver: target(&device.join("driver")),
        pci_address: pci_address(&device),
        ..Interface::default()
    })
}

/// A virtio NIC hangs below its PCI function: look one up.
fn pci_id(device: &Path, name: &str) -> Option<String> {
    let id = read(&device.join(name)).filter(|id| id.starts_with("0x"))?;
    let parent = std::fs::canonicalize(device).ok().and_then(|path| read(&path.parent()?.join(name)));
    match parent.filter(|_| pci_name(device).is_none()) {
        Some(parent) if parent.starts_with("0x") => Some(parent),
        _ => Some(id),
    }
}

fn pci_address(device: &Path) -> Option<String> {
    pci_name(device).or_else(|| pci_name(std::fs::canonicalize(device).ok()?.parent()?))
}

/// `0000:00:03.0` when the path ends in such a name.
fn pci_name(path: &Path) -> Option<String> {
    let path = std::fs::canonicalize(path).ok()?;
    let name = path.file_name()?.to_str()?;
    let shape: String = name.chars().map(|c| if c.is_ascii_hexdigit() { 'x' } else { c }).collect();
    (shape == "xxxx:xx:xx.x").then(|| name.to_owned())
}

/// Names and global addresses.
fn addresses() -> Vec<(String, IpAddr)> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    all.filter_map(|one| {
        let address = one.address?;
        let ip = match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(v4), _) => IpAddr::V4(v4.ip()),
            (_, Some(v6)) if !v6.ip().is_unicast_link_local() => IpAddr::V6(v6.ip()),
            _ => return None,
        };
        Some((one.interface_name, ip))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_hardware_with_a_mac_is_listed() {
        let root = tempfile::tempdir().expect("tempdir");
        let class = root.path().join("class/net");
        let make = |name: &str, mac: &str, device: bool| {
            let path = class.join(name);
            fs::create_dir_all(&path).expect("dir");
            fs::write(path.join("address"), format!("{mac}\n")).expect("address");
            fs::write(path.join("type"), "1\n").expect("type");
            if device {
                let function = root.path().join("devices/0000:00:03.0");
                fs::create_dir_all(&function).expect("function");
                fs::write(function.join("vendor"), "0x8086\n").expect("vendor");
                std::os::unix::fs::symlink(&function, path.join("device")).expect("link");
            }
        };
        make("an-test-nic", "52:54:00:AA:BB:CC", true);
        make("an-test-br", "52:54:00:00:00:01", false);
        make("an-test-lo", NO_MAC, true);
        make("an-test-slave", "52:54:00:AA:BB:CC", true);
        let slave = class.join("an-test-slave/bonding_slave");
        fs::create_dir(&slave).expect("dir");
        fs::write(slave.join("perm_hwaddr"), "52:54:00:aa:bb:dd\n").expect("address");
        let found = interfaces(&class);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1].mac_address, "52:54:00:aa:bb:dd", "the address of the card, not of its bond");
        assert_eq!(found[0].mac_address, "52:54:00:aa:bb:cc");
        assert_eq!(found[0].vendor.as_deref(), Some("0x8086"));
        assert_eq!(found[0].pci_address.as_deref(), Some("0000:00:03.0"));
        assert!(!found[0].has_carrier);
    }
}
