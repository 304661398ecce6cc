use super::*;
use crate::kind::RunKind;
use crate::plan::deploy_plan;
use crate::run::Cursor;
use crate::step::StepResult;
use crate::time::Timestamp;
use serde_json::json;
use uuid::Uuid;

fn node(info: Value) -> Node {
    let mut node = Node::enrolled(Uuid::nil(), "redfish", Timestamp(0));
    node.instance_info = info.as_object().unwrap().clone();
    node.interfaces.insert("deploy_interface".into(), RAMDISK.into());
    node
}

fn pair() -> Value {
    json!({"kernel": "http://192.0.2.1/vmlinuz", "ramdisk": "http://192.0.2.1/initrd?v=2"})
}

fn with(name: &str, value: Value) -> Result<RamdiskDeploy, ImageError> {
    let mut info = pair();
    info[name] = value;
    RamdiskDeploy::of(&node(info))
}

#[test]
fn a_kernel_and_a_ramdisk_are_enough() {
    let plain = RamdiskDeploy::of(&node(pair())).unwrap();
    assert_eq!((plain.kernel.as_str(), plain.kernel_args.as_str()), ("http://192.0.2.1/vmlinuz", ""));
    assert_eq!(
        with("kernel_append_params", json!("console=ttyS0 quiet")).unwrap().kernel_args,
        "console=ttyS0 quiet"
    );
    for (name, value) in
        [("image_source", json!("http://x/y")), ("boot_iso", Value::Null), ("configdrive", json!(""))]
    {
        assert_eq!(with(name, value), Ok(plain.clone()), "{name}");
    }
}

#[test]
fn what_cannot_be_booted_is_refused_by_name() {
    for (name, value, why) in [
        ("kernel", Value::Null, "Missing are: ['instance_info.kernel']"),
        ("ramdisk", json!(""), "Missing are: ['instance_info.ramdisk']"),
        ("kernel", json!(7), "instance_info['kernel'] is not a string"),
        ("boot_iso", json!("http://192.0.2.1/a.iso"), "boot_iso"),
        ("configdrive", json!({"meta_data": {}}), "configdrive"),
        ("configdrive", json!("http://192.0.2.1/drive"), "configdrive"),
        ("kernel", json!("vmlinuz"), "it is no URL"),
        ("kernel", json!("https://192.0.2.1/vmlinuz"), "by http:// only"),
        ("ramdisk", json!("file:///etc/passwd"), "by http:// only"),
        ("ramdisk", json!("http://me:secret@192.0.2.1/i"), "no user"),
        ("ramdisk", json!("http:///i"), "a host"),
        ("kernel", json!("http://192.0.2.1/a || shell"), "mean something to iPXE"),
        ("kernel", json!("http://192.0.2.1/a\nshell"), "mean something to iPXE"),
        ("kernel", json!("http://192.0.2.1/${net0/mac}"), "mean something to iPXE"),
        ("kernel_append_params", json!("quiet\nshell"), "control characters"),
        ("kernel_append_params", json!("quiet || shell"), "'||'"),
        ("kernel_append_params", json!("quiet && shell"), "'&&'"),
        ("kernel_append_params", json!("quiet #x"), "'#x'"),
        ("kernel_append_params", json!("a=${b}"), "${b}"),
        ("kernel_append_params", json!("a".repeat(ARGUMENTS_MAX + 1)), "longer"),
        ("capabilities", json!("a:b"), "capabilities"),
    ] {
        let said = with(name, value.clone()).unwrap_err().to_string();
        assert!(said.contains(why) && !said.contains("secret"), "{name} {value}: {said}");
    }
    let said = RamdiskDeploy::of(&node(json!({}))).unwrap_err().to_string();
    assert!(said.ends_with("['instance_info.kernel', 'instance_info.ramdisk']"), "{said}");
}

#[test]
fn an_instance_is_booted_from_its_start_until_the_node_is_out_of_use() {
    use ProvisionState as P;
    let mut node = node(pair());
    for state in ProvisionState::ALL {
        node.provision_state = state;
        let in_use = matches!(state, P::Active | P::Unrescuing | P::UnrescueFail)
            || ["servic", "rescuing", "rescue wait", "rescue failed"]
                .iter()
                .any(|word| state.as_str().starts_with(word));
        assert_eq!(boots_instance(&node), in_use, "{state:?}");
    }
    node.provision_state = P::Deploying;
    let step = json!({"interface": "deploy", "step": "deploy", "priority": 100, "provider": RAMDISK});
    let known = [serde_json::from_value(step).unwrap()];
    let mut run = Run::new(RunKind::Deploy, Timestamp(0));
    run.plan = Some(deploy_plan(&known, &[], &[]).unwrap());
    let with = |run: &Run| Node { run: Some(run.clone()), ..node.clone() };
    assert!(!boots_instance(&with(&run)) && !run.starts_instance());
    (run.index, run.cursor) = (Some(0), Cursor::PowerOn);
    assert!(boots_instance(&with(&run)) && run.starts_instance());
    assert!(!run.boots_ramdisk(), "it is not ours");
    run.results.push(StepResult::success(0, "c".into(), Timestamp(0), Value::Null));
    run.cursor = Cursor::NextStep;
    assert!(boots_instance(&with(&run)) && !run.starts_instance());
    let other = Node { interfaces: Default::default(), ..with(&run) };
    assert!(!boots_instance(&other));
}
