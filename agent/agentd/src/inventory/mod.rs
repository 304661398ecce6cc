//! The hardware of the machine, by sysinfo, `/proc` and `/sys` only: no tool's text is read.

mod cpu;
mod dmi;
mod memory;
mod net;
mod sysfs;

use crate::config::Config;
use agent_protocol::inventory::{Boot, Disk, Interface, Inventory};
use std::path::Path;
use sysfs::read;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// Look at everything. What cannot be read is left empty. `disks` come from the block room.
pub fn collect(config: &Config, disks: Vec<Disk>) -> Inventory {
    let sys = Path::new("/sys");
    let system = System::new_with_specifics(
        RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing().with_frequency())
            .with_memory(MemoryRefreshKind::nothing().with_ram()),
    )
    .inspect_err(|error| tracing::warn!(%error, "processors and memory cannot be read"))
    .ok();
    let uefi = sys.join("firmware/efi").exists();
    Inventory {
        interfaces: interfaces(),
        cpu: cpu::cpu(system.as_ref(), &read(Path::new("/proc/cpuinfo")).unwrap_or_default()),
        disks,
        memory: memory::memory(
            system.as_ref().map_or(0, System::total_memory),
            &sys.join("firmware/dmi/entries"),
        ),
        // In-band IPMI is not spoken; this is what ironic-python-agent says of a machine without a BMC.
        bmc_address: Some("0.0.0.0".into()),
        bmc_v6address: Some("::/0".into()),
        bmc_mac: None,
        system_vendor: dmi::vendor(&sys.join("class/dmi/id")),
        boot: Boot {
            current_boot_mode: if uefi { "uefi" } else { "bios" }.into(),
            pxe_interface: config.boot_mac.map(|mac| mac.to_string()),
        },
        hostname: hostname(),
        anneal: None,
    }
}

/// The name of this machine; that of the agent where it has none.
pub fn hostname() -> String {
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .filter(|name| !name.is_empty() && name != "(none)")
        .unwrap_or_else(|| "anneal-agent".into())
}

/// Network interfaces of this machine that are hardware.
pub fn interfaces() -> Vec<Interface> {
    net::interfaces(Path::new("/sys/class/net"))
}
