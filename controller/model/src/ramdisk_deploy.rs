//! The deploy interface `ramdisk`: the node boots a kernel and a ramdisk of its user's over the network at every boot, and
//! nothing is written to its disks. Ironic's words and keys.

pub use crate::deploy_step::{RAMDISK, is_deploy_step};
use crate::image::{self, CONFIGDRIVE, ImageError};
use crate::node::Node;
use crate::provision::ProvisionState;
use crate::run::Run;
use serde_json::{Map, Value};

/// Longest kernel arguments, in bytes: Linux takes 2047 on x86-64, and the boot script adds some.
const ARGUMENTS_MAX: usize = 1900;
/// Longest URL, in bytes.
const URL_MAX: usize = 2000;

/// What a node of this interface boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RamdiskDeploy {
    /// URL of the kernel.
    pub kernel: String,
    /// URL of the ramdisk.
    pub ramdisk: String,
    /// More kernel arguments.
    pub kernel_args: String,
}

impl RamdiskDeploy {
    /// What the node's `instance_info` asks for.
    ///
    /// # Errors
    /// What is missing, malformed or not supported.
    pub fn of(node: &Node) -> Result<Self, ImageError> {
        let info = &node.instance_info;
        if info.get("boot_iso").is_some_and(|value| !value.is_null()) {
            let why = "instance_info['boot_iso'] is not supported: no BMC is given virtual media; use kernel and ramdisk";
            return Err(ImageError::Other(why.to_owned()));
        }
        check_drive(info.get(CONFIGDRIVE))?;
        image::boot_mode(node)?;
        let named = (image::text(info, "kernel")?, image::text(info, "ramdisk")?);
        let (Some(kernel), Some(ramdisk)) = named else {
            let missing =
                [("kernel", named.0), ("ramdisk", named.1)].into_iter().filter(|(_, url)| url.is_none());
            let missing: Vec<String> = missing.map(|(name, _)| format!("'instance_info.{name}'")).collect();
            return Err(ImageError::Other(format!(
                "Node {} failed to validate deploy image info. Some parameters were missing. Missing are: [{}]",
                node.uuid,
                missing.join(", ")
            )));
        };
        check_url("kernel", kernel)?;
        check_url("ramdisk", ramdisk)?;
        let kernel_args = arguments(info)?;
        Ok(Self { kernel: kernel.to_owned(), ramdisk: ramdisk.to_owned(), kernel_args })
    }
}

/// Whether the interface can do something with this configuration drive.
///
/// # Errors
/// It is one.
pub fn check_drive(drive: Option<&Value>) -> Result<(), ImageError> {
    match drive {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if text.is_empty() => Ok(()),
        Some(_) => Err(ImageError::Other(
            "the deploy interface ramdisk has no disk to put a configdrive on: the ramdisk has to bring its configuration"
                .to_owned(),
        )),
    }
}

/// Whether a boot of the node that is none of ours is one into its user's kernel and ramdisk: while the node is in use, and from
/// the step on with which its deployment starts it.
pub fn boots_instance(node: &Node) -> bool {
    use ProvisionState as P;
    let by_interface = node.interfaces.get("deploy_interface").is_some_and(|name| name == RAMDISK);
    by_interface
        && match node.provision_state {
            P::Active
            | P::Servicing
            | P::ServiceWait
            | P::ServiceHold
            | P::ServiceFail
            | P::Rescuing
            | P::RescueWait
            | P::RescueFail
            | P::Unrescuing
            | P::UnrescueFail => true,
            state if state.is_deploying() => node.run.as_ref().is_some_and(has_started),
            _ => false,
        }
}

/// Whether the run is at the step that starts the node, or past it.
fn has_started(run: &Run) -> bool {
    let steps = run.plan.iter().flatten().enumerate();
    let mut starts = steps.filter(|(_, planned)| is_deploy_step(&planned.step));
    starts.any(|(index, _)| run.index == Some(index) || run.succeeded(index))
}

fn check_url(name: &str, url: &str) -> Result<(), ImageError> {
    let refused = |why: &str| {
        let shown = image::masked_url(url);
        Err(ImageError::Other(format!("instance_info['{name}'] {shown} cannot be booted from: {why}")))
    };
    let Some((scheme, rest)) = url.split_once("://") else { return refused("it is no URL") };
    if !scheme.eq_ignore_ascii_case("http") {
        return refused("the node's iPXE fetches it, by http:// only");
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.contains('@') {
        return refused(
            "it needs a host, and no user: every client on the nodes' network can read the boot script",
        );
    }
    if url.len() > URL_MAX || !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains("${") {
        return refused("it has characters that mean something to iPXE, or is too long");
    }
    Ok(())
}

fn arguments(info: &Map<String, Value>) -> Result<String, ImageError> {
    let given = image::text(info, "kernel_append_params")?.unwrap_or_default();
    let refused = |why: &str| {
        Err(ImageError::Other(format!("instance_info['kernel_append_params'] cannot be used: {why}")))
    };
    if given.len() > ARGUMENTS_MAX {
        return refused(&format!("it is longer than {ARGUMENTS_MAX} bytes"));
    }
    if given.chars().any(char::is_control) {
        return refused("it contains control characters");
    }
    let means_something =
        |word: &&str| word.starts_with('#') || matches!(*word, "||" | "&&") || word.contains("${");
    match given.split_whitespace().find(means_something) {
        Some(word) => {
            let shown = word.chars().take(40).collect::<String>();
            refused(&format!("the word '{shown}' means something to iPXE"))
        }
        None => Ok(given.to_owned()),
    }
}

#[cfg(test)]
#[path = "ramdisk_deploy_tests.rs"]
mod tests;
