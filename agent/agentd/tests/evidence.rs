//! What the agent signs of an erase, and for whom.

use crate::common;
use crate::example;

use agent_protocol::record::{EraseReport, RequiredVerification};
use agentd::evidence::{Ended, attach, attach_boot_entries};
use agentd::registry::Ending;
use agentd::token::Token;
use certificate::{EVIDENCE, Expected, INSTALL_BOOTLOADER, Signed, StepName, judge};
use hwm_sdk::StepKind;
use serde_json::json;
use std::sync::Arc;

#[test]
fn only_a_controller_that_offered_gets_evidence() {
    let agent = common::agent(&Arc::default());
    let (step, node) = (json!({"interface": "deploy", "step": "erase_devices"}), json!({"uuid": "n"}));
    let disks = json!([{"device": "/dev/sda", "serial": "S1", "size": 8, "outcome": "skipped", "reason": "kept",
                        "bytes_erased": 0, "started_at": 1_795_229_965.688_786}]);
    let ignored = json!([{"address": "0000:3b:00.0", "ids": "1000:005b", "reason": "no cables"}]);
    let result =
        json!({"clean_result": {"disks": disks, "ignored_controllers": ignored}, "clean_step": step});
    let attached = |result: &serde_json::Value| {
        let manager = Some(("m".to_owned(), "1".to_owned()));
        let ended = Ended { kind: StepKind::Clean, step: &step, node: &node, command_id: "c", manager };
        let mut ending = Ending::done(Some(result.clone()));
        attach(agent.state(), &ended, &mut ending);
        ending.result.unwrap()
    };
    let token = Token::new(&"t".repeat(32)).unwrap();
    assert_eq!(attached(&result), result, "before the lookup");
    agent.state().set_lookup_result(token.clone(), false);
    assert_eq!(attached(&result), result, "an Ironic");

    agent.state().set_lookup_result(token, true);
    let signed: Signed = serde_json::from_value(attached(&result)[EVIDENCE].clone()).unwrap();
    let key = agent.state().heartbeat().evidence_key.expect("it is sent").parse().unwrap();
    let expected = Expected {
        node: "n",
        command_id: "c",
        boot_id: &agent.state().identity().boot_id,
        step: StepName { kind: "clean".into(), interface: "deploy".into(), step: "erase_devices".into() },
        succeeded: true,
        report: &serde_json::from_value(result["clean_result"].clone()).unwrap(),
        deployed: None,
        boot_entries: None,
        required: RequiredVerification::Device,
    };
    assert_eq!(judge(&signed, &key, &expected).unwrap().manager.name, "m");
    let other = json!({"clean_result": "quick done", "clean_step": step});
    assert_eq!(attached(&other), other, "not a report of an erase");
    let next = common::agent(&Arc::default()).state().heartbeat().evidence_key;
    assert_ne!(next, agent.state().heartbeat().evidence_key, "each process has its own");
}

#[test]
fn the_record_of_a_deployment_and_the_boot_entries_are_signed_for_a_controller_that_offered() {
    let agent = common::agent(&Arc::default());
    let (step, node) = (json!({"interface": "deploy", "step": "write_image"}), json!({"uuid": "n"}));
    let deployed = example::deployment().deployed;
    let entries = example::boot_entries().boot_entries;
    let image = json!({"deploy_result": {"result": "x", "image": deployed}, "deploy_step": step});
    let boots = json!({"result": "y", "boot_entries": entries});
    let attached = |kind: StepKind, result: &serde_json::Value| {
        let ended = Ended { kind, step: &step, node: &node, command_id: "c", manager: None };
        let mut ending = Ending::done(Some(result.clone()));
        attach(agent.state(), &ended, &mut ending);
        ending.result.unwrap()
    };
    let booted = |result: &serde_json::Value| {
        let mut ending = Ending::done(Some(result.clone()));
        attach_boot_entries(agent.state(), "n", "c", &mut ending);
        ending.result.unwrap()
    };
    let token = Token::new(&"t".repeat(32)).unwrap();
    agent.state().set_lookup_result(token.clone(), false);
    assert_eq!(
        (attached(StepKind::Deploy, &image), booted(&boots)),
        (image.clone(), boots.clone()),
        "an Ironic"
    );

    agent.state().set_lookup_result(token, true);
    let key = agent.state().heartbeat().evidence_key.expect("it is sent").parse().unwrap();
    let report = EraseReport::default();
    let expected = |step: [&str; 3]| Expected {
        node: "n",
        command_id: "c",
        boot_id: &agent.state().identity().boot_id,
        step: StepName::of(step),
        succeeded: true,
        report: &report,
        deployed: None,
        boot_entries: None,
        required: RequiredVerification::Device,
    };
    let signed =
        |result: serde_json::Value| -> Signed { serde_json::from_value(result[EVIDENCE].clone()).unwrap() };
    let written = Expected { deployed: deployed.as_ref(), ..expected(["deploy", "deploy", "write_image"]) };
    judge(&signed(attached(StepKind::Deploy, &image)), &key, &written).unwrap();
    let written = Expected { boot_entries: entries.as_ref(), ..expected(INSTALL_BOOTLOADER) };
    judge(&signed(booted(&boots)), &key, &written).unwrap();

    let broken = json!({"deploy_result": {"image": {"device": "/dev/sda"}}});
    assert_eq!(attached(StepKind::Deploy, &broken), broken, "the controller rejects it: it is not signed");
    let bios = json!({"result": "nothing was changed"});
    assert_eq!(booted(&bios), bios);
}

#[test]
fn the_process_that_signs_has_the_key_alone_and_can_do_nothing_else() {
    let agent = common::agent(&Arc::default());
    let signer = agent.state().signer().unwrap();
    let of = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", signer.process_id())).unwrap();
    let status = of("status");
    for line in [
        "Seccomp:\t2",
        "NoNewPrivs:\t1",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "Threads:\t1",
    ] {
        assert!(status.contains(line), "{line}: {status}");
    }
    assert!(!status.contains("Uid:\t0"), "{status}");
    let proc = format!("/proc/{}", signer.process_id());
    let descriptors: Vec<_> = std::fs::read_dir(format!("{proc}/fd")).unwrap().collect();
    assert_eq!(descriptors.len(), 3, "its pipes and standard error");
    assert_eq!(std::fs::read_dir(format!("{proc}/root")).unwrap().count(), 0, "an empty root");
    for namespace in ["net", "mnt", "ipc"] {
        let link = |of: &str| std::fs::read_link(format!("{of}/ns/{namespace}")).unwrap();
        assert_ne!(link(&proc), link("/proc/self"), "{namespace}");
    }
}

#[test]
fn evidence_is_not_signed_any_more_once_the_process_that_signs_has_ended() {
    let agent = common::agent(&Arc::default());
    agent.state().set_lookup_result(Token::new(&"t".repeat(32)).unwrap(), true);
    let (step, node) = (json!({"interface": "deploy", "step": "erase_devices"}), json!({"uuid": "n"}));
    let result = json!({"clean_result": {"disks": []}, "clean_step": step});
    let signed = || {
        let ended = Ended { kind: StepKind::Clean, step: &step, node: &node, command_id: "c", manager: None };
        let mut ending = Ending::done(Some(result.clone()));
        attach(agent.state(), &ended, &mut ending);
        ending.result.unwrap().get(EVIDENCE).is_some()
    };
    assert!(signed());
    let process =
        nix::unistd::Pid::from_raw(agent.state().signer().unwrap().process_id().try_into().unwrap());
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(!signed() && !signed());
    assert!(agent.state().heartbeat().evidence_key.is_some(), "so that the controller rejects the report");
}
