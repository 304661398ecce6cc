//! The disk that a deployment writes: which it will be, and which it was.

use crate::node::Node;
pub use root_device::Rules;
use root_device::{Disk, DiskIdentity};
use serde_json::{Map, Value};

/// The disk that the step `write_image` reports; `None` where it names neither serial number nor WWN.
pub fn reported(report: &Value) -> Option<DiskIdentity> {
    let text = |name: &str| report["image"][name].as_str();
    DiskIdentity::of(text("serial"), text("wwn"))
}

/// What the agent will do with the disks of the last inspection, where it is worth a sentence: several disks would do, or none.
/// `inventory` is in the form of ironic-python-agent's. It may be older than the machine is, so this refuses nothing.
pub fn foreseen(node: &Node, inventory: &Value, rules: Rules) -> Option<String> {
    let entries = inventory.get("disks")?.as_array()?;
    let disks: Vec<Disk> = entries.iter().filter_map(Disk::of_inventory).collect();
    if disks.is_empty() {
        return None;
    }
    let none = Map::new();
    match root_device::choose(&disks, hints(node).unwrap_or(&none), rules) {
        Err(why) => Some(format!("of the disks of the last inspection none gets the image: {why}")),
        Ok(choice) if choice.others.is_empty() => None,
        Ok(choice) => {
            let named = |at: usize| disks[at].describe();
            let others: Vec<String> = choice.others.iter().map(|at| named(*at)).collect();
            Some(format!(
                "of the disks of the last inspection {} gets the image, the smallest that fits; {} as well",
                named(choice.disk),
                match others.as_slice() {
                    [one] => format!("{one} fits"),
                    all => format!("{} fit", all.join(", ")),
                }
            ))
        }
    }
}

/// The root device hints that count: those of the instance before those of the node, as the agent takes them.
fn hints(node: &Node) -> Option<&Map<String, Value>> {
    [&node.instance_info, &node.properties]
        .into_iter()
        .filter_map(|fields| fields.get("root_device")?.as_object())
        .find(|hints| !hints.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use serde_json::json;

    #[test]
    fn a_disk_without_identity_is_not_remembered() {
        let disk = reported(&json!({"image": {"device": "/dev/sda", "serial": "S1", "wwn": null}}));
        assert_eq!(disk, DiskIdentity::of(Some("S1"), None));
        assert!(disk.is_some());
        for report in
            [json!(null), json!({"image": {"serial": ""}}), json!({"image": {"device": "/dev/sda"}})]
        {
            assert_eq!(reported(&report), None);
        }
    }

    #[test]
    fn the_disk_that_will_be_written_is_named_where_several_would_do_or_none() {
        let gib = |count: u64| count << 30;
        let inventory = json!({"disks": [
            {"name": "/dev/sda", "size": gib(100), "serial": "S1"},
            {"name": "/dev/sdb", "size": gib(50), "serial": "S2"},
            {"name": "/dev/sdc", "size": gib(200)},
            {"name": "/dev/sdd", "size": gib(50), "tran": "usb"},
        ]});
        let mut node = Node::enrolled(uuid::Uuid::nil(), "redfish", Timestamp(0));
        let said = |node: &Node| foreseen(node, &inventory, Rules::default());
        assert_eq!(
            said(&node).as_deref(),
            Some(
                "of the disks of the last inspection /dev/sdb (serial S2) gets the image, the smallest that fits; \
                 /dev/sda (serial S1), /dev/sdc (no serial) fit as well"
            )
        );
        node.properties.insert("root_device".into(), json!({"size": ">= 100"}));
        let two = said(&node).expect("two");
        assert!(
            two.contains("/dev/sda (serial S1) gets") && two.ends_with("/dev/sdc (no serial) fits as well"),
            "{two}"
        );
        node.instance_info.insert("root_device".into(), json!({"serial": "S1"}));
        assert_eq!(said(&node), None, "one disk alone is worth no word");
        node.instance_info.insert("root_device".into(), json!({"serial": "S9"}));
        assert!(
            said(&node).expect("none").contains("none gets the image: no disk matches the root device hints")
        );
        for unknown in [json!(null), json!({"disks": []}), json!({"disks": [{"name": 7}]})] {
            assert_eq!(foreseen(&node, &unknown, Rules::default()), None, "{unknown}");
        }
    }
}
