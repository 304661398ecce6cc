//! Checks of a node's fields: names, drivers, interfaces, and which fields may change in which state. Pure, apart from
//! the list of enabled drivers.

use crate::app::App;
use crate::args::{is_host_name, is_logical_name};
use crate::call::Call;
use crate::driver_queries::{BootMediumKind, DriverError, INTERFACES};
use crate::error::ApiError;
use crate::fields;
use crate::microversion::Version;
use agent_protocol::rescue::authorized_keys;
use images::Wanted;
use model::boot::RamdiskAgent;
use model::boot_medium::{HTTP_BOOT, VIRTUAL_MEDIA};
use model::history::Severity;
use model::image::{DIRECT, ImageError, ImageRequest, NO_FILES_FOR_IPA};
use model::ramdisk_deploy::{RAMDISK, RamdiskDeploy};
use model::request::RESCUE_KEYS;
use model::{Event, EventKind, Node, ProvisionState, Timestamp};
use serde_json::Value;
use uuid::Uuid;

/// Words that paths use in place of a node.
const RESERVED: [&str; 6] = ["maintenance", "management", "states", "vendor_passthru", "detail", "validate"];

/// States with a target in which a node may be patched all the same (Ironic's UPDATE_ALLOWED_STATES).
pub const UPDATE_ALLOWED: [ProvisionState; 12] = [
    ProvisionState::AdoptFail,
    ProvisionState::CleanFail,
    ProvisionState::DeployFail,
    ProvisionState::Error,
    ProvisionState::InspectFail,
    ProvisionState::InspectWait,
    ProvisionState::Inspecting,
    ProvisionState::RescueFail,
    ProvisionState::ServiceFail,
    ProvisionState::ServiceHold,
    ProvisionState::UnrescueFail,
    ProvisionState::Verifying,
];

/// States in which interfaces and resource class may change.
const FREE: [ProvisionState; 5] = [
    ProvisionState::Enroll,
    ProvisionState::Inspecting,
    ProvisionState::InspectWait,
    ProvisionState::Manageable,
    ProvisionState::Available,
];

/// Whether a node may have this name, or 400 that begins with `refuse`.
pub fn name(name: &str, version: Version, refuse: &str) -> Result<(), ApiError> {
    version.needs(5)?;
    let sound = if version.has(10) { is_logical_name(name) } else { is_host_name(name) };
    if !sound || Uuid::parse_str(name).is_ok() {
        return Err(ApiError::invalid(format!("{refuse} '{name}'")));
    }
    if RESERVED.contains(&name) {
        return Err(ApiError::invalid(format!(
            "The word \"{name}\" is reserved and can not be used as a node name. Reserved words are: {}.",
            RESERVED.join(", ")
        )));
    }
    Ok(())
}

/// The driver must be enabled, and each interface one that it offers.
pub fn driver_and_interfaces(app: &App, node: &Node) -> Result<(), ApiError> {
    let driver = app.drivers.drivers().iter().find(|driver| driver.name == node.driver).ok_or_else(|| {
        let group = fields::read(node, "conductor_group");
        ApiError::invalid(format!(
            "No valid host was found. Reason: No conductor service registered which supports driver {} for \
             conductor group \"{}\". Ensure the driver is valid and enabled.",
            node.driver,
            group.as_str().unwrap_or_default()
        ))
    })?;
    for (field, wanted) in &node.interfaces {
        let interface = field.strip_suffix("_interface").unwrap_or(field);
        let enabled = driver.interfaces.get(interface).map_or(&[][..], |choice| &choice.enabled);
        if !enabled.contains(wanted) {
            let valid: Vec<_> = enabled.iter().map(|name| format!("'{name}'")).collect();
            return Err(ApiError::invalid(format!(
                "Could not find the following interface in the 'ironic.hardware.interfaces.{interface}' \
                 entrypoint: {wanted}. Valid interfaces are [{}].",
                valid.join(", ")
            )));
        }
    }
    Ok(())
}

/// The implementation of an interface that the node uses; `None`: its driver is not enabled.
pub fn interface<'a>(app: &'a App, node: &'a Node, interface: &str) -> Option<&'a str> {
    let named = node.interfaces.get(&format!("{interface}_interface"));
    let default = || {
        let driver = app.drivers.drivers().iter().find(|driver| driver.name == node.driver)?;
        Some(&driver.interfaces.get(interface)?.default)
    };
    named.or_else(default).map(String::as_str)
}

/// Whether the node's deploy interface can write the image that `instance_info` names, as far as can be known without
/// asking a mirror. Only `direct` writes images; `ramdisk` boots its own.
pub async fn image(app: &App, node: &Node) -> Result<(), ImageError> {
    match interface(app, node, "deploy") {
        Some(DIRECT) => {}
        Some(RAMDISK) => return ramdisk(app, node),
        _ => return Ok(()),
    }
    let request = ImageRequest::of(node)?;
    let theirs = matches!(RamdiskAgent::of(&node.properties), RamdiskAgent::IronicPythonAgent);
    if theirs && request.is_file() {
        return Err(ImageError::Other(NO_FILES_FOR_IPA.to_owned()));
    }
    let (wanted, images) = (Wanted::of(node).map_err(ImageError::Other)?, app.images.clone());
    // A file is looked at, which may be on a slow file system.
    let judge = move || if theirs { images.check_hosts(&wanted) } else { images.check(&wanted) };
    let judged = tokio::task::spawn_blocking(judge).await;
    judged.unwrap_or_else(|_| Err("the image could not be judged".to_owned())).map_err(ImageError::Other)
}

/// Whether the kernel and the ramdisk of the deploy interface `ramdisk` can be booted. The node's firmware fetches them.
fn ramdisk(app: &App, node: &Node) -> Result<(), ImageError> {
    let deploy = RamdiskDeploy::of(node)?;
    for url in [&deploy.kernel, &deploy.ramdisk] {
        app.images.check_url(url).map_err(ImageError::Other)?;
    }
    if app.settings.hello_url.is_empty() && interface(app, node, "boot") != Some("fake") {
        let why = "this controller serves no boot scripts ([boot] enabled), by which the deploy interface ramdisk boots nodes";
        return Err(ImageError::Other(why.to_owned()));
    }
    Ok(())
}

/// What a rescue by our agent needs besides the password: a login to boot, and keys that are keys.
pub fn rescue(app: &App, node: &Node) -> Result<(), String> {
    if interface(app, node, "rescue") != Some("agent") {
        return Ok(());
    }
    let ours = RamdiskAgent::of(&node.properties) == RamdiskAgent::Anneal;
    if let Some(keys) = node.instance_info.get(RESCUE_KEYS) {
        if !ours {
            return Err(format!("'instance_info.{RESCUE_KEYS}': ironic-python-agent takes no keys"));
        }
        authorized_keys(keys).map_err(|why| format!("'instance_info.{RESCUE_KEYS}'{why}"))?;
    }
    let by_medium = matches!(interface(app, node, "boot"), Some(VIRTUAL_MEDIA | HTTP_BOOT));
    if by_medium && app.drivers.boot_medium(node) == Ok(BootMediumKind::Signed) {
        return Err(
            "boot media carry the signed ramdisk of boot.signed_uki, which has no login for a rescue"
                .to_owned(),
        );
    }
    match &app.settings.rescue_archive {
        Some(archive) if ours && !archive.is_file() => Err(
            "the file that boot.rescue of the controller's configuration names is missing, so the ramdisk would have no login \
             (`cargo xtask image` makes it)"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// 400 when the node uses the implementation of an interface that does nothing (`no-console`).
pub fn implemented(app: &App, node: &Node, name: &'static str) -> Result<(), ApiError> {
    match interface(app, node, name) {
        Some(used) if !used.starts_with("no-") => Ok(()),
        _ => Err(DriverError::unsupported(node, name).into()),
    }
}

/// The chassis that a client puts the node into must be there.
pub async fn chassis(call: &Call, value: Option<&Value>) -> Result<(), ApiError> {
    match value {
        Some(Value::String(uuid)) => call.check_chassis(uuid).await,
        _ => Ok(()),
    }
}

/// Whether what is written into `network_data` is that: Ironic's words differ between POST and PATCH.
pub fn network_data(node: &Node, refuse: &str) -> Result<(), ApiError> {
    super::network_data::check(&fields::read(node, "network_data"))
        .map_err(|why| ApiError::invalid(format!("{refuse}: {why}")))
}

/// UUID of the node that `node` is to be a part of, by UUID or name: one that exists and has the same owner. The error
/// does not reveal which of the two does not hold.
pub async fn parent(call: &Call, node: &Node, ident: &str) -> Result<String, ApiError> {
    let refused = || {
        ApiError::invalid(format!(
            "Unable to apply the requested parent_node '{ident}'. Requested value was invalid."
        ))
    };
    let parent =
        call.node(ident).await.map_err(|error| if error.status < 500 { refused() } else { error })?;
    if fields::read(&parent, "owner") != fields::read(node, "owner") {
        return Err(refused());
    }
    Ok(parent.uuid.to_string())
}

/// Whether the node may be patched in its state; `ident` is the client's name for it.
pub fn may_be_patched(node: &Node, ident: &str, version: Version) -> Result<(), ApiError> {
    let state = node.provision_state;
    if node.target_provision_state.is_some() && !UPDATE_ALLOWED.contains(&state) {
        return Err(ApiError::conflict(format!(
            "Node {ident} can not be updated while a state transition is in progress."
        )));
    }
    if state == ProvisionState::Inspecting && version.has(39) {
        return Err(ApiError::conflict(format!(
            "Cannot update node \"{}\" while it is in state \"{}\".",
            node.uuid,
            state.as_str()
        )));
    }
    Ok(())
}

/// Check a change of fields and complete it with what follows from it; `new` is `old` with the fields written.
pub fn complete(old: &Node, new: &mut Node) -> Result<(), ApiError> {
    let state = old.provision_state;
    if old.maintenance && !new.maintenance {
        new.maintenance_reason = None;
        new.fault = None;
    }
    if !new.retired && old.retired {
        new.retired_reason = None;
    }
    if new.retired && !old.retired && state == ProvisionState::Available {
        return Err(ApiError::conflict(format!(
            "Node {} can not have 'retired' set in provision state 'available', the current state is \
             'available'",
            old.uuid
        )));
    }
    reason_needs(new.retired, new.retired_reason.as_ref(), "retired")?;
    if !new.protected && old.protected {
        new.protected_reason = None;
    }
    if new.protected && !old.protected && !matches!(state, ProvisionState::Active | ProvisionState::Rescue) {
        return Err(ApiError::conflict(format!(
            "Node {} can only be made protected in provision states 'active' or 'rescue', the current state \
             is '{}'",
            old.uuid,
            state.as_str()
        )));
    }
    reason_needs(new.protected, new.protected_reason.as_ref(), "protected")?;

    let free = FREE.contains(&state);
    let allowed = || FREE.map(ProvisionState::as_str).join(", ");
    if !free && !new.maintenance {
        for interface in INTERFACES {
            let field = format!("{interface}_interface");
            if old.interfaces.get(&field) != new.interfaces.get(&field) {
                return Err(ApiError::conflict(format!(
                    "Node {} can not have {field} updated unless it is in one of allowed ({}) states or in \
                     maintenance mode. Current state is '{}'.",
                    old.uuid,
                    allowed(),
                    state.as_str()
                )));
            }
        }
    }
    if !free && old.resource_class.is_some() && old.resource_class != new.resource_class {
        return Err(ApiError::conflict(format!(
            "Node {} can not have resource_class updated unless it is in one of allowed ({}) states. Current \
             state is '{}'.",
            old.uuid,
            allowed(),
            state.as_str()
        )));
    }
    if let (Some(held), Some(wanted)) = (old.instance_uuid, new.instance_uuid)
        && held != wanted
    {
        return Err(ApiError::conflict(format!("Node {} is associated with instance {held}.", old.uuid)));
    }
    Ok(())
}

/// A node that is in use does not lose its allocation.
pub fn keeps_its_allocation(old: &Node, new: &Node) -> Result<(), ApiError> {
    if new.instance_uuid.is_some() || old.maintenance || FREE.contains(&old.provision_state) {
        return Ok(());
    }
    Err(ApiError::conflict(format!(
        "Node {} with an allocation can not have instance_uuid removed unless it is in one of allowed ({}) states or \
         in maintenance mode. Current state is '{}'.",
        old.uuid,
        FREE.map(ProvisionState::as_str).join(", "),
        old.provision_state.as_str()
    )))
}

/// The event of a user who sets or unsets `maintenance`, `retired` or `protected`.
pub fn flag_event(name: &str, set: bool, reason: Option<&str>, now: Timestamp) -> Event {
    let text = match (set, reason.filter(|reason| !reason.is_empty())) {
        (true, Some(reason)) => format!("{name} set by a user: {reason}"),
        (true, None) => format!("{name} set by a user"),
        (false, _) => format!("{name} unset by a user"),
    };
    Event::new(EventKind::Flag, Severity::Info, text, now)
}

/// 400 for a reason without its flag.
pub fn reason_needs(set: bool, reason: Option<&String>, what: &str) -> Result<(), ApiError> {
    if !set && reason.is_some_and(|reason| !reason.is_empty()) {
        return Err(ApiError::invalid(format!(
            "The {what}_reason field can only be set when {what} is True"
        )));
    }
    Ok(())
}
