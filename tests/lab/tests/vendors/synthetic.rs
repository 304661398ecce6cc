//! Trees of our own writing, one for each way in which BMCs differ: with a settings object for everything, without one for the boot
//! source, and with next to nothing.

use std::path::Path;

use serde_json::{Value, json};

/// Settings objects for the boot source and the BIOS, `HttpBootUri`, strong ETags, media by actions below the manager, two systems.
pub const SETTINGS: &str = "settings";
/// Only the boot order waits in a settings object; no override for all boots; a BIOS setting for a URL; media by PATCH; weak ETags.
pub const DIRECT: &str = "direct";
/// Power and PXE.
pub const BARE: &str = "bare";

type Resources = Vec<(&'static str, Value)>;

pub fn trees() -> [(&'static str, Resources); 3] {
    [(SETTINGS, settings()), (DIRECT, direct()), (BARE, bare())]
}

/// As DMTF's Redfish-Mockup-Creator writes them.
pub fn write(directory: &Path, resources: &[(&str, Value)]) {
    for (path, resource) in resources {
        let mut resource = resource.clone();
        resource["@odata.id"] = json!(path);
        let directory = directory.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("index.json"), resource.to_string()).unwrap();
    }
}

fn link(path: &str) -> Value {
    json!({ "@odata.id": path })
}

fn collection(members: &[&str]) -> Value {
    let members: Vec<Value> = members.iter().map(|path| link(path)).collect();
    json!({"Members@odata.count": members.len(), "Members": members})
}

fn root() -> Resources {
    vec![
        (
            "/redfish/v1",
            json!({"Systems": link("/redfish/v1/Systems"), "Links": {"Sessions": link("/redfish/v1/Sessions")}}),
        ),
        ("/redfish/v1/Sessions", collection(&[])),
    ]
}

/// What an inspection finds.
fn inventory(system: &mut Value) -> Resources {
    system["MemorySummary"] = json!({"TotalSystemMemoryGiB": 64});
    system["ProcessorSummary"] = json!({"Count": 2, "LogicalProcessorCount": 32, "Model": "P1"});
    system["EthernetInterfaces"] = link("/redfish/v1/Systems/1/EthernetInterfaces");
    system["Storage"] = link("/redfish/v1/Systems/1/Storage");
    vec![
        (
            "/redfish/v1/Systems/1/EthernetInterfaces",
            collection(&["/redfish/v1/Systems/1/EthernetInterfaces/1"]),
        ),
        (
            "/redfish/v1/Systems/1/EthernetInterfaces/1",
            json!({"Id": "1", "Name": "NIC", "MACAddress": "52:54:00:00:00:07", "PermanentMACAddress": "52:54:00:00:00:07"}),
        ),
        ("/redfish/v1/Systems/1/Storage", collection(&["/redfish/v1/Systems/1/Storage/1"])),
        (
            "/redfish/v1/Systems/1/Storage/1",
            json!({"Id": "1", "Name": "Storage", "Drives": [link("/redfish/v1/Systems/1/Storage/1/Drives/1")]}),
        ),
        (
            "/redfish/v1/Systems/1/Storage/1/Drives/1",
            json!({"Id": "1", "Name": "Drive", "CapacityBytes": 960_197_124_096_u64, "MediaType": "SSD"}),
        ),
    ]
}

fn system(etag: &str, boot: Value) -> Value {
    json!({
        "@odata.type": "#ComputerSystem.v1_17_0.ComputerSystem",
        "@odata.etag": etag,
        "Id": "1",
        "Manufacturer": "Anneal",
        "Model": "synthetic",
        "PowerState": "On",
        "Boot": boot,
        "Links": {"ManagedBy": [link("/redfish/v1/Managers/1")]},
    })
}

fn reset(kinds: Value) -> Value {
    json!({"#ComputerSystem.Reset": {
        "target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
        "ResetType@Redfish.AllowableValues": kinds,
    }})
}

fn settings() -> Resources {
    let boot = json!({"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None",
        "BootSourceOverrideMode": null, "HttpBootUri": null});
    let mut system = system("\"1\"", boot.clone());
    system["@Redfish.Settings"] = json!({"SettingsObject": link("/redfish/v1/Systems/1/SD")});
    system["Bios"] = link("/redfish/v1/Systems/1/Bios");
    system["Actions"] = json!({"#ComputerSystem.Reset": {
        "target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
        "@Redfish.ActionInfo": "/redfish/v1/Systems/1/ResetActionInfo",
    }});
    let mut pending = boot;
    pending["BootSourceOverrideEnabled@Redfish.AllowableValues"] = json!(["Disabled", "Once", "Continuous"]);
    pending["BootSourceOverrideTarget@Redfish.AllowableValues"] =
        json!(["None", "Pxe", "Hdd", "Cd", "UsbCd", "UefiHttp"]);
    let attributes = json!({"Turbo": "Enabled", "Cores": 16, "Serial": "7"});
    let inventory = inventory(&mut system);
    let mut resources = root();
    resources.extend(inventory);
    resources.extend([
        ("/redfish/v1/Systems", collection(&["/redfish/v1/Systems/0", "/redfish/v1/Systems/1"])),
        ("/redfish/v1/Systems/0", json!({"@odata.type": "#ComputerSystem.v1_17_0.ComputerSystem", "PowerState": "On"})),
        ("/redfish/v1/Systems/1", system),
        (
            "/redfish/v1/Systems/1/SD",
            json!({"@odata.type": "#ComputerSystem.v1_17_0.ComputerSystem", "@odata.etag": "\"2\"", "Boot": pending}),
        ),
        (
            "/redfish/v1/Systems/1/ResetActionInfo",
            json!({"Parameters": [{"Name": "ResetType", "Required": true,
                "AllowableValues": ["On", "ForceOff", "ForceRestart", "GracefulShutdown"]}]}),
        ),
        (
            "/redfish/v1/Systems/1/Bios",
            json!({"@odata.type": "#Bios.v1_2_0.Bios", "@odata.etag": "\"3\"", "AttributeRegistry": "Settings.1.0",
                "Attributes": attributes, "@Redfish.Settings": {
                    "SettingsObject": link("/redfish/v1/Systems/1/Bios/SD"), "SupportedApplyTimes": ["OnReset"]}}),
        ),
        (
            "/redfish/v1/Systems/1/Bios/SD",
            json!({"@odata.type": "#Bios.v1_2_0.Bios", "@odata.etag": "\"4\"", "Attributes": attributes}),
        ),
        (
            "/redfish/v1/Registries/Settings",
            json!({"@odata.type": "#MessageRegistryFile.v1_1_0.MessageRegistryFile", "Registry": "Settings.1.0",
                "Location": [{"Uri": "/redfish/v1/Registries/Settings/Settings.1.0"}]}),
        ),
        (
            "/redfish/v1/Registries/Settings/Settings.1.0",
            json!({"RegistryEntries": {"Attributes": [
                {"AttributeName": "Serial", "Type": "String", "ReadOnly": true},
                {"AttributeName": "Cores", "Type": "Integer", "LowerBound": 1, "UpperBound": 16},
                {"AttributeName": "Turbo", "Type": "Enumeration",
                    "Value": [{"ValueName": "Disabled"}, {"ValueName": "Enabled"}]},
            ]}}),
        ),
        (
            "/redfish/v1/Managers/1",
            json!({"FirmwareVersion": "1.0", "VirtualMedia": link("/redfish/v1/Managers/1/VirtualMedia")}),
        ),
        ("/redfish/v1/Managers/1/VirtualMedia", collection(&["/redfish/v1/Managers/1/VirtualMedia/CD1"])),
        (
            "/redfish/v1/Managers/1/VirtualMedia/CD1",
            json!({"@odata.type": "#VirtualMedia.v1_6_0.VirtualMedia", "@odata.etag": "\"5\"",
                "MediaTypes": ["CD", "DVD"], "Image": null, "Inserted": false, "Actions": {
                    "#VirtualMedia.InsertMedia": {
                        "target": "/redfish/v1/Managers/1/VirtualMedia/CD1/Actions/VirtualMedia.InsertMedia",
                        "@Redfish.ActionInfo": "/redfish/v1/Managers/1/VirtualMedia/CD1/InsertMediaActionInfo"},
                    "#VirtualMedia.EjectMedia": {
                        "target": "/redfish/v1/Managers/1/VirtualMedia/CD1/Actions/VirtualMedia.EjectMedia"}}}),
        ),
        (
            "/redfish/v1/Managers/1/VirtualMedia/CD1/InsertMediaActionInfo",
            json!({"Parameters": [{"Name": "Image", "Required": true},
                {"Name": "TransferProtocolType", "Required": true, "AllowableValues": ["NFS", "HTTP"]}]}),
        ),
    ]);
    resources
}

fn direct() -> Resources {
    let mut system = system(
        "W/\"1\"",
        json!({"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", "BootOrder": ["Boot0001"],
            "BootSourceOverrideEnabled@Redfish.AllowableValues": ["Once", "Disabled"],
            "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Hdd", "Cd", "UefiHttp"]}),
    );
    system["@Redfish.Settings"] = json!({"SettingsObject": link("/redfish/v1/Systems/1/Pending"),
        "SupportedApplyTimes": ["OnReset"]});
    system["Bios"] = link("/redfish/v1/Systems/1/Bios/");
    system["VirtualMedia"] = link("/redfish/v1/Systems/1/VirtualMedia");
    system["Actions"] = reset(json!(["On", "ForceOff", "PowerCycle"]));
    let inventory = inventory(&mut system);
    let drive = json!({"@odata.type": "#VirtualMedia.v1_6_0.VirtualMedia", "@odata.etag": "W/\"7\"",
        "MediaTypes": ["CD", "DVD", "USBStick"], "Image": null, "ImageName": null, "Inserted": false, "WriteProtected": true});
    let mut resources = root();
    resources.extend(inventory);
    resources.extend([
        ("/redfish/v1/Systems", collection(&["/redfish/v1/Systems/1"])),
        ("/redfish/v1/Systems/1", system),
        (
            "/redfish/v1/Systems/1/Pending",
            json!({"@odata.type": "#ComputerSystem.v1_17_0.ComputerSystem", "Boot": {"BootOrder": ["Boot0001"]}}),
        ),
        (
            "/redfish/v1/Systems/1/Bios",
            json!({"@odata.type": "#Bios.v1_2_0.Bios", "Attributes": {"Turbo": "Enabled", "HttpDev1EnDis": "Enabled",
                "HttpDev1DhcpEnDis": "Enabled", "HttpDev1TlsMode": "None", "HttpDev1Uri": ""},
                "@Redfish.Settings": {"SettingsObject": link("/redfish/v1/Systems/1/Bios/Settings/")}}),
        ),
        ("/redfish/v1/Systems/1/Bios/Settings", json!({"@odata.type": "#Bios.v1_2_0.Bios", "Attributes": {}})),
        (
            "/redfish/v1/Systems/1/VirtualMedia",
            collection(&["/redfish/v1/Systems/1/VirtualMedia/RDOC1", "/redfish/v1/Systems/1/VirtualMedia/EXT1"]),
        ),
        ("/redfish/v1/Systems/1/VirtualMedia/RDOC1", drive.clone()),
        ("/redfish/v1/Systems/1/VirtualMedia/EXT1", drive),
    ]);
    resources
}

fn bare() -> Resources {
    let mut system = system(
        "\"1\"",
        json!({"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None",
            "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe"]}),
    );
    system["Actions"] = reset(json!(["On", "ForceOff"]));
    // A link that leads nowhere.
    system["Storage"] = link("/redfish/v1/Systems/1/Storage");
    let mut resources = root();
    resources.extend([
        ("/redfish/v1/Systems", collection(&["/redfish/v1/Systems/1"])),
        ("/redfish/v1/Systems/1", system),
        ("/redfish/v1/Managers/1", json!({"Id": "1"})),
    ]);
    resources
}
