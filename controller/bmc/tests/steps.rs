//! Out-of-band steps as the conductor uses them: listed by the drivers, checked, run.

#[path = "support/call.rs"]
mod call;

use std::collections::BTreeMap;
use std::time::Duration;

use agent_protocol::schema;
use bmc::{BootDevice, Builtin, Drivers, ErrorKind, PowerState, StepEnd, fake};
use call::Node;
use model::abilities::{Abilities, Inspect, Rescue};
use model::plan::automated_plan;
use model::step::{CatalogueStep, PlannedStep, StepKind};
use serde_json::{Map, Value, json};

/// Ironic's interfaces that may offer steps.
const WITH_STEPS: [&str; 7] = ["power", "management", "deploy", "bios", "raid", "firmware", "vendor"];

fn abilities(driver: &str, names: &[(&str, &str)]) -> Abilities {
    let names = names.iter().map(|(key, name)| ((*key).to_owned(), (*name).to_owned()));
    Builtin::default().abilities(driver, &names.collect()).unwrap()
}

fn labels(steps: &[CatalogueStep]) -> Vec<String> {
    steps.iter().map(CatalogueStep::label).collect()
}

#[test]
fn abilities_follow_the_interfaces_of_the_node() {
    let fake = abilities("fake-hardware", &[]);
    assert_eq!((fake.agent, fake.inspect, fake.rescue), (false, Inspect::Fake, Rescue::Fake));
    let agent = abilities(
        "fake-hardware",
        &[("deploy_interface", "direct"), ("inspect_interface", "agent"), ("rescue_interface", "agent")],
    );
    assert_eq!((agent.agent, agent.inspect, agent.rescue), (true, Inspect::Agent, Rescue::Agent));
    let redfish = abilities("redfish", &[]);
    assert_eq!((redfish.agent, redfish.inspect, redfish.rescue), (true, Inspect::Bmc, Rescue::Agent));
    let ipmi = abilities("ipmi", &[]);
    assert_eq!((ipmi.agent, ipmi.inspect, ipmi.rescue), (true, Inspect::Agent, Rescue::Agent));
    let none = abilities("ipmi", &[("inspect_interface", "no-inspect"), ("rescue_interface", "no-rescue")]);
    assert_eq!((none.inspect, none.rescue), (Inspect::None, Rescue::None));

    // An interface without steps has none, whatever the driver; so it is with all of them in IPMI but deploy.
    for kind in StepKind::ALL {
        let deploy = if kind == StepKind::Deploy { 6 } else { 0 };
        let labels_of_ipmi = labels(ipmi.out_of_band(kind));
        assert!(labels_of_ipmi.iter().all(|label| label.starts_with("deploy.")), "{labels_of_ipmi:?}");
        assert_eq!(labels_of_ipmi.len(), deploy);
        assert!(
            !labels(abilities("redfish", &[("bios_interface", "no-bios")]).out_of_band(kind))
                .iter()
                .any(|label| label.starts_with("bios."))
        );
    }
}

#[test]
fn what_is_not_known_is_named_with_what_is() {
    let refused = |driver: &str, key: &str, name: &str| {
        let names = BTreeMap::from([(key.to_owned(), name.to_owned())]);
        let error = Builtin::default().abilities(driver, &names).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    };
    assert_eq!(
        refused("redfish", "deploy_interface", "ansible"),
        "deploy_interface 'ansible' is not enabled with driver redfish; use direct, custom-agent, ramdisk"
    );
    assert!(refused("fake-hardware", "raid_interface", "redfish").ends_with("use fake, agent, no-raid"));
    assert!(refused("ipmi", "raid", "agent").starts_with("driver ipmi has no raid; it has bios_interface, "));
    assert!(refused("idrac", "raid_interface", "agent").contains("unknown driver 'idrac'"));
}

/// All steps of a driver with these interfaces, a line each.
fn declared(driver: &str, names: &[(&str, &str)]) -> Vec<String> {
    let line = |kind: StepKind, step: &CatalogueStep| {
        let flags = [
            (step.abortable, " abortable"),
            (step.idempotent, " idempotent"),
            (step.requires_ramdisk, " ramdisk"),
            (step.reboot_requested, " reboot"),
        ];
        let flags: String = flags.into_iter().filter(|(set, _)| *set).map(|(_, word)| word).collect();
        let args: Vec<String> = step
            .args
            .iter()
            .map(|(name, arg)| format!("{name}{}", if arg.required { "" } else { "?" }))
            .collect();
        let (kind, label, provider) = (kind.as_str(), step.label(), &step.provider);
        format!("{kind} {provider} {label}({}) {}{flags}", args.join(", "), step.priority)
    };
    let abilities = abilities(driver, names);
    let lines = StepKind::ALL
        .map(|kind| abilities.out_of_band(kind).iter().map(|step| line(kind, step)).collect::<Vec<_>>());
    lines.concat()
}

/// The whole catalogue of every driver, so that nothing in it changes unseen.
#[test]
fn the_declared_steps_are_these() {
    let of = declared;
    let direct = [
        "deploy direct deploy.deploy() 100 abortable idempotent ramdisk",
        "deploy direct deploy.write_image() 80 abortable idempotent ramdisk",
        "deploy direct deploy.prepare_instance_boot() 60 abortable idempotent ramdisk",
        "deploy direct deploy.tear_down_agent() 40 abortable idempotent",
        "deploy direct deploy.switch_to_tenant_network() 30 abortable idempotent",
        "deploy direct deploy.boot_instance() 20 abortable idempotent",
    ];
    assert_eq!(of("ipmi", &[]), direct);
    let before = [
        "clean redfish bios.apply_configuration(settings) 0 idempotent reboot",
        "clean redfish bios.factory_reset() 0 idempotent reboot",
        "clean redfish management.enroll_secure_boot_keys(KEK?, PK?, db?, delete_existing?) 0 idempotent reboot",
        "clean redfish management.clear_secure_boot_keys() 0 idempotent reboot",
        "clean redfish management.reset_secure_boot_keys_to_default() 0 idempotent reboot",
        "deploy redfish bios.apply_configuration(settings) 0 idempotent reboot",
        "deploy redfish bios.factory_reset() 0 idempotent reboot",
    ];
    let after = [
        "deploy redfish management.enroll_secure_boot_keys(KEK?, PK?, db?, delete_existing?) 0 idempotent reboot",
        "deploy redfish management.clear_secure_boot_keys() 0 idempotent reboot",
        "deploy redfish management.reset_secure_boot_keys_to_default() 0 idempotent reboot",
        "service redfish bios.apply_configuration(settings) 0 idempotent reboot",
        "service redfish bios.factory_reset() 0 idempotent reboot",
    ];
    assert_eq!(of("redfish", &[]), [&before[..], &direct, &after].concat());
    assert_eq!(
        of("fake-hardware", &[]),
        [
            "clean fake bios.apply_configuration(settings) 0 idempotent",
            "clean fake bios.factory_reset() 0 idempotent",
            "clean fake management.fake_reset() 10 abortable idempotent",
            "clean fake management.fake_slow(seconds) 0 abortable idempotent",
            "clean fake management.fake_fail(message) 0",
            "clean fake raid.create_configuration(delete_existing?, raid_config) 0",
            "clean fake raid.delete_configuration() 0 idempotent",
            "clean fake vendor.log_passthrough() 0 idempotent",
            "deploy fake bios.apply_configuration(settings) 0 idempotent",
            "deploy fake bios.factory_reset() 0 idempotent",
            "deploy fake deploy.deploy() 100 idempotent",
            "deploy fake management.fake_slow(seconds) 0 abortable idempotent",
            "deploy fake management.fake_fail(message) 0",
            "deploy fake raid.apply_configuration(delete_existing?, raid_config) 0",
            "service fake bios.apply_configuration(settings) 0 idempotent",
            "service fake bios.factory_reset() 0 idempotent",
            "service fake management.fake_slow(seconds) 0 abortable idempotent",
            "service fake management.fake_fail(message) 0",
            "service fake raid.apply_configuration(delete_existing?, raid_config) 0",
            "service fake raid.create_configuration(delete_existing?, raid_config) 0",
            "service fake raid.delete_configuration() 0 idempotent",
            "service fake vendor.log_passthrough() 0 idempotent",
            "service fake vendor.trigger_servicewait() 0 idempotent",
        ]
    );
    let with_agent = of("fake-hardware", &[("deploy_interface", "direct")]);
    let has = |line: &&str| with_agent.iter().any(|shown| shown == line);
    assert!(direct.iter().all(has) && with_agent.len() == 28, "{with_agent:?}");
}

#[test]
fn every_declaration_is_complete_and_its_schemas_are_understood() {
    for driver in bmc::DRIVERS {
        for interface in bmc::interfaces(driver).unwrap() {
            for implementation in interface.enabled {
                let abilities =
                    abilities(driver, &[(&format!("{}_interface", interface.name), implementation.name)]);
                for (kind, step) in
                    abilities.steps.iter().flat_map(|(kind, all)| all.iter().map(move |s| (kind, s)))
                {
                    let label = step.label();
                    assert!(WITH_STEPS.contains(&step.interface.as_str()), "{label}");
                    assert!(!step.in_band || step.provider == "direct", "{label}");
                    assert!(*kind != StepKind::Deploy || step.priority.is_u64(), "{label}");
                    for (name, arg) in &step.args {
                        assert!(arg.description.ends_with('.'), "{label} {name}");
                        let schema = arg.schema.as_ref().unwrap();
                        assert!(schema.is_object(), "{label} {name}: its schema is not JSON");
                        let why = schema::check(name, schema, &Value::Null).unwrap_err();
                        assert!(why.starts_with(&format!("{name} must be")), "{label} {name}: {why}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn arguments_are_checked_before_anything_is_done() {
    let node = Node::fake("args");
    let refused = async |label: &str, args: Value| {
        let error = node.refused(StepKind::Clean, label, args).await;
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Step, false));
        error.to_string()
    };
    assert_eq!(
        refused("management.fake_slow", json!({})).await,
        "clean step management.fake_slow is missing these required arguments: seconds"
    );
    assert_eq!(
        refused("management.fake_slow", json!({"seconds": 1, "x": 1, "y": 2})).await,
        "clean step management.fake_slow has these unexpected arguments: x, y"
    );
    assert_eq!(
        refused("management.fake_slow", json!({"seconds": "1"})).await,
        "clean step management.fake_slow: argument seconds must be a number"
    );
    assert_eq!(
        refused("management.fake_slow", json!({"seconds": -1})).await,
        "clean step management.fake_slow: argument seconds must be at least 0"
    );
    let bad = json!({"settings": [{"name": "BootMode", "value": "Bios"}, {"name": "BootMode"}]});
    assert_eq!(
        refused("bios.apply_configuration", bad).await,
        "clean step bios.apply_configuration: argument settings[1] lacks 'value'"
    );
    let bad = json!({"raid_config": {"logical_disks": [{"size_gb": 1, "raid_level": "7"}]}});
    let text = refused("raid.create_configuration", bad).await;
    assert!(text.contains("argument raid_config.logical_disks[0].raid_level must be one of"), "{text}");
    // A step of another kind, one of another implementation, and two that do not exist.
    for label in ["deploy.deploy", "raid.apply_configuration", "bios.nope", "nope.nope"] {
        assert!(refused(label, json!({})).await.starts_with(&format!("clean step {label} does not exist")));
    }
    let without = Node::fake("args").with("raid_interface", "no-raid");
    let error = without.refused(StepKind::Clean, "raid.delete_configuration", json!({})).await.to_string();
    assert!(error.ends_with("with driver fake-hardware and raid_interface no-raid"), "{error}");
    assert_eq!(fake::configuration("args"), fake::configuration("never met"), "nothing was done");
}

/// Everything that runs by itself; what a user configured stays as it was.
#[tokio::test]
async fn automated_cleaning_leaves_the_configuration_as_it_was() {
    let node = Node::fake("apparent");
    let bios = json!({"settings": [{"name": "BootMode", "value": "Bios"}]});
    node.done(StepKind::Clean, "bios.apply_configuration", bios).await;
    let raid = json!({"raid_config": {"logical_disks": [{"size_gb": 100, "raid_level": "1"}]}});
    node.done(StepKind::Clean, "raid.create_configuration", raid).await;
    let machine = Builtin::default().open("fake-hardware", &Map::new(), "apparent").unwrap();
    machine.set_boot_device(BootDevice::Disk, true, None).await.unwrap();
    let before = (fake::configuration("apparent"), machine.boot_device().await.unwrap());
    assert_eq!(before.0.raid, [json!({"size_gb": 100, "raid_level": "1"})]);
    assert_eq!(before.0.bios["BootMode"], "Bios");

    let plan = automated_plan(abilities("fake-hardware", &[]).out_of_band(StepKind::Clean));
    assert_eq!(plan.iter().map(PlannedStep::label).collect::<Vec<_>>(), ["management.fake_reset"]);
    for step in &plan {
        let result = node.done(StepKind::Clean, &step.label(), json!({})).await;
        assert!(result.to_string().contains("nothing was erased"), "{result}");
    }
    assert_eq!((fake::configuration("apparent"), machine.boot_device().await.unwrap()), before);
}

#[tokio::test]
async fn the_fakes_configuration_changes_by_manual_steps_of_every_kind() {
    let node = Node::fake("config");
    let disk = |level: &str| json!({"size_gb": "MAX", "raid_level": level});
    let config = |level: &str| json!({"raid_config": {"logical_disks": [disk(level)]}});
    node.done(StepKind::Deploy, "raid.apply_configuration", config("1")).await;
    let mut added = config("0");
    added["delete_existing"] = json!(false);
    node.done(StepKind::Service, "raid.create_configuration", added).await;
    assert_eq!(fake::configuration("config").raid, [disk("1"), disk("0")]);
    node.done(StepKind::Clean, "raid.create_configuration", config("5")).await;
    assert_eq!(fake::configuration("config").raid, [disk("5")], "in the place of the present ones");
    // What the schema lets through and the step itself finds wrong.
    let odd = json!({"raid_config": {"logical_disks": [{"size_gb": "all", "raid_level": "1"}]}});
    let error = node.refused(StepKind::Clean, "raid.create_configuration", odd).await;
    assert!(error.to_string().contains("raid_config.logical_disks[0].size_gb"), "{error}");
    assert_eq!(fake::configuration("config").raid, [disk("5")]);
    node.done(StepKind::Clean, "raid.delete_configuration", json!({})).await;
    assert_eq!(fake::configuration("config").raid, Vec::<Value>::new());

    let settings = |name: &str| json!({"settings": [{"name": name, "value": "Disabled"}]});
    for kind in StepKind::ALL {
        node.done(kind, "bios.apply_configuration", settings("ProcTurboMode")).await;
        assert_eq!(fake::configuration("config").bios["ProcTurboMode"], "Disabled");
        node.done(kind, "bios.factory_reset", json!({})).await;
        assert_eq!(fake::configuration("config").bios["ProcTurboMode"], "Enabled");
    }
    let error = node.refused(StepKind::Clean, "bios.apply_configuration", settings("Nope")).await;
    assert!(error.to_string().contains("no setting 'Nope'; it has BootMode"), "{error}");
    let mut twice = settings("BootMode");
    let again = twice["settings"][0].clone();
    twice["settings"].as_array_mut().unwrap().push(again);
    let error = node.refused(StepKind::Clean, "bios.apply_configuration", twice).await;
    assert!(error.to_string().contains("'BootMode' more than once"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_step_goes_on_outside_and_is_one_execution_by_its_id() {
    let node = Node::fake("slow");
    let call = async |seconds: f64, id, polling| {
        node.call(StepKind::Service, "management.fake_slow", json!({"seconds": seconds}), (id, polling))
            .await
            .unwrap()
    };
    let running = |end: &StepEnd| matches!(end, StepEnd::Running(what) if what.contains("of 60 s are left"));
    assert!(running(&call(60.0, "c1", false).await));
    tokio::time::advance(Duration::from_secs(40)).await;
    assert!(running(&call(60.0, "c1", true).await));
    // Sent again by a conductor that does not know whether it has begun: still the same execution.
    assert!(running(&call(60.0, "c1", false).await));
    tokio::time::advance(Duration::from_secs(21)).await;
    assert!(matches!(call(60.0, "c1", true).await, StepEnd::Done(_)));
    assert!(matches!(call(60.0, "c1", true).await, StepEnd::Done(_)), "asked again, it is still done");
    assert!(running(&call(60.0, "c2", false).await), "another id is another execution");
    assert!(matches!(call(0.0, "c3", false).await, StepEnd::Done(_)));
    // Asked for by a process that was restarted: the world is new, and it begins anew.
    assert!(running(&call(60.0, "of before", true).await));
}

#[tokio::test]
async fn the_fakes_deployment_starts_nothing_and_its_failure_is_reported() {
    let node = Node::fake("deploy");
    let machine = Builtin::default().open("fake-hardware", &Map::new(), "deploy").unwrap();
    assert_eq!(machine.power_state().await.unwrap(), PowerState::Off);
    for _ in 0..2 {
        node.done(StepKind::Deploy, "deploy.deploy", json!({})).await;
        assert_eq!(machine.power_state().await.unwrap(), PowerState::Off);
    }
    let args = json!({"message": "the disk is on fire"});
    let error = node.refused(StepKind::Deploy, "management.fake_fail", args).await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Step, false));
    assert_eq!(error.to_string(), "deploy step management.fake_fail failed: the disk is on fire");
}

/// Ironic 39's, in its order. Those of the agent are never run here.
#[tokio::test]
async fn direct_has_ironics_deploy_steps() {
    let fake = Node::fake("direct").with("deploy_interface", "direct");
    let redfish = Node::redfish("http://127.0.0.1:1", "/redfish/v1/Systems/1");
    let ipmi = Node { driver: "ipmi", ..Node::fake("direct") };
    for node in [fake, redfish, ipmi] {
        let able = Builtin::default().abilities(node.driver, &node.interfaces).unwrap();
        let direct = able.out_of_band(StepKind::Deploy).iter().filter(|step| step.provider == "direct");
        let shown: Vec<_> =
            direct.map(|step| (step.label(), step.priority.as_u64().unwrap(), step.in_band)).collect();
        let of = |name: &str, priority, in_band| (format!("deploy.{name}"), priority, in_band);
        assert_eq!(
            shown,
            [
                of("deploy", 100, false),
                of("write_image", 80, true),
                of("prepare_instance_boot", 60, true),
                of("tear_down_agent", 40, false),
                of("switch_to_tenant_network", 30, false),
                of("boot_instance", 20, false),
            ]
        );
        node.done(StepKind::Deploy, "deploy.deploy", json!({})).await;
        let error = node.refused(StepKind::Deploy, "deploy.write_image", json!({})).await;
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Step, false));
        assert!(error.to_string().contains("is a step of the agent"), "{error}");
    }
}

/// Ironic 39's one step; the conductor does it.
#[tokio::test]
async fn ramdisk_has_ironics_deploy_step_and_cleans_with_an_agent() {
    let fake = Node::fake("ramdisk");
    let redfish = Node::redfish("http://127.0.0.1:1", "/redfish/v1/Systems/1");
    let ipmi = Node { driver: "ipmi", ..Node::fake("ramdisk") };
    for node in [fake, redfish, ipmi] {
        let direct = Builtin::default().abilities(node.driver, &BTreeMap::new()).unwrap();
        assert_eq!(direct.deploys_with_agent(), node.driver != "fake-hardware");
        let node = node.with("deploy_interface", "ramdisk");
        let able = Builtin::default().abilities(node.driver, &node.interfaces).unwrap();
        assert!(able.agent && !able.deploys_with_agent());
        let steps = able.out_of_band(StepKind::Deploy).iter().filter(|step| step.interface == "deploy");
        let shown: Vec<_> = steps
            .map(|step| (step.label(), step.priority.as_u64(), step.requires_ramdisk, step.abortable))
            .collect();
        assert_eq!(shown, [("deploy.deploy".to_owned(), Some(100), false, false)]);
        let error = node.refused(StepKind::Deploy, "deploy.deploy", json!({})).await;
        assert!(error.to_string().contains("is a step of the conductor"), "{error}");
    }
}

#[tokio::test]
async fn the_fakes_inventory_says_that_it_is_made_up() {
    let inspect =
        async |uuid: &str| Builtin::default().inspect("fake-hardware", &Map::new(), uuid).await.unwrap();
    let report = inspect("i1").await;
    assert_eq!(report, inspect("i1").await);
    let inventory = &report["inventory"];
    assert_eq!(inventory["memory"]["physical_mb"], 8192);
    assert!(inventory["system_vendor"]["product_name"].as_str().unwrap().contains("made up"));
    assert!(report["plugin_data"]["fake"].is_string());
    let mac = |report: &Value| report["inventory"]["interfaces"][0]["mac_address"].clone();
    assert_ne!(mac(&report), mac(&inspect("i2").await));
    let mac = mac(&report);
    assert!(mac.as_str().is_some_and(|mac| mac.starts_with("02:") && mac.len() == 17), "{mac}");
}
