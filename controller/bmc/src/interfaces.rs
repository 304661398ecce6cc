//! Drivers, the implementations that they may use for each interface, and what each of those can do: the
//! one table of it.

use std::collections::BTreeMap;

use model::abilities::{Abilities, Inspect, Rescue};
use model::boot_medium;
use model::step::StepKind;

use crate::declared::Declared;
use crate::{BmcError, DRIVERS, ErrorKind, direct, fake, ipmi, ramdisk, redfish};

/// A way to do what an interface is for.
#[derive(Debug)]
pub struct Implementation {
    /// Its name in `node.<interface>_interface`.
    pub name: &'static str,
    /// Its out-of-band steps.
    pub(crate) steps: &'static [Declared],
}

/// An interface of a driver.
#[derive(Debug)]
pub struct Interface {
    /// `bios`, `boot`, …: Ironic's name.
    pub name: &'static str,
    /// What may stand in `node.<interface>_interface`. The first is for nodes that name none.
    pub enabled: &'static [Implementation],
}

impl Interface {
    /// The implementation of nodes that name none.
    pub fn default(&self) -> &'static Implementation {
        &self.enabled[0]
    }

    fn named(&self, name: &str) -> Option<&'static Implementation> {
        self.enabled.iter().find(|known| known.name == name)
    }

    fn known(&self) -> String {
        self.enabled.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
    }
}

const fn plain(name: &'static str) -> Implementation {
    Implementation { name, steps: &[] }
}

const DIRECT: Implementation = Implementation { name: "direct", steps: direct::STEPS };

const CUSTOM_AGENT: Implementation =
    Implementation { name: "custom-agent", steps: direct::CUSTOM_AGENT_STEPS };

const RAMDISK: Implementation =
    Implementation { name: model::ramdisk_deploy::RAMDISK, steps: ramdisk::STEPS };

/// Boot interfaces of nodes with a Redfish BMC.
const REDFISH_BOOT: &[Implementation] = &[
    plain(boot_medium::IPXE),
    plain(boot_medium::HTTP_IPXE),
    plain(boot_medium::VIRTUAL_MEDIA),
    plain(boot_medium::HTTP_BOOT),
];

const fn of(name: &'static str, enabled: &'static [Implementation]) -> Interface {
    assert!(!enabled.is_empty(), "an interface has a default");
    Interface { name, enabled }
}

const REDFISH: &[Interface] = &[
    of("bios", &[Implementation { name: "redfish", steps: redfish::BIOS_STEPS }, plain("no-bios")]),
    of("boot", REDFISH_BOOT),
    of("console", &[plain("no-console")]),
    of("deploy", &[DIRECT, CUSTOM_AGENT, RAMDISK]),
    of("firmware", &[plain("no-firmware")]),
    of("inspect", &[plain("redfish"), plain("agent"), plain("no-inspect")]),
    of("management", &[Implementation { name: "redfish", steps: redfish::SECURE_BOOT_STEPS }]),
    of("network", &[plain("noop")]),
    of("power", &[plain("redfish")]),
    of("raid", &[plain("agent"), plain("no-raid")]),
    of("rescue", &[plain("agent"), plain("no-rescue")]),
    of("storage", &[plain("noop")]),
    of("vendor", &[plain("no-vendor")]),
];

const IPMI: &[Interface] = &[
    of("bios", &[plain("no-bios")]),
    of("boot", &[plain(boot_medium::IPXE)]),
    of("console", &[plain("no-console")]),
    of("deploy", &[DIRECT, CUSTOM_AGENT, RAMDISK]),
    of("firmware", &[plain("no-firmware")]),
    of("inspect", &[plain("agent"), plain("no-inspect")]),
    of("management", &[plain("ipmitool")]),
    of("network", &[plain("noop")]),
    of("power", &[plain("ipmitool")]),
    of("raid", &[plain("agent"), plain("no-raid")]),
    of("rescue", &[plain("agent"), plain("no-rescue")]),
    of("storage", &[plain("noop")]),
    of("vendor", &[plain("no-vendor")]),
];

const FAKE: &[Interface] = &[
    of("bios", &[Implementation { name: "fake", steps: fake::BIOS_STEPS }, plain("no-bios")]),
    of("boot", &[plain("fake")]),
    of("console", &[plain("fake"), plain("no-console")]),
    of(
        "deploy",
        &[Implementation { name: "fake", steps: fake::DEPLOY_STEPS }, DIRECT, CUSTOM_AGENT, RAMDISK],
    ),
    of("firmware", &[plain("fake"), plain("no-firmware")]),
    of("inspect", &[plain("fake"), plain("agent"), plain("no-inspect")]),
    of("management", &[Implementation { name: "fake", steps: fake::MANAGEMENT_STEPS }]),
    of("network", &[plain("noop")]),
    of("power", &[plain("fake")]),
    of("raid", &[Implementation { name: "fake", steps: fake::RAID_STEPS }, plain("agent"), plain("no-raid")]),
    of("rescue", &[plain("fake"), plain("agent"), plain("no-rescue")]),
    of("storage", &[plain("noop"), plain("fake")]),
    of("vendor", &[Implementation { name: "fake", steps: fake::VENDOR_STEPS }, plain("no-vendor")]),
];

/// The interfaces of a driver in the order of their names; `None` for an unknown driver.
pub fn interfaces(driver: &str) -> Option<&'static [Interface]> {
    match driver {
        redfish::NAME => Some(REDFISH),
        ipmi::NAME => Some(IPMI),
        fake::NAME => Some(FAKE),
        _ => None,
    }
}

/// Every implementation of every driver with the interface it is of. One that several drivers use comes
/// several times.
pub(crate) fn implementations() -> impl Iterator<Item = (&'static str, &'static Implementation)> {
    let interfaces = DRIVERS.iter().filter_map(|driver| interfaces(driver)).flatten();
    interfaces.flat_map(|interface| interface.enabled.iter().map(|known| (interface.name, known)))
}

/// The implementations that a node uses: of each interface of its driver the one it names
/// (`deploy_interface` → `direct`), else the default.
///
/// # Errors
/// [`ErrorKind::Config`] naming the driver, interface or implementation that is not known, and those that are.
pub(crate) fn chosen(
    driver: &str,
    names: &BTreeMap<String, String>,
) -> Result<Vec<(&'static str, &'static Implementation)>, BmcError> {
    let config = |message: String| BmcError::new(ErrorKind::Config, "", "choose interfaces", message);
    let table = interfaces(driver).ok_or_else(|| crate::driver_names::unknown(driver))?;
    let key = |interface: &Interface| format!("{}_interface", interface.name);
    if let Some(stranger) = names.keys().find(|name| !table.iter().any(|known| key(known) == **name)) {
        let known = table.iter().map(key).collect::<Vec<_>>().join(", ");
        return Err(config(format!("driver {driver} has no {}; it has {known}", short(stranger))));
    }
    let choose = |interface: &'static Interface| match names.get(&key(interface)) {
        None => Ok((interface.name, interface.default())),
        Some(name) => interface.named(name).map(|found| (interface.name, found)).ok_or_else(|| {
            let (given, key) = (short(name), key(interface));
            config(format!("{key} '{given}' is not enabled with driver {driver}; use {}", interface.known()))
        }),
    };
    table.iter().map(choose).collect()
}

fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

/// What a node can do through its driver, from the implementations that it uses.
///
/// # Errors
/// [`ErrorKind::Config`] naming the driver, interface or implementation that is not known, and those that are.
pub fn abilities(driver: &str, names: &BTreeMap<String, String>) -> Result<Abilities, BmcError> {
    let chosen = chosen(driver, names)?;
    let name_of = |interface| chosen.iter().find(|(name, _)| *name == interface).map(|(_, found)| found.name);
    let steps = StepKind::ALL.map(|kind| {
        let steps = chosen.iter().flat_map(|(interface, found)| {
            found.steps.iter().filter_map(|step| step.catalogue(kind, interface, found.name))
        });
        (kind, steps.collect())
    });
    Ok(Abilities {
        agent: name_of("deploy")
            .is_some_and(|name| [DIRECT.name, CUSTOM_AGENT.name, RAMDISK.name].contains(&name)),
        inspect: match name_of("inspect") {
            Some("agent") => Inspect::Agent,
            Some("no-inspect") | None => Inspect::None,
            Some("fake") => Inspect::Fake,
            Some(_) => Inspect::Bmc,
        },
        rescue: match name_of("rescue") {
            Some("agent") => Rescue::Agent,
            Some("fake") => Rescue::Fake,
            _ => Rescue::None,
        },
        steps: steps.into(),
    })
}
