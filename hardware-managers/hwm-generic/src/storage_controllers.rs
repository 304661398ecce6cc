//! Storage controllers that the kernel has no driver for, or whose driver lacks their firmware. Their disks are not seen, so an erase of
//! "all disks" would leave them as they are.

use crate::missing_firmware::{Missing, MissingFirmware};
use crate::pci::PciDevice;
use agent_protocol::record::IgnoredController;
use hwm_sdk::StepError;
use serde_json::Value;

/// Property with the controllers that may be without a driver or its firmware.
const PROPERTY: &str = "node.properties.ignored_controllers";

/// Classes of PCI functions with storage behind them (PCI Code and ID Assignment Specification 1.16): mass storage, Fibre
/// Channel, SD host controllers.
const CLASSES: [&str; 3] = ["01", "0c04", "0805"];

/// Intel's Volume Management Devices, behind which NVMe drives are hidden (Linux, `vmd_ids`), whatever class they report.
const VMD: [&str; 10] = [
    "8086:201d",
    "8086:28c0",
    "8086:467f",
    "8086:4c3d",
    "8086:7d0b",
    "8086:9a0b",
    "8086:a77f",
    "8086:ad0b",
    "8086:b06f",
    "8086:b60b",
];

/// Drivers that give a function away, to a virtual machine or to a program, and make no disks of it.
const GIVEN_AWAY: [&str; 3] = ["pci-stub", "uio_pci_generic", "vfio-pci"];

/// What is known of the storage controllers without a driver or its firmware.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Driverless {
    /// Those that the operator lets be, as the node names them.
    pub(crate) ignored: Vec<IgnoredController>,
    /// The others, each in words.
    pub(crate) unknown: Vec<String>,
}

/// The storage controllers among `functions` that have no driver, or whose driver lacks firmware and has made no SCSI host of them. (One
/// that has made a host got along without, for example with what the card keeps in flash.) Where the kernel's log does not report all
/// requests, one whose driver has made nothing of it counts as if it lacked firmware. A controller is ignored only if both its
/// address and its ids are those of an entry: another card in the same slot is another controller.
pub(crate) fn driverless(
    functions: &[PciDevice],
    missing: &Missing,
    ignored: &[IgnoredController],
) -> Driverless {
    let mut found = Driverless::default();
    for function in functions.iter().filter(|function| is_storage(function)) {
        let lacks = missing.devices.iter().find(|device| device.address == function.address);
        let Some(problem) = problem(function, lacks, missing.unknown.as_deref()) else { continue };
        let ids = ids(function);
        let entry = ignored.iter().find(|entry| entry.address == function.address && entry.ids == ids);
        match entry {
            Some(entry) => found.ignored.push(entry.clone()),
            None => found.unknown.push(format!(
                "the storage controller {} ({ids}, {}) {problem}, or name it in properties.ignored_controllers",
                function.address, function.class_name
            )),
        }
    }
    found
}

/// Why the disks behind a function are not seen, and what helps. `lacks`: the firmware that its driver asked for and did not get;
/// `unknown`: why it may have asked for some all the same.
fn problem(function: &PciDevice, lacks: Option<&MissingFirmware>, unknown: Option<&str>) -> Option<String> {
    let request = |lacks: &MissingFirmware| {
        let files = lacks.firmware.join(", ");
        format!("its disks are not seen ({} asked for {files}); send it ([boot] firmware_dir)", lacks.driver)
    };
    match (drives(function), lacks) {
        (false, None) => {
            Some("has no driver, so its disks are not seen; boot a ramdisk with its driver".to_owned())
        }
        (false, Some(lacks)) => {
            Some(format!("has no driver, because the ramdisk lacks its firmware, so {}", request(lacks)))
        }
        (true, Some(lacks)) if !function.has_scsi_host => {
            Some(format!("lacks its firmware, so {}", request(lacks)))
        }
        (true, None) if !function.has_host_or_disk => unknown.map(|why| {
            format!(
                "has a driver that made neither a host nor a disk of it, and this agent cannot know whether it lacks its firmware: \
                 {why}; boot the ramdisk again"
            )
        }),
        (true, _) => None,
    }
}

fn is_storage(function: &PciDevice) -> bool {
    let class = digits(&function.class);
    CLASSES.iter().any(|storage| class.starts_with(storage)) || VMD.contains(&ids(function).as_str())
}

/// Whether a driver makes disks of what is behind the function.
fn drives(function: &PciDevice) -> bool {
    function.driver.as_deref().is_some_and(|driver| !GIVEN_AWAY.contains(&driver))
}

/// Vendor and device as `lspci -n` writes them: `1000:005b`.
fn ids(function: &PciDevice) -> String {
    format!("{}:{}", digits(&function.vendor), digits(&function.device))
}

fn digits(number: &str) -> String {
    number.trim_start_matches("0x").to_lowercase()
}

/// `properties.ignored_controllers`: a list of `{"address": "0000:3b:00.0", "ids": "1000:005b", "reason": "…"}`, or that
/// list as text, as `baremetal node set --property` may send it.
///
/// # Errors
/// [`StepError::Argument`] for anything else: what may be left unerased must not be guessed.
pub(crate) fn ignored(value: &Value) -> Result<Vec<IgnoredController>, StepError> {
    let wrong =
        |problem: &str| StepError::Argument { name: PROPERTY.to_owned(), problem: problem.to_owned() };
    let form = "it is not a list of objects with address, ids and reason";
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::String(text) => serde_json::from_str(text).map_err(|_| wrong(form))?,
        other => other.clone(),
    };
    let mut entries: Vec<IgnoredController> = serde_json::from_value(list).map_err(|_| wrong(form))?;
    for entry in &mut entries {
        entry.address = entry.address.trim().to_lowercase();
        entry.ids = entry.ids.trim().to_lowercase();
        if entry.reason.trim().is_empty() {
            return Err(wrong(&format!("the entry for {} has no reason", entry.address)));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn function(address: &str, class: &str, ids: &str, driver: Option<&str>) -> PciDevice {
        let (vendor, device) = ids.split_once(':').unwrap();
        PciDevice {
            address: address.to_owned(),
            vendor: format!("0x{vendor}"),
            device: format!("0x{device}"),
            class: class.to_owned(),
            class_name: "Controller",
            revision: None,
            numa_node: None,
            driver: driver.map(str::to_owned),
            modalias: None,
            has_scsi_host: false,
            has_host_or_disk: false,
        }
    }

    /// A log that reports all requests.
    fn none() -> Missing {
        Missing::default()
    }

    fn lacking(address: &str) -> Missing {
        let device = MissingFirmware {
            address: address.to_owned(),
            modalias: None,
            driver: "qla2xxx".to_owned(),
            firmware: vec!["ql2500_fw.bin".to_owned()],
        };
        Missing { devices: vec![device], unknown: None }
    }

    #[test]
    fn a_storage_function_without_a_driver_is_named_with_address_and_ids() {
        for (class, ids, driver, counts) in [
            ("0x010000", "1022:2020", None, true),
            ("0x010000", "1022:2020", Some("am53c974"), false),
            ("0x010000", "1022:2020", Some("vfio-pci"), true),
            ("0x010400", "1000:005B", None, true),
            ("0x010802", "144d:a80a", None, true),
            ("0x0c0400", "1077:2261", None, true),
            ("0x080501", "1180:e823", None, true),
            // A VMD that reports the class of a bridge.
            ("0x060400", "8086:28c0", None, true),
            ("0x010400", "8086:28c0", Some("vmd"), false),
            ("0x020000", "8086:1521", None, false),
            ("0x0c0330", "8086:a12f", None, false),
            ("0x080600", "8086:2f28", None, false),
        ] {
            let found = driverless(&[function("0000:3b:00.0", class, ids, driver)], &none(), &[]);
            assert_eq!(found.unknown.len(), usize::from(counts), "{class} {ids} {driver:?}");
            for text in found.unknown {
                assert!(text.contains("0000:3b:00.0") && text.contains(&ids.to_lowercase()), "{text}");
            }
        }
    }

    #[test]
    fn a_storage_function_that_lacks_firmware_is_named_with_the_file_unless_it_works_without() {
        let (place, ids) = ("0000:af:00.0", "1077:2532");
        let unknown = |driver, host| {
            let function = PciDevice { has_scsi_host: host, ..function(place, "0x0c0400", ids, driver) };
            driverless(&[function], &lacking(place), &[]).unknown
        };
        for driver in [None, Some("qla2xxx"), Some("vfio-pci")] {
            let [text] = &unknown(driver, false)[..] else { panic!("{driver:?}") };
            for word in [place, ids, "firmware", "qla2xxx asked for ql2500_fw.bin", "its disks are not seen"]
            {
                assert!(text.contains(word), "{driver:?}: {text}");
            }
        }
        assert_eq!(unknown(Some("qla2xxx"), true), Vec::<String>::new(), "the card has its own");
        let bound = [function(place, "0x0c0400", ids, Some("qla2xxx"))];
        assert_eq!(driverless(&bound, &lacking("0000:af:00.1"), &[]), Driverless::default(), "another one's");
        let nic = [function(place, "0x020000", ids, Some("bnx2x"))];
        assert_eq!(driverless(&nic, &lacking(place), &[]), Driverless::default(), "a network card");
        let entry = json!([{"address": place, "ids": ids, "reason": "no cables"}]);
        let list = ignored(&entry).unwrap();
        assert_eq!(
            driverless(&bound, &lacking(place), &list),
            Driverless { ignored: list, unknown: Vec::new() }
        );
    }

    #[test]
    fn where_the_log_is_not_whole_a_function_of_which_nothing_was_made_may_lack_firmware() {
        let (place, ids) = ("0000:af:00.0", "1077:2532");
        let part = Missing { unknown: Some("the log is gone".to_owned()), ..Missing::default() };
        let unknown = |class, driver, made| {
            let function = PciDevice { has_host_or_disk: made, ..function(place, class, ids, driver) };
            driverless(&[function], &part, &[]).unknown
        };
        let [text] = &unknown("0x0c0400", Some("qla2xxx"), false)[..] else { panic!("it is named") };
        for word in [place, ids, "cannot know whether it lacks its firmware: the log is gone"] {
            assert!(text.contains(word), "{text}");
        }
        assert_eq!(unknown("0x0c0400", Some("qla2xxx"), true), Vec::<String>::new(), "it has a host");
        assert_eq!(unknown("0x020000", Some("bnx2x"), false), Vec::<String>::new(), "a network card");
        let [text] = &unknown("0x0c0400", None, false)[..] else { panic!("it is named") };
        assert!(text.contains("has no driver"), "{text}");
        let bound = [function(place, "0x0c0400", ids, Some("qla2xxx"))];
        assert_eq!(driverless(&bound, &none(), &[]), Driverless::default(), "the log reports no request");
        let list = ignored(&json!([{"address": place, "ids": ids, "reason": "no cables"}])).unwrap();
        assert_eq!(driverless(&bound, &part, &list).ignored, list);
    }

    #[test]
    fn only_the_same_controller_in_the_same_place_is_ignored() {
        let entry = json!({"address": "0000:3B:00.0", "ids": "1000:005B", "reason": "no cables"});
        let list = ignored(&json!([entry])).unwrap();
        let at = |address, ids| driverless(&[function(address, "0x010400", ids, None)], &none(), &list);
        assert_eq!(
            at("0000:3b:00.0", "1000:005b"),
            Driverless { ignored: list.clone(), unknown: Vec::new() }
        );
        assert_eq!(at("0000:3b:00.1", "1000:005b").unknown.len(), 1);
        assert_eq!(at("0000:3b:00.0", "1000:0016").unknown.len(), 1);
        let bound = [function("0000:3b:00.0", "0x010400", "1000:005b", Some("megaraid_sas"))];
        assert_eq!(driverless(&bound, &none(), &list), Driverless::default(), "nothing had to be ignored");
        assert_eq!(ignored(&json!(json!([entry]).to_string())).unwrap(), list, "as text");
    }

    #[test]
    fn an_entry_is_whole_or_an_error() {
        assert_eq!(ignored(&Value::Null).unwrap(), Vec::new());
        for wrong in [
            json!("all"),
            json!({}),
            json!(["0000:3b:00.0"]),
            json!([{"address": "0000:3b:00.0", "ids": "1000:005b"}]),
            json!([{"address": "0000:3b:00.0", "ids": "1000:005b", "reason": " "}]),
            json!([{"address": "0000:3b:00.0", "reason": "no cables"}]),
        ] {
            let error = ignored(&wrong).unwrap_err().to_string();
            assert!(error.contains("properties.ignored_controllers"), "{error}");
        }
    }
}
