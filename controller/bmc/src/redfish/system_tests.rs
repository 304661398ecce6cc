use proptest::prelude::*;

use super::*;

fn allowed(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_node_on_its_way_down_still_has_power() {
    let state = |word: Value| power_state(&json!({ "PowerState": word }));
    assert_eq!(state(json!("PoweringOff")), Ok(Some(PowerState::On)));
    assert_eq!(state(json!("Off")), Ok(Some(PowerState::Off)));
    assert_eq!(state(json!(null)), Ok(None), "the BMC does not know");
    assert!(state(json!("Reset")).unwrap_err().contains("'Reset'"));
    assert!(power_state(&json!({})).is_err());
    assert!(!is_settled(&json!({"PowerState": "PoweringOff"}), PowerState::On));
}

#[test]
fn reset_types_honour_what_is_allowed() {
    assert_eq!(choose_reset(PowerTarget::Reboot, None), Some(Reset::One("ForceRestart")));
    let table = [
        (PowerTarget::On, &["ForceOn", "ForceOff"][..], Some(Reset::One("ForceOn"))),
        (PowerTarget::Off, &["On", "GracefulShutdown"], None),
        (PowerTarget::Reboot, &["PowerCycle"], Some(Reset::One("PowerCycle"))),
        (PowerTarget::Reboot, &["On", "ForceOff"], Some(Reset::OffThenOn("ForceOff", "On"))),
        (PowerTarget::Reboot, &["On"], None),
        (PowerTarget::SoftOff, &["On", "ForceOff"], None),
        (PowerTarget::SoftReboot, &["GracefulRestart"], Some(Reset::One("GracefulRestart"))),
    ];
    for (action, names, expected) in table {
        assert_eq!(choose_reset(action, Some(&allowed(names))), expected, "{action:?} of {names:?}");
    }
}

#[test]
fn action_info_and_links_stay_on_the_bmc() {
    let system = json!({"Actions": {"#ComputerSystem.Reset": {
        "target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
        "@Redfish.ActionInfo": "https://evil.example/info",
    }}});
    let action = reset_action(&system).unwrap();
    assert_eq!((action.info, action.allowed), (None, None));
    let evil = json!({"Actions": {"#ComputerSystem.Reset": {"target": "//evil.example/x"}}});
    assert_eq!(reset_action(&evil), None);
    let info = json!({"Parameters": [{"Name": "Other"}, {"Name": "ResetType", "AllowableValues": ["On", 3, "ForceOff"]}]});
    assert_eq!(allowed_by_info(&info), Some(allowed(&["On", "ForceOff"])));
    let members_of =
        json!({"Members": [{"@odata.id": "/redfish/v1/Systems/1"}, {"@odata.id": "http://evil/"}, 7]});
    assert_eq!(members(&members_of), ["/redfish/v1/Systems/1"]);
}

#[test]
fn the_mode_is_sent_only_when_it_must_change() {
    let system = json!({"Boot": {"BootSourceOverrideMode": "UEFI"}});
    let patch = boot_patch(&system, BootDevice::Pxe, false, Some(BootMode::Uefi)).unwrap();
    assert_eq!(
        patch,
        json!({"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}})
    );
    let patch = boot_patch(&system, BootDevice::Disk, true, Some(BootMode::Bios)).unwrap();
    assert_eq!(patch["Boot"]["BootSourceOverrideMode"], "Legacy");
    assert_eq!(patch["Boot"]["BootSourceOverrideEnabled"], "Continuous");
    assert_eq!(
        boot_patch(&system, BootDevice::Pxe, true, None).unwrap()["Boot"].get("BootSourceOverrideMode"),
        None
    );
}

#[test]
fn what_the_bmc_does_not_offer_is_named() {
    let system = json!({"Boot": {"BootSourceOverrideTarget@Redfish.AllowableValues": ["Pxe", "UsbCd"]}});
    let error = boot_patch(&system, BootDevice::Disk, false, None).unwrap_err();
    assert!(error.contains("disk") && error.contains("Pxe, UsbCd"), "{error}");
    let patch = boot_patch(&system, BootDevice::Cdrom, false, None).unwrap();
    assert_eq!(patch["Boot"]["BootSourceOverrideTarget"], "UsbCd");
    for (offered, target) in
        [(json!(["Cd", "UsbCd"]), "UsbCd"), (json!(["Cd"]), "Cd"), (json!([]), "Cd"), (json!(null), "Cd")]
    {
        let system = json!({"Boot": {"BootSourceOverrideTarget@Redfish.AllowableValues": offered}});
        let patch = boot_patch(&system, BootDevice::Cdrom, false, None).unwrap();
        assert_eq!(patch["Boot"]["BootSourceOverrideTarget"], target, "{system}");
    }
    let once = json!({"Boot": {"BootSourceOverrideEnabled@Redfish.AllowableValues": ["Once", "Disabled"]}});
    assert!(boot_patch(&once, BootDevice::Pxe, true, None).unwrap_err().contains("Continuous"));
    assert!(boot_patch(&json!({}), BootDevice::Safe, true, None).is_err());
}

#[test]
fn the_override_in_force() {
    let boot = |enabled: &str| {
        boot_setting(&json!({"Boot": {"BootSourceOverrideEnabled": enabled, "BootSourceOverrideTarget": "Cd",
            "BootSourceOverrideMode": "Legacy"}}))
    };
    let once =
        BootSetting { device: Some(BootDevice::Cdrom), persistent: Some(false), mode: Some(BootMode::Bios) };
    assert_eq!(boot("Once"), once);
    assert_eq!(boot("Disabled"), BootSetting { mode: Some(BootMode::Bios), ..BootSetting::default() });
    assert_eq!(boot_setting(&json!({"Boot": []})), BootSetting::default());
}

#[test]
fn tasks_and_errors() {
    assert_eq!(task_progress(&json!({"TaskState": "Running"})), TaskProgress::Running);
    assert_eq!(task_progress(&json!({"TaskState": "Completed", "TaskStatus": "OK"})), TaskProgress::Done);
    let failed = json!({"TaskState": "Exception", "Messages": [{"Message": "fan is missing"}]});
    assert!(matches!(task_progress(&failed), TaskProgress::Failed(why) if why.contains("fan is missing")));
    let one = json!({"error": {"@Message.ExtendedInfo": {"Message": "Busy."}, "message": "see"}});
    assert_eq!(error_text(&one).as_deref(), Some("Busy."));
    assert_eq!(error_text(&json!({"error": {"message": "see"}})).as_deref(), Some("see"));
    assert_eq!(error_text(&json!({"error": 5})), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "Boot",
        "Actions",
        "#ComputerSystem.Reset",
        "target",
        "PowerState",
        "Members",
        "@odata.id",
        "Parameters",
        "Name",
        "AllowableValues",
        "error",
        "@Message.ExtendedInfo",
        "TaskState",
        "Messages",
        "BootSourceOverrideTarget",
        "BootSourceOverrideEnabled",
        "BootSourceOverrideTarget@Redfish.AllowableValues",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["On", "Off", "ResetType", "/redfish/v1", "Exception", "Once", "Pxe"])
            .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_answer_of_a_bmc_makes_us_panic_or_leave_it(json in any_json()) {
        let _ = (power_state(&json), health(&json), boot_setting(&json), task_progress(&json), error_text(&json));
        let _ = (allowed_by_info(&json), boot_patch(&json, BootDevice::Pxe, true, Some(BootMode::Uefi)));
        if let Some(action) = reset_action(&json) {
            prop_assert!(is_path(&action.target));
        }
        for member in members(&json) {
            prop_assert!(is_path(member));
        }
    }
}
