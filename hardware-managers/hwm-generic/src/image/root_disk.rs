//! The disk that gets the operating system, free of what used it.

use super::trust::MirrorTrust;
use block::{DiskDecision, Filter, Policy, Probe, Reason, Roots};
use root_device::{Choice, DiskIdentity, Rules};
use serde_json::{Map, Value};

/// The machine whose disk is written.
pub(crate) struct Machine<'a> {
    pub(crate) roots: &'a Roots,
    pub(crate) filter: &'a Filter,
    /// It runs only the agent.
    pub(crate) takes_down: bool,
    /// Which mirrors are trusted where the step does not say.
    pub(crate) mirrors: &'a MirrorTrust,
}

/// What is known of the disk besides the node's hints.
pub(super) struct Wanted<'a> {
    /// A rebuild writes the disk of the deployment before.
    pub(super) before: Option<&'a DiskIdentity>,
    /// This deployment was interrupted while it wrote this disk.
    pub(super) interrupted: Option<&'a DiskIdentity>,
    pub(super) rules: Rules,
}

/// The chosen disk.
pub(super) struct RootDisk {
    pub(super) probe: Probe,
    /// Other disks that would have done, as an operator calls them.
    pub(super) others: Vec<String>,
}

/// The disk that is known already, or else the one that the node's hints mean.
///
/// # Errors
/// There is none, or it cannot be written. Nothing was written to any disk.
pub(super) fn ready(machine: &Machine, node: &Value, wanted: &Wanted) -> Result<RootDisk, String> {
    let disks = block::list(machine.roots, machine.filter)
        .map_err(|error| format!("the disks cannot be listed: {}", block::fault::chain(&error)))?;
    let seen: Vec<root_device::Disk> = disks.iter().map(Into::into).collect();
    let choice = chosen(&seen, node, wanted)?;
    let disk = &disks[choice.disk];
    let probe = block::probe(disk).map_err(|error| block::fault::chain(&error))?;
    let policy = Policy {
        take_down: machine.takes_down,
        // Sectors that a drive hides are not written, and not in the way.
        despite: [Reason::Hidden].into(),
        ..Policy::default()
    };
    let plan = block::plan_metadata(std::slice::from_ref(&probe), &policy);
    if let [DiskDecision::Refuse(why) | DiskDecision::Leave(why)] = plan.decisions.as_slice() {
        return Err(format!("{}: {why}", disk.describe()));
    }
    block::take_down(machine.roots, &plan.take_down).map_err(|error| block::fault::chain(&error))?;
    let others = choice.others.iter().map(|at| seen[*at].describe()).collect();
    Ok(RootDisk { probe, others })
}

fn chosen(disks: &[root_device::Disk], node: &Value, wanted: &Wanted) -> Result<Choice, String> {
    let hinted = |object: &str| node[object]["root_device"].as_object().filter(|hints| !hints.is_empty());
    let none = Map::new();
    let hints = hinted("instance_info").or_else(|| hinted("properties")).unwrap_or(&none);
    let known = match (wanted.before, wanted.interrupted) {
        (Some(before), _) => Some((before, "the disk of the deployment before")),
        (None, Some(interrupted)) => Some((interrupted, "the disk that this deployment began to write")),
        (None, None) => None,
    };
    match known {
        Some((known, called)) => {
            let disk = root_device::again(disks, hints, known, called)?;
            Ok(Choice { disk, others: Vec::new() })
        }
        None => root_device::choose(disks, hints, wanted.rules),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn disk(name: &str, serial: &str) -> root_device::Disk {
        root_device::Disk {
            name: name.into(),
            size: 8 << 30,
            serial: Some(serial.into()),
            ..root_device::Disk::default()
        }
    }

    #[test]
    fn an_interrupted_deployment_goes_on_with_its_disk_under_whatever_name() {
        let [s1, s2] = ["S1", "S2"].map(|serial| DiskIdentity::of(Some(serial), None));
        let name = |disks: &[root_device::Disk], before: &Option<DiskIdentity>, at: &Option<DiskIdentity>| {
            let wanted =
                Wanted { before: before.as_ref(), interrupted: at.as_ref(), rules: Rules::default() };
            chosen(disks, &json!({}), &wanted).map(|choice| disks[choice.disk].name.clone())
        };
        let disks = [disk("/dev/sda", "S1"), disk("/dev/sdb", "S2")];
        let renamed = [disk("/dev/sda", "S2"), disk("/dev/sdb", "S1")];
        assert_eq!(name(&disks, &None, &None).as_deref(), Ok("/dev/sda"));
        assert_eq!(name(&renamed, &None, &s1).as_deref(), Ok("/dev/sdb"));
        assert_eq!(name(&renamed, &s2, &s1).as_deref(), Ok("/dev/sda"), "a rebuild has a disk already");
        let problem = name(&disks[1..], &None, &s1).expect_err("gone");
        assert_eq!(problem, "the disk that this deployment began to write (serial S1, WWN none) is missing");
    }

    #[test]
    fn hints_of_the_instance_come_before_those_of_the_node() {
        let disks = [disk("/dev/sda", "S1"), disk("/dev/sdb", "S2")];
        let wanted = Wanted { before: None, interrupted: None, rules: Rules::default() };
        let name = |node: Value| chosen(&disks, &node, &wanted).map(|choice| disks[choice.disk].name.clone());
        let node = json!({
            "instance_info": {"root_device": {"serial": "S2"}}, "properties": {"root_device": {"serial": "S1"}},
        });
        assert_eq!(name(node).as_deref(), Ok("/dev/sdb"));
        let node =
            json!({"instance_info": {"root_device": {}}, "properties": {"root_device": {"serial": "S2"}}});
        assert_eq!(name(node).as_deref(), Ok("/dev/sdb"));
    }
}
