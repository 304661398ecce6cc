use proptest::prelude::*;

use super::*;

fn of(system: Value, processors: Vec<Value>, nics: Vec<Value>, drives: Vec<Value>) -> (Value, Vec<String>) {
    let processors = Listed { found: processors, complete: true };
    let parts = Parts { system: &system, processors: &processors, nics: &nics, drives: &drives };
    let mut notes = Vec::new();
    (inventory(&parts, Some("10.0.0.5"), &mut notes).into(), notes)
}

#[test]
fn an_inventory_has_the_agents_form() {
    let system = json!({"Manufacturer": "Contoso", "Model": "3500RX", "SerialNumber": "437XR1138R2",
        "BiosVersion": "P79 v1.45", "HostName": "web483", "Boot": {"BootSourceOverrideMode": "UEFI"},
        "MemorySummary": {"TotalSystemMemoryGiB": 96}, "ProcessorSummary": {"Count": 2}});
    let processor = json!({"ProcessorType": "CPU", "InstructionSet": "x86-64", "ProcessorArchitecture": "x86",
        "Model": "Multi-Core Intel(R) Xeon(R) processor 7xxx Series", "MaxSpeedMHz": 3700, "TotalCores": 8,
        "TotalThreads": 16});
    let nic = json!({"Id": "1", "PermanentMACAddress": "12:44:6A:3B:04:11", "LinkStatus": "LinkUp",
        "MACAddress": "12:44:6A:3B:04:11", "SpeedMbps": 1000});
    let drive = json!({"Id": "3D58", "Name": "Drive Sample", "Model": "C123", "Manufacturer": "Contoso",
        "SerialNumber": "1234570", "MediaType": "HDD", "CapacityBytes": 899_527_000_000_u64,
        "Identifiers": [{"DurableNameFormat": "UUID", "DurableName": "x"},
            {"DurableNameFormat": "NAA", "DurableName": "32ADF365C6C1B7BD"}]});
    let gpu = json!({"ProcessorType": "GPU", "TotalThreads": 4096});
    let (inventory, notes) = of(system, vec![gpu, processor.clone(), processor], vec![nic], vec![drive]);
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(
        inventory,
        json!({
            "cpu": {"count": 32, "architecture": "x86_64", "frequency": 3700,
                "model_name": "Multi-Core Intel(R) Xeon(R) processor 7xxx Series"},
            "memory": {"physical_mb": 98304, "total": 103_079_215_104_u64},
            "interfaces": [{"name": "1", "mac_address": "12:44:6a:3b:04:11", "speed_mbps": 1000,
                "has_carrier": true}],
            "disks": [{"name": "Drive Sample", "size": 899_527_000_000_u64, "model": "C123",
                "vendor": "Contoso", "serial": "1234570", "wwn": "32ADF365C6C1B7BD", "rotational": true}],
            "system_vendor": {"manufacturer": "Contoso", "product_name": "3500RX",
                "serial_number": "437XR1138R2", "firmware": {"version": "P79 v1.45"}},
            "boot": {"current_boot_mode": "uefi"},
            "hostname": "web483",
            "bmc_address": "10.0.0.5",
        })
    );
}

#[test]
fn numbers_come_as_strings_and_absurd_ones_are_left_out() {
    // sushy-emulator gives the counts of processors as strings.
    let processor = |threads: Value| json!({"TotalThreads": threads});
    let count = |summary: Value, processors: Vec<Value>| {
        let (inventory, notes) = of(json!({"ProcessorSummary": summary}), processors, vec![], vec![]);
        (inventory["cpu"].get("count").cloned(), notes.iter().any(|note| note.contains("processors")))
    };
    assert_eq!(count(json!({}), vec![processor(json!("4")), processor(json!(4.0))]), (Some(json!(8)), false));
    for absurd in [json!(-1), json!(1e300), json!("many"), json!(null), json!([4]), json!("NaN")] {
        assert_eq!(count(json!({}), vec![processor(absurd.clone())]), (None, true), "{absurd}");
        assert_eq!(count(json!({"CoreCount": 2}), vec![processor(absurd)]), (Some(json!(2)), false));
    }
    assert_eq!(
        count(json!({"LogicalProcessorCount": 64}), vec![processor(json!(2))]),
        (Some(json!(64)), false)
    );

    let memory = |gib: Value| {
        let (inventory, notes) =
            of(json!({"MemorySummary": {"TotalSystemMemoryGiB": gib}}), vec![], vec![], vec![]);
        (inventory["memory"].get("physical_mb").cloned(), notes.iter().any(|note| note.contains("memory")))
    };
    assert_eq!(memory(json!(0.5)), (Some(json!(512)), false));
    for absurd in [json!(0), json!(-8), json!(1e30), json!({"GiB": 8}), json!("inf")] {
        assert_eq!(memory(absurd.clone()), (None, true), "{absurd}");
    }
    let (inventory, notes) =
        of(json!({}), vec![], vec![], vec![json!({"Id": "d", "CapacityBytes": -5}), json!(7)]);
    assert_eq!(inventory["disks"], json!([{"name": "d"}]));
    assert!(notes.contains(&"disk d reports no size".to_owned()), "{notes:?}");
}

#[test]
fn processors_of_which_one_was_left_out_are_not_counted() {
    let processors = Listed { found: vec![json!({"TotalThreads": 8})], complete: false };
    let system = json!({"ProcessorSummary": {"Count": 2}});
    let parts = Parts { system: &system, processors: &processors, nics: &[], drives: &[] };
    assert_eq!(inventory(&parts, None, &mut Vec::new())["cpu"]["count"], 2);
}

#[test]
fn null_addresses_duplicates_and_absent_parts_are_left_out() {
    let nic = |name: &str, mac: Value| json!({"Id": name, "MACAddress": mac});
    let mut absent = nic("gone", json!("52:54:00:00:00:09"));
    absent["Status"] = json!({"State": "Absent"});
    let nics = vec![
        nic("good", json!("52-54-00-00-00-0A")),
        nic("same", json!("52:54:00:00:00:0a")),
        nic("zero", json!("00:00:00:00:00:00")),
        nic("long", json!("52:54:00:00:00:00:00:0a")),
        nic("sign", json!("52:54:00:00:00:+b")),
        nic("none", json!(null)),
        absent,
    ];
    let (inventory, notes) = of(json!({}), vec![], nics, vec![]);
    assert_eq!(inventory["interfaces"], json!([{"name": "good", "mac_address": "52:54:00:00:00:0a"}]));
    for name in ["same", "zero", "long", "sign", "none"] {
        assert!(
            notes.iter().any(|note| note.contains(&format!("interface {name} has "))),
            "{name}: {notes:?}"
        );
    }
    assert!(!notes.iter().any(|note| note.contains("gone")), "{notes:?}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "Status",
        "State",
        "MemorySummary",
        "TotalSystemMemoryGiB",
        "ProcessorSummary",
        "Count",
        "TotalThreads",
        "ProcessorType",
        "MaxSpeedMHz",
        "InstructionSet",
        "Id",
        "Name",
        "MACAddress",
        "SpeedMbps",
        "LinkStatus",
        "CapacityBytes",
        "MediaType",
        "Identifiers",
        "DurableNameFormat",
        "DurableName",
        "Boot",
        "SerialNumber",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["CPU", "NAA", "Absent", "LinkUp", "52:54:00:00:00:01", "1e308", "-0"])
            .prop_map(Value::from),
        ".{0,300}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..8)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    /// What can be understood has the right type and a sane size; the rest is not there.
    #[test]
    fn no_answer_of_a_bmc_makes_a_strange_inventory(
        system in any_json(), processor in any_json(), nic in any_json(), drive in any_json()
    ) {
        let (inventory, notes) = of(system.clone(), vec![processor], vec![nic], vec![drive]);
        let number = |value: &Value, most: u64| value.is_null() || value.as_u64().is_some_and(|n| n <= most);
        prop_assert!(number(&inventory["cpu"]["count"], 65_536), "{inventory}");
        prop_assert!(number(&inventory["memory"]["physical_mb"], 1 << 30), "{inventory}");
        prop_assert!(number(&inventory["disks"][0]["size"], 1 << 60), "{inventory}");
        let mac = inventory["interfaces"][0]["mac_address"].as_str();
        prop_assert!(mac.is_none_or(|mac| mac.len() == 17), "{inventory}");
        prop_assert!(inventory.to_string().len() < 8192);
        prop_assert!(notes.iter().all(|note| note.len() < 1200));
        plugin_data(&system);
    }
}
