//! What an agent is sent to run a step: the command's name and parameters.

use crate::agents;
use agent_protocol::lookup::add_erase_settings;
use agent_protocol::record::{REQUIRE_VERIFICATION, RequiredVerification};
use configdrive::Drive;
use model::hello;
use model::image::{
    self, BootMode, CONFIGDRIVE, ImageError, ImageRequest, PREPARE_INSTANCE_BOOT, WRITE_IMAGE,
};
use model::raid;
use model::request::{RESCUE_HASH, RESCUE_KEYS};
use model::root_disk::Rules;
use model::{Contact, Node, PlannedStep, RunKind, StepKind};
use serde_json::{Map, Value, json};

/// A step as a command of an agent's extension.
pub(crate) struct AgentCommand {
    pub(crate) extension: &'static str,
    pub(crate) short: &'static str,
    pub(crate) params: Value,
}

/// The command that runs a step; `sent` is the node as the agent sees it, `hello_url` where instances say hello.
///
/// # Errors
/// The step writes an image, and the node's `instance_info` names none that can be written.
pub(crate) fn command(
    node: &Node,
    contact: &Contact,
    sent: Value,
    run: RunKind,
    step: &PlannedStep,
    hello_url: &str,
) -> Result<AgentCommand, ImageError> {
    if image::is_step(&step.step, PREPARE_INSTANCE_BOOT) {
        return install_bootloader(node, contact);
    }
    let (extension, short, version) = match run.steps() {
        Some(StepKind::Clean) => ("clean", "execute_clean_step", "clean_version"),
        Some(StepKind::Deploy) => ("deploy", "execute_deploy_step", "deploy_version"),
        Some(StepKind::Service) => ("service", "execute_service_step", "service_version"),
        // The only command of a run without steps.
        None => {
            let hash = node.instance_info.get(RESCUE_HASH);
            let mut params = json!({ "rescue_password": hash, "hashed": true });
            if let Some(keys) = node.instance_info.get(RESCUE_KEYS)
                && agents::of(contact).takes_rescue_keys()
            {
                params["anneal"] = json!({ "authorized_keys": keys });
            }
            return Ok(AgentCommand { extension: "rescue", short: "finalize_rescue", params });
        }
    };
    let versions = node.run.as_ref().map(|run| &run.hardware_manager_version);
    let mut params = json!({
        "step": raid::wire(step), "node": sent, "ports": [], version: versions,
    });
    if raid::makes_target(&step.step) {
        // The part of it that this step creates was stored when the step began.
        params["node"][raid::TARGET] = current(node.driver_internal_info.get(raid::TARGET));
    }
    if image::is_step(&step.step, WRITE_IMAGE) {
        // Added here, so that no plan and no field of the node holds a second copy of the secrets in them.
        params["step"]["args"]["image_info"] = ImageRequest::of(node)?.as_sent(node);
        if run == RunKind::Rebuild
            && let Some(disk) = &node.root_disk
        {
            params["step"]["args"]["image_info"]["anneal"] = json!({ "disk": disk });
        }
        params["step"]["args"]["configdrive"] = configdrive(node, hello_url)?;
    }
    Ok(AgentCommand { extension, short, params })
}

/// The configuration drive as agents take it: of the parts its file system is made here, the rest is passed on.
/// Where the run awaits a hello of the instance, there is a drive in any case, and it says how.
fn configdrive(node: &Node, hello_url: &str) -> Result<Value, ImageError> {
    let given = node.instance_info.get(CONFIGDRIVE);
    let malformed = |why| ImageError::Other(format!("Invalid configdrive format: {why}"));
    let made = |parts| Drive::of(parts, node.uuid, node.name.as_deref()).map_err(malformed);
    if let Some(hello) = node.run.as_ref().and_then(|run| run.hello.as_ref()) {
        hello::check_drive(given)?;
        let drive = made(given.and_then(Value::as_object).unwrap_or(&Map::new()))?;
        let drive = drive.with_vendor_data(&hello.vendor_data(hello_url)?).map_err(malformed)?;
        return Ok(drive.packed().into());
    }
    match given {
        Some(Value::Object(parts)) => Ok(made(parts)?.packed().into()),
        other => Ok(json!(other)),
    }
}

/// The agent makes the firmware find the image that it wrote. `root_uuid` is for boot loaders that the agent would install
/// itself; a whole-disk image brings its own.
fn install_bootloader(node: &Node, contact: &Contact) -> Result<AgentCommand, ImageError> {
    let known = ImageRequest::of(node)?.boot_mode();
    let mode = known.or(agents::of(contact).default_boot_mode()).map(BootMode::as_str);
    let params = json!({
        "root_uuid": "0x00000000", "efi_system_part_uuid": null, "prep_boot_part_uuid": null, "target_boot_mode": mode,
    });
    Ok(AgentCommand { extension: "image", short: "install_bootloader", params })
}

/// PSIDs of TCG Opal drives, by serial number, in the node's `driver_info`.
const OPAL_PSIDS: &str = "agent_opal_psids";

/// Add the PSIDs of the node's drives to the step that erases with them: only over an encrypted connection, and only for
/// an agent that does not write them to its log.
pub(crate) fn add_psids(params: &mut Value, node: &Node, contact: &Contact, step: &str) {
    let encrypted = contact.callback_url.as_ref().is_some_and(|url| url.starts_with("https://"));
    let erases = matches!(step, "erase_devices" | "erase_devices_express");
    if let Some(psids) = node.driver_info.get(OPAL_PSIDS)
        && erases
        && encrypted
        && !agents::of(contact).logs_parameters()
    {
        params["node"]["driver_info"][OPAL_PSIDS] = psids.clone();
    }
}

/// Add to `write_image` by which rules our agent chooses the disk, where they are not the usual ones.
pub(crate) fn add_rules(params: &mut Value, rules: Rules) {
    let mut add = |name: &str, value: Value| params["step"]["args"]["image_info"]["anneal"][name] = value;
    if rules.smallest != Rules::default().smallest {
        add("smallest_root_disk", json!(rules.smallest));
    }
    if rules.strict {
        add("root_device_strict", json!(true));
    }
}

/// An absent value is an empty object, as Ironic sends it.
fn current(value: Option<&Value>) -> Value {
    value.filter(|value| !value.is_null()).cloned().unwrap_or_else(|| json!({}))
}

/// The node as it is sent with a command: Ironic's field names, no secrets.
pub(crate) fn node_for_agent(node: &Node, contact: &Contact, required: RequiredVerification) -> Value {
    let mut internal = node.driver_internal_info.clone();
    if agents::of(contact).expects_ironic_defaults() {
        add_erase_settings(&mut internal);
    } else {
        internal.insert(REQUIRE_VERIFICATION.to_owned(), json!(required));
    }
    // The steps and the index of the current one, in Ironic's fields: what a step leaves behind may depend on the steps
    // after it.
    if let Some(run) = &node.run
        && let (Some(kind), Some(plan), Some(index)) = (run.kind.steps(), &run.plan, run.index)
    {
        // Without their arguments: only the step itself gets those.
        let named =
            |planned: &PlannedStep| json!({"interface": planned.step.interface, "step": planned.step.step});
        let steps: Vec<Value> = plan.iter().map(named).collect();
        internal.insert(kind.steps_field().to_owned(), json!(steps));
        internal.insert(kind.index_field().to_owned(), json!(index));
    }
    // What chooses the disk of a deployment; nothing else of it is for the agent to see.
    let chooses = |(name, _): &(&String, &Value)| matches!(name.as_str(), "root_device" | "capabilities");
    let instance: Map<String, Value> = node
        .instance_info
        .iter()
        .filter(chooses)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    json!({
        "uuid": node.uuid,
        "name": node.name,
        "driver": node.driver,
        "properties": node.properties,
        "instance_info": instance,
        "driver_info": {},
        "extra": node.extra,
        "driver_internal_info": internal,
        "provision_state": node.provision_state,
        "target_provision_state": node.target_provision_state,
        "clean_step": current(node.clean_step.as_ref()),
        "deploy_step": current(node.deploy_step.as_ref()),
        "service_step": current(node.service_step.as_ref()),
        "target_raid_config": current(node.other.get(raid::TARGET)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::agent::AgentKind;

    #[test]
    fn keys_of_a_rescue_are_sent_to_our_agent_alone() {
        let mut node = Node::enrolled(uuid::Uuid::nil(), "redfish", model::Timestamp(0));
        node.instance_info.insert(RESCUE_HASH.into(), json!("$6$salt$hash"));
        let step =
            json!({"interface": "rescue", "step": "finalize_rescue", "priority": 0, "source": "driver"});
        let step: PlannedStep = serde_json::from_value(step).unwrap();
        let params = |node: &Node, contact: &Contact| {
            command(node, contact, Value::Null, RunKind::Rescue, &step, "").unwrap().params
        };
        let hash = json!({"rescue_password": "$6$salt$hash", "hashed": true});
        assert_eq!(params(&node, &ours()), hash, "without keys nothing is added");
        node.instance_info.insert(RESCUE_KEYS.into(), json!(["ssh-ed25519 AAAA"]));
        assert_eq!(params(&node, &Contact::default()), hash);
        let mut with = hash.clone();
        with["anneal"] = json!({"authorized_keys": ["ssh-ed25519 AAAA"]});
        assert_eq!(params(&node, &ours()), with);
    }

    /// What is known of an agent of ours.
    fn ours() -> Contact {
        let state = json!({"boot_id": "b", "process_id": "p"});
        Contact {
            agent: Some(AgentKind::Anneal(serde_json::from_value(state).unwrap())),
            ..Contact::default()
        }
    }

    #[test]
    fn rules_that_choose_the_disk_are_sent_where_they_are_not_the_usual_ones() {
        let sent = |rules: Rules| {
            let mut params = json!({"step": {"args": {"image_info": {"id": "i"}}}});
            add_rules(&mut params, rules);
            params["step"]["args"]["image_info"].take()
        };
        assert_eq!(sent(Rules::default()), json!({"id": "i"}));
        let rules = Rules { smallest: 16 << 30, strict: true };
        let expected = json!({"smallest_root_disk": 17_179_869_184_u64, "root_device_strict": true});
        assert_eq!(sent(rules)["anneal"], expected);
    }

    #[test]
    fn ironics_defaults_are_sent_with_commands_to_ironic_python_agent_alone() {
        let mut node = Node::enrolled(uuid::Uuid::nil(), "redfish", model::Timestamp(0));
        node.driver_internal_info.insert("disk_erasure_concurrency".into(), json!(2));
        let ours = ours();
        let sent = |contact: &Contact| {
            node_for_agent(&node, contact, RequiredVerification::Read)["driver_internal_info"].clone()
        };
        let settings = json!({"disk_erasure_concurrency": 2, "agent_require_verification": "read"});
        assert_eq!(sent(&ours), settings, "what an operator set, and the policy");
        let theirs = sent(&Contact::default());
        assert_eq!(theirs.get("agent_require_verification"), None);
        assert_eq!(theirs["disk_erasure_concurrency"], 2);
        assert_eq!(theirs["agent_continue_if_secure_erase_failed"], false);
    }
}
