//! Exact bytes of the messages, captured between Ironic 39 and ironic-python-agent 13.0.0, and of
//! what Anneal adds to them. Never edit a line here: a peer of an older version depends on it.
//! Add lines when a message grows.

use agent_protocol::boot_medium::{
    BondMode, HashPolicy, NETWORK, OBEYS, OVERLAY_FILE, OverlayFile, PARAMETERS, StaticNetwork,
};
use agent_protocol::command::{Addition, CommandList, CommandRequest, CommandStatus};
use agent_protocol::deployment::{BootEntries, WrittenDisk};
use agent_protocol::discovery::DiscoveryLookup;
use agent_protocol::heartbeat::Heartbeat;
use agent_protocol::inspection::{InspectionAnswer, InspectionReport};
use agent_protocol::inventory::Inventory;
use agent_protocol::lookup::LookupAnswer;
use agent_protocol::record::EraseReport;
use agent_protocol::rescue::{RescueHost, RescueKeys};
use agent_protocol::step::{AdvertisedSteps, Step, StepAddition};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the bytes and writes the same bytes.
fn exact<T: DeserializeOwned + Serialize>(bytes: &str) -> T {
    let message: T = serde_json::from_str(bytes).expect("reads");
    assert_eq!(serde_json::to_string(&message).expect("writes"), bytes);
    message
}

/// Reads the bytes and writes the same JSON, with keys where they like to be.
fn equal<T: DeserializeOwned + Serialize>(bytes: &str) -> T {
    let message: T = serde_json::from_str(bytes).expect("reads");
    let expected: Value = serde_json::from_str(bytes).expect("JSON");
    assert_eq!(serde_json::to_value(&message).expect("writes"), expected);
    message
}

#[test]
fn heartbeat_of_ipa_without_tls() {
    exact::<Heartbeat>(
        r#"{"callback_url":"http://127.0.0.1:9999","agent_token":"sH4HebtED_najcIOwKrMntFnz2NEY89rRYbr7X_phto","agent_version":"13.0.0"}"#,
    );
}

#[test]
fn heartbeat_of_ipa_with_tls() {
    let heartbeat = exact::<Heartbeat>(
        r#"{"callback_url":"https://127.0.0.1:9999","agent_token":"yYLAPgCuO2saMMTy9PX_uZiebhASd9v7x3IPqqMlQ_I","agent_version":"13.0.0","agent_verify_ca":"-----BEGIN CERTIFICATE-----\nMIIBfTCCAQOgAwIBAgIUHgxZ\n-----END CERTIFICATE-----\n"}"#,
    );
    assert_eq!(heartbeat.anneal, None);
}

#[test]
fn heartbeat_of_ours_to_a_controller_that_offered() {
    exact::<Heartbeat>(
        r#"{"callback_url":"https://192.0.2.7:9999","agent_token":"yYLAPgCuO2saMMTy9PX_uZiebhASd9v7x3IPqqMlQ_I","agent_version":"0.1.0","anneal":{"extension":1,"boot_id":"b","process_id":"p","running":{"id":"c1","command_name":"execute_clean_step","progress":{"disks":[{"device":"/dev/sda","serial":"S1","phase":"erasing","method":"overwrite-zeroes","bytes_done":1,"bytes_total":4,"rate":2,"eta":1}]}},"ended":["c0"]}}"#,
    );
    exact::<Heartbeat>(
        r#"{"callback_url":"https://192.0.2.7:9999","anneal":{"extension":1,"boot_id":"b","process_id":"p","running":{"id":"c1","command_name":"execute_clean_step","progress":{"percent":40,"text":"flashing","disks":[]}}}}"#,
    );
    exact::<Heartbeat>(
        r#"{"callback_url":"https://192.0.2.7:9999","anneal":{"extension":1,"boot_id":"b","process_id":"p"}}"#,
    );
    exact::<Heartbeat>(
        r#"{"callback_url":"https://192.0.2.7:9999","anneal":{"extension":1,"boot_id":"b","process_id":"p","evidence_key":"ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"}}"#,
    );
}

#[test]
fn lookup_answer_of_ironic() {
    let answer = equal::<LookupAnswer>(
        r#"{"node":{"uuid":"62f4f467-864a-40c0-9b53-0820d3eb102f","properties":{},"instance_info":{},"driver_internal_info":{"agent_erase_devices_iterations":1,"agent_secret_token":"******"},"links":[{"href":"http://127.0.0.1:6385/v1/nodes/62f4f467-864a-40c0-9b53-0820d3eb102f","rel":"self"}]},"config":{"metrics":{"backend":"noop"},"heartbeat_timeout":30.0,"agent_token":"yYLAPgCuO2saMMTy9PX_uZiebhASd9v7x3IPqqMlQ_I","agent_token_required":true,"agent_md5_checksum_enable":true,"permitted_image_formats":["raw","gpt","qcow2","iso"],"tls_min_version":"1.3","tls_cipher_suites":null}}"#,
    );
    assert_eq!(answer.config.anneal, None);
    // Ironic writes the number without a fraction.
    let integer: LookupAnswer =
        serde_json::from_str(r#"{"node":{"uuid":"u"},"config":{"heartbeat_timeout":300}}"#).expect("reads");
    assert_eq!(integer.config.heartbeat_timeout.to_string(), "300");
}

#[test]
fn lookup_answer_of_ours() {
    exact::<LookupAnswer>(
        r#"{"node":{"uuid":"u","properties":{},"instance_info":{},"driver_internal_info":{},"links":[]},"config":{"heartbeat_timeout":300.0,"agent_token":"******","agent_token_required":true,"anneal":{"extension":1}}}"#,
    );
}

#[test]
fn lookup_answer_of_ours_with_bundles() {
    let answer = exact::<LookupAnswer>(
        r#"{"node":{"uuid":"u","properties":{},"instance_info":{},"driver_internal_info":{},"links":[]},"config":{"heartbeat_timeout":300.0,"agent_token_required":true,"anneal":{"extension":1},"anneal_bundles":[{"name":"acme","version":"1.2","digest":"ab12","size":4096,"signed_by":"0123456789abcdef"},{"name":"site","version":"3","digest":"cd34","size":8192}]}}"#,
    );
    assert_eq!(answer.config.anneal_bundles[1].signed_by, None);
}

#[test]
fn lookup_answer_of_ours_to_a_machine_that_no_node_is_known_for() {
    for bytes in [
        r#"{"anneal_discovery":{"verdict":"waiting","seconds_left":3599}}"#,
        r#"{"anneal_discovery":{"verdict":"approved","seconds_left":0}}"#,
        r#"{"anneal_discovery":{"verdict":"rejected","seconds_left":7}}"#,
    ] {
        exact::<DiscoveryLookup>(bytes);
    }
}

#[test]
fn command_of_ironic() {
    let command = exact::<CommandRequest>(
        r#"{"name":"clean.execute_clean_step","params":{"clean_version":{"ProbeHardwareManager":"1.0","generic_hardware_manager":"1.2"},"node":{},"ports":[],"step":{"abortable":true,"interface":"deploy","priority":90,"step":"probe_quick"}}}"#,
    );
    assert_eq!(command.anneal_command_id, None);
}

#[test]
fn command_of_ours() {
    exact::<CommandRequest>(r#"{"name":"standby.sync","params":{},"anneal_command_id":"c1"}"#);
}

#[test]
fn command_statuses_of_ipa() {
    exact::<CommandStatus>(
        r#"{"id":"d278a73b-31c4-471c-bbb4-6e8aad8fa8f7","command_name":"execute_clean_step","command_status":"RUNNING","command_error":null,"command_result":null}"#,
    );
    exact::<CommandStatus>(
        r#"{"id":"98b44512-95d4-4b6c-b5eb-099e6d921194","command_name":"execute_clean_step","command_status":"FAILED","command_error":{"type":"CleaningError","code":500,"message":"Clean step failed","details":"probe says no"},"command_result":null}"#,
    );
    exact::<CommandStatus>(
        r#"{"id":"18a20f5a-2642-45e6-a82d-99c1440416af","command_name":"execute_clean_step","command_status":"CLEAN_VERSION_MISMATCH","command_error":{"type":"VersionMismatch","code":409,"message":"Hardware managers version mismatch, reload agent with correct version","details":"Current versions: {'ProbeHardwareManager': '1.0', 'generic_hardware_manager': '1.2'}, versions used by ironic: {'other': '9'}"},"command_result":null}"#,
    );
    exact::<CommandList>(
        r#"{"commands":[{"id":"437f398e-75b8-444c-8a51-e0833c67a571","command_name":"sync","command_status":"SUCCEEDED","command_error":null,"command_result":null}]}"#,
    );
}

#[test]
fn advertised_steps_of_ipa() {
    equal::<AdvertisedSteps>(
        r#"{"clean_steps":{"ProbeHardwareManager":[{"step":"erase_devices","priority":10,"interface":"deploy","reboot_requested":false,"abortable":true},{"step":"clean_uefi_nvram","priority":0,"interface":"deploy","reboot_requested":false,"abortable":true,"argsinfo":{"match_patterns":{"description":"Json blob","required":false}}}]},"hardware_manager_version":{"ProbeHardwareManager":"1.0","generic_hardware_manager":"1.2"}}"#,
    );
    exact::<Step>(
        r#"{"step":"probe_args","priority":90,"interface":"deploy","reboot_requested":false,"abortable":true,"args":{"seconds":3,"text":"busy"},"requires_ramdisk":true}"#,
    );
}

#[test]
fn inventory_of_ipa_is_read() {
    let inventory: Inventory = serde_json::from_str(
        r#"{"interfaces":[{"name":"eno1","mac_address":"52:54:00:12:34:56","ipv4_address":"127.0.0.1","ipv6_address":null,"has_carrier":true,"lldp":null,"vendor":"0x1af4","product":"0x1000","client_id":null,"biosdevname":null,"speed_mbps":null,"pci_address":null,"driver":null}],"cpu":{"model_name":"AMD EPYC","frequency":"","count":2,"architecture":"x86_64","flags":["fpu","vme"],"socket_count":1},"disks":[{"name":"/dev/loop1","model":"probe-loop","size":67108864,"rotational":false,"wwn":"0xprobe","serial":"PROBE0001","vendor":"probe","wwn_with_extension":null,"wwn_vendor_extension":null,"hctl":null,"by_path":null,"logical_sectors":null,"physical_sectors":null,"tran":null}],"memory":{"total":25276502016,"physical_mb":24576},"bmc_address":null,"bmc_v6address":null,"system_vendor":{"product_name":"","serial_number":"","manufacturer":"","firmware":{"vendor":"","version":"","build_date":""}},"boot":{"current_boot_mode":"bios","pxe_interface":null},"hostname":"probe-ipa"}"#,
    )
    .expect("reads");
    assert_eq!((inventory.disks[0].size, inventory.cpu.count), (67_108_864, 2));
}

#[test]
fn erase_report_of_ours() {
    exact::<EraseReport>(
        r#"{"disks":[{"device":"/dev/sda","serial":"S1","size":8,"outcome":"erased","method":"overwrite-zeroes","bytes_erased":8,"verification":{"kind":"full","bytes_read":8,"expected":"zeroes","mismatched_bytes":0,"unchanged_samples":0,"samples":1,"passed":true},"started_at":1.5,"finished_at":2.5},{"device":"/dev/sr0","size":0,"outcome":"skipped","reason":"virtual media","bytes_erased":0}]}"#,
    );
    exact::<EraseReport>(
        r#"{"disks":[{"device":"/dev/sda","wwn":"0x5","size":8,"outcome":"erased","method":"ata-sanitize-crypto","level":"purge","standard":"ACS-4 7.36","bytes_erased":8}]}"#,
    );
}

#[test]
fn erase_report_of_ours_with_what_was_written_back() {
    exact::<EraseReport>(
        r#"{"disks":[{"device":"/dev/sda","size":8192,"outcome":"erased","method":"overwrite-zeroes","bytes_erased":8192,"rebuilt":[{"kind":"md","name":"old:mirror","uuid":"abababab:abababab:abababab:abababab","bytes":512,"offset":4096}]}]}"#,
    );
}

#[test]
fn argument_with_a_schema_of_ours() {
    exact::<Step>(
        r#"{"step":"verify_firmware","priority":0,"interface":"management","reboot_requested":false,"abortable":true,"argsinfo":{"baseline":{"description":"Versions","required":false,"schema":{"type":"object"}}},"idempotent":true}"#,
    );
}

#[test]
fn inspection_report_of_ipa_is_read() {
    let report: InspectionReport = serde_json::from_str(
        r#"{"inventory":{"interfaces":[{"name":"eno1","mac_address":"52:54:00:12:34:56","ipv4_address":"127.0.0.1","ipv6_address":null,"has_carrier":true,"lldp":null,"vendor":"0x1af4","product":"0x1000","client_id":null,"biosdevname":null,"speed_mbps":null,"pci_address":null,"driver":null}],"cpu":{"model_name":"AMD EPYC","frequency":"","count":2,"architecture":"x86_64","flags":["fpu"],"socket_count":1},"disks":[],"memory":{"total":25276502016,"physical_mb":24576},"bmc_address":null,"bmc_v6address":null,"system_vendor":{"product_name":"","serial_number":"","manufacturer":"","firmware":{"vendor":"","version":"","build_date":""}},"boot":{"current_boot_mode":"bios","pxe_interface":null},"hostname":"probe-ipa"},"boot_interface":null,"configuration":{"collectors":["default"],"managers":[{"name":"ProbeHardwareManager","version":"1.0"},{"name":"generic_hardware_manager","version":"1.2"}]},"error":null,"lldp_raw":{"eno1":[]}}"#,
    )
    .expect("reads");
    assert_eq!(report.inventory.memory.physical_mb, Some(24576));
    assert_eq!(report.configuration.managers[1].version, "1.2");
    assert!(report.other.contains_key("lldp_raw"));
    exact::<InspectionAnswer>(r#"{"uuid":"62f4f467-864a-40c0-9b53-0820d3eb102f"}"#);
}

#[test]
fn inspection_report_of_ours() {
    exact::<InspectionReport>(
        r#"{"inventory":{"interfaces":[],"cpu":{"model_name":"","frequency":null,"count":1,"architecture":"x86_64","flags":[]},"disks":[],"memory":{"total":1,"physical_mb":null},"bmc_address":"0.0.0.0","bmc_v6address":"::/0","system_vendor":{"product_name":"","serial_number":"","manufacturer":"","firmware":{"vendor":"","version":"","build_date":""}},"boot":{"current_boot_mode":"uefi","pxe_interface":null},"hostname":"h"},"boot_interface":null,"configuration":{"collectors":["default","logs"],"managers":[{"name":"generic_hardware_manager","version":"1.1"}]},"error":null,"logs":"H4sI"}"#,
    );
    // With what hardware managers add.
    exact::<InspectionReport>(
        r#"{"inventory":{"interfaces":[],"cpu":{"model_name":"","frequency":null,"count":1,"architecture":"x86_64","flags":[]},"disks":[],"memory":{"total":1,"physical_mb":null},"bmc_address":"0.0.0.0","bmc_v6address":"::/0","system_vendor":{"product_name":"","serial_number":"","manufacturer":"","firmware":{"vendor":"","version":"","build_date":""}},"boot":{"current_boot_mode":"uefi","pxe_interface":null},"hostname":"h"},"boot_interface":null,"configuration":{"collectors":["default"],"managers":[{"name":"acme","version":"1@0123456789ab"}]},"error":null,"anneal":{"managers":{"generic_hardware_manager":{"firmware":[{"component":"bios","current_version":"1.2"}]}},"problems":{"acme":"controller 0 does not answer"}},"lldp_raw":{"eth0":[[1,"04aa"]]}}"#,
    );
}

#[test]
fn what_an_interrupted_step_goes_on_from() {
    exact::<CommandStatus>(
        r#"{"id":"c1","command_name":"execute_clean_step","command_status":"RUNNING","command_error":null,"command_result":null,"progress":{"disks":[{"device":"/dev/sda","phase":"erasing","bytes_done":1,"bytes_total":4,"rate":0,"stalled_since":1.5}]},"checkpoint":{"disks":[],"step":"erase_devices"}}"#,
    );
    exact::<Addition>(r#"{"checkpoint":{"disks":[],"step":"erase_devices"}}"#);
    exact::<Addition>("{}");
    exact::<EraseReport>(
        r#"{"disks":[{"device":"/dev/sda","serial":"S1","size":8,"outcome":"erased","method":"overwrite-zeroes","bytes_erased":8,"resumed_from":4}]}"#,
    );
    exact::<StepAddition>(r#"{"reboot_requested":true}"#);
    exact::<StepAddition>(r#"{"after_reboot":{"asked":"5"}}"#);
    exact::<StepAddition>("{}");
}

#[test]
fn deployment_of_ours() {
    exact::<WrittenDisk>(
        r#"{"device":"/dev/sda","serial":"S1","wwn":"0x5","model":"M","size":64,"record":{"source":"http://10.0.0.1/i.raw?******","format":"raw","compression":"plain","downloaded":16,"algorithm":"sha256","download_digest":"d3","size":16,"written":16,"leaf":8,"written_sum":"5a","read_back":16,"read_back_sum":"5a","read_back_sha256":"d3","disk_id":"0x00000000","edits":[{"what":"configdrive","offset":56,"length":8,"sha256":"e4"}]}}"#,
    );
    exact::<WrittenDisk>(
        r#"{"device":"/dev/vda","size":64,"record":{"source":"http://10.0.0.1/i.qcow2","format":"qcow2","compression":"zstd","downloaded":3,"algorithm":"sha512","download_digest":"d3","size":16,"written":0,"leaf":8,"written_sum":"5a","read_back":16,"read_back_sum":"5a","read_back_sha256":"f5","disk_id":"0x12345678","edits":[]}}"#,
    );
    exact::<WrittenDisk>(
        r#"{"device":"/dev/sda","serial":"S1","size":64,"others":["/dev/sdb (serial S2)"],"record":{"source":"http://10.0.0.1/i.raw","format":"raw","compression":"plain","downloaded":16,"algorithm":"sha256","download_digest":"d3","size":16,"written":16,"leaf":8,"written_sum":"5a","read_back":16,"read_back_sum":"5a","read_back_sha256":"d3","disk_id":"0x00000000","edits":[]}}"#,
    );
    exact::<BootEntries>(
        r#"{"device":"/dev/sda","serial":"S1","entry":"Boot0001","label":"debian","loader":"\\EFI\\debian\\shimx64.efi","added":true,"removed":[{"number":"0002","label":"old","why":"same_label"}],"order":["0001","0000"],"partitions_unknown":"a disk cannot be read"}"#,
    );
    exact::<Addition>(r#"{"node":"62f4f467-864a-40c0-9b53-0820d3eb102f"}"#);
}

#[test]
fn rescue_of_ours() {
    exact::<RescueKeys>(r#"{"authorized_keys":["ssh-ed25519 AAAAC3Nz me@desk"]}"#);
    exact::<RescueHost>(r#"{"host_key":"ed25519 SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpKZIIIt2ZqEaWnWb8"}"#);
}

#[test]
fn network_of_a_boot_medium() {
    let full = exact::<StaticNetwork>(
        r#"{"interfaces":[{"mac":"52:54:00:aa:bb:01","mtu":1400,"addresses":[{"ip":"10.0.0.5","prefix":22}],"routes":[{"network":"0.0.0.0","prefix":0,"gateway":"10.0.0.1"}]}],"dns":["10.0.0.2"]}"#,
    );
    assert_eq!(full.interfaces[0].ip.routes[0].prefix, 0);
    let least: StaticNetwork =
        serde_json::from_str(r#"{"interfaces":[{"mac":"52:54:00:aa:bb:01","addresses":[]}]}"#)
            .expect("reads");
    assert!(least.dns.is_empty() && least.interfaces[0].mtu.is_none());
    assert_eq!((PARAMETERS, NETWORK), ("etc/anneal/boot-parameters", "etc/anneal/network.json"));
}

#[test]
fn network_of_a_boot_medium_with_bond_vlan_and_ipv6() {
    let bonded = exact::<StaticNetwork>(
        r#"{"interfaces":[{"mac":"52:54:00:aa:bb:01","mtu":9000,"bond":{"mode":"802.3ad","cards":["52:54:00:aa:bb:01","52:54:00:aa:bb:02"],"miimon_ms":100,"hash_policy":"layer3+4"},"addresses":[],"routes":[],"vlans":[{"id":7,"mac":"52:54:00:aa:bb:01","mtu":1400,"addresses":[{"ip":"2001:db8::5","prefix":64}],"routes":[{"network":"::","prefix":0,"gateway":"2001:db8::1"}]}]}],"dns":["2001:db8::2","10.0.0.2"],"ntp":["2001:db8::3"]}"#,
    );
    assert!(bonded.interfaces[0].bond.is_some() && bonded.interfaces[0].vlans[0].id == 7);
    let asked = exact::<StaticNetwork>(
        r#"{"interfaces":[{"mac":"52:54:00:aa:bb:01","bond":{"mode":"active-backup","cards":["52:54:00:aa:bb:01"],"miimon_ms":50},"addresses":[],"routes":[],"dhcp":true,"slaac":true}],"dns":[]}"#,
    );
    assert!(asked.interfaces[0].ip.dhcp && asked.interfaces[0].ip.slaac);
    for mode in ["balance-rr", "balance-xor", "broadcast", "balance-tlb", "balance-alb"] {
        exact::<BondMode>(&format!("{mode:?}"));
    }
    for policy in ["layer2", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"] {
        exact::<HashPolicy>(&format!("{policy:?}"));
    }
}

#[test]
fn overlay_of_a_signed_ramdisk() {
    let alone = exact::<OverlayFile>(r#"{"parameters":"ipa-api-url=https://10.0.0.1:6385"}"#);
    assert!(alone.network.is_none());
    exact::<OverlayFile>(r#"{"parameters":"","network":{"interfaces":[],"dns":["10.0.0.2"]}}"#);
    assert_eq!((OBEYS, OVERLAY_FILE), ("anneal.obeys", ".extra/credentials/anneal.cred"));
}
