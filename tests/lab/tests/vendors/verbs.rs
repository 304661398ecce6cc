//! The verbs, each judged by the tree afterwards and not by what the driver says.

use std::future::Future;
use std::pin::Pin;

use bmc::{BootDevice, MediaKind, PowerState, PowerTarget};
use serde_json::json;

use crate::machine::{Machine, refusal};
use crate::offers;
use crate::table::Cell;

const MARK: &str = "anneal-7";
const MEDIUM: &str = "http://192.0.2.1:8089/boot/media/anneal-7-0123456789abcdef.iso";

type Work = for<'a> fn(&'a Machine) -> Pin<Box<dyn Future<Output = Cell> + 'a>>;

/// Names and verbs, in the order of the table.
pub const ALL: &[(&str, Work)] = &[
    ("validate", |machine| Box::pin(validate(machine))),
    ("on, off", |machine| Box::pin(on_and_off(machine))),
    ("reboot", |machine| Box::pin(reboot(machine))),
    ("pxe once", |machine| Box::pin(device(machine, BootDevice::Pxe, &["Pxe"], false))),
    ("pxe always", |machine| Box::pin(device(machine, BootDevice::Pxe, &["Pxe"], true))),
    ("disk once", |machine| Box::pin(device(machine, BootDevice::Disk, &["Hdd"], false))),
    ("disk always", |machine| Box::pin(device(machine, BootDevice::Disk, &["Hdd"], true))),
    ("cd once", |machine| Box::pin(device(machine, BootDevice::Cdrom, &["UsbCd", "Cd"], false))),
    ("insert", |machine| Box::pin(insert(machine))),
    ("insert by hand", |machine| Box::pin(insert_by_hand(machine))),
    ("read BIOS", |machine| Box::pin(read_bios(machine))),
    ("set BIOS", |machine| Box::pin(set_bios(machine))),
    ("URL", |machine| Box::pin(url(machine))),
    ("inspect", |machine| Box::pin(inspect(machine))),
];

fn works(outcome: Result<String, String>) -> Cell {
    outcome.map_or_else(Cell::Wrong, Cell::Works)
}

fn ensure(holds: bool, why: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.into()) }
}

fn text(error: bmc::BmcError) -> String {
    error.to_string()
}

async fn validate(machine: &Machine) -> Cell {
    works(machine.bmc.verify().await.map(|()| String::new()).map_err(text))
}

async fn on_and_off(machine: &Machine) -> Cell {
    let work = async {
        for (target, word, state) in [
            (PowerTarget::Off, "Off", PowerState::Off),
            (PowerTarget::Off, "Off", PowerState::Off),
            (PowerTarget::On, "On", PowerState::On),
            (PowerTarget::On, "On", PowerState::On),
        ] {
            machine.bmc.set_power(target).await.map_err(text)?;
            let now = machine.look()["PowerState"].clone();
            ensure(now == word, format!("PowerState is {now} after {}", target.as_str()))?;
            let read = machine.bmc.power_state().await.map_err(text)?;
            ensure(read == state, format!("the driver reads {read:?}"))?;
        }
        ensure(machine.recorded.tree().boots.len() == 1, "it was not started once")?;
        Ok(String::new())
    };
    works(work.await)
}

async fn reboot(machine: &Machine) -> Cell {
    let work = async {
        machine.bmc.set_power(PowerTarget::Reboot).await.map_err(text)?;
        ensure(machine.look()["PowerState"] == "On", "it is not on afterwards")?;
        ensure(machine.recorded.tree().boots.len() == 1, "it was not started once")?;
        Ok(String::new())
    };
    works(work.await)
}

/// A device for one boot is not that of the second; one for all is.
async fn device(machine: &Machine, device: BootDevice, names: &[&str], persistent: bool) -> Cell {
    let offered = offers::source(machine, names, if persistent { "Continuous" } else { "Once" });
    let set = machine.bmc.set_boot_device(device, persistent, None).await;
    if set.is_err() || !offered {
        return refusal(set, offered);
    }
    let work = async {
        let first = machine.boot().await?.source.unwrap_or_default();
        ensure(names.contains(&first.as_str()), format!("it boots from '{first}'"))?;
        let second = machine.boot().await?.source.unwrap_or_default();
        let again = names.contains(&second.as_str());
        ensure(again == persistent, format!("the second boot is from '{second}'"))?;
        Ok(first)
    };
    works(work.await)
}

async fn insert(machine: &Machine) -> Cell {
    let offered = offers::cd(machine);
    let inserted = machine.bmc.insert_boot_medium(MEDIUM, MARK).await;
    if inserted.is_err() || !offered {
        return refusal(inserted, offered);
    }
    let work = async {
        ensure(offers::media(machine) == [MEDIUM], format!("inserted: {:?}", offers::media(machine)))?;
        // Again, as after a kill.
        machine.bmc.insert_boot_medium(MEDIUM, MARK).await.map_err(text)?;
        ensure(offers::media(machine) == [MEDIUM], format!("inserted twice: {:?}", offers::media(machine)))?;
        for _ in 0..2 {
            machine.bmc.eject_boot_medium(MARK).await.map_err(text)?;
            ensure(offers::media(machine).is_empty(), "it is not ejected")?;
        }
        Ok(String::new())
    };
    works(work.await)
}

async fn insert_by_hand(machine: &Machine) -> Cell {
    let offered = offers::cd(machine);
    let url = "http://192.0.2.9/rescue.iso";
    let inserted = machine.bmc.insert_media(MediaKind::Cdrom, url).await;
    if inserted.is_err() || !offered {
        return refusal(inserted, offered);
    }
    let work = async {
        ensure(offers::media(machine) == [url], format!("inserted: {:?}", offers::media(machine)))?;
        machine.bmc.eject_boot_medium(MARK).await.map_err(text)?;
        ensure(offers::media(machine) == [url], "a foreign medium was ejected")?;
        machine.bmc.eject_media(MediaKind::ALL).await.map_err(text)?;
        ensure(offers::media(machine).is_empty(), "it is not ejected")?;
        Ok(String::new())
    };
    works(work.await)
}

async fn read_bios(machine: &Machine) -> Cell {
    let offered = offers::bios(machine);
    match machine.bmc.bios_settings().await {
        Ok(settings) if offered => {
            let bios = machine.linked("Bios").unwrap_or_default();
            let same = bios["Attributes"].as_object() == Some(&settings);
            works(ensure(same, "the settings differ").map(|()| format!("{} settings", settings.len())))
        }
        outcome => refusal(outcome.map(drop), offered),
    }
}

async fn set_bios(machine: &Machine) -> Cell {
    let bios = machine.linked("Bios").unwrap_or_default();
    let change = machine.recorded.tree().changeable_setting(&bios);
    let Some(change) = change else {
        let args = json!({"settings": [{"name": "BootMode", "value": "Uefi"}]});
        return refusal(machine.bios_step("apply_configuration", args).await.map(drop), false);
    };
    let work = async {
        for value in [&change.to, &change.from] {
            let args = json!({"settings": [{"name": change.name, "value": value}]});
            machine.bios_step("apply_configuration", args).await.map_err(text)?;
            machine.boot().await?;
            let bios = machine.linked("Bios").unwrap_or_default();
            let now = &bios["Attributes"][&change.name];
            ensure(now == value, format!("{} is {now} and not {value}", change.name))?;
        }
        Ok(change.name.clone())
    };
    works(work.await)
}

async fn url(machine: &Machine) -> Cell {
    let offered = offers::url(machine);
    let set = machine.bmc.set_http_boot(MEDIUM, MARK).await;
    if set.is_err() || !offered {
        return refusal(set, offered);
    }
    let work = async {
        // Again, as after a kill.
        machine.bmc.set_http_boot(MEDIUM, MARK).await.map_err(text)?;
        let boot = machine.boot().await?;
        ensure(boot.source.as_deref() == Some("UefiHttp"), format!("it boots from {:?}", boot.source))?;
        ensure(boot.urls == [MEDIUM], format!("URLs of the firmware: {:?}", boot.urls))?;
        machine.bmc.clear_http_boot("anneal-8").await.map_err(text)?;
        ensure(machine.boot().await?.urls == [MEDIUM], "the URL of another node was taken back")?;
        for _ in 0..2 {
            machine.bmc.clear_http_boot(MARK).await.map_err(text)?;
        }
        let boot = machine.boot().await?;
        ensure(boot.urls.is_empty(), format!("URLs afterwards: {:?}", boot.urls))?;
        // One that was not used.
        machine.bmc.set_http_boot(MEDIUM, MARK).await.map_err(text)?;
        machine.bmc.clear_http_boot(MARK).await.map_err(text)?;
        let boot = machine.boot().await?;
        ensure(
            boot.urls.is_empty() && boot.source.as_deref() != Some("UefiHttp"),
            format!("left: {boot:?}"),
        )?;
        let has_property = machine.look()["Boot"].get("HttpBootUri").is_some();
        Ok(if has_property { "HttpBootUri".to_owned() } else { "BIOS setting".to_owned() })
    };
    works(work.await)
}

async fn inspect(machine: &Machine) -> Cell {
    let report = match bmc::Drivers::inspect(&bmc::Builtin::default(), "redfish", &machine.info, "node").await
    {
        Ok(report) => report,
        Err(error) => return Cell::Wrong(error.to_string()),
    };
    let inventory = &report["inventory"];
    let notes = report["plugin_data"]["redfish"]["notes"].as_array().cloned().unwrap_or_default();
    let count = |key: &str| inventory[key].as_array().map_or(0, Vec::len);
    let found = format!(
        "{} CPUs, {} MiB, {} NICs, {} disks, {} notes",
        inventory["cpu"]["count"],
        inventory["memory"]["physical_mb"],
        count("interfaces"),
        count("disks"),
        notes.len()
    );
    // What the tree has and the inventory has not is to be noted.
    let lacks = [("interfaces", "EthernetInterface"), ("disks", "Drive")]
        .iter()
        .any(|(key, schema)| count(key) == 0 && offers::has(machine, schema))
        || inventory["cpu"]["count"].is_null()
        || inventory["memory"]["physical_mb"].is_null();
    works(ensure(!lacks || !notes.is_empty(), format!("{found}, and no note")).map(|()| found))
}
