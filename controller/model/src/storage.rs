//! What is known of a node's storage: what its properties say, and which disks it had when it was looked at last.

use crate::disks::{KnownDisk, ReportedDisk, RetiredDisk};
use crate::history::{Event, EventKind, Severity};
use crate::node::Node;
use crate::request::event;
use crate::time::Timestamp;
use serde_json::Value;

/// Property of a node that has no disks: `true`, also as text, which is what `baremetal node set --property` sends. An erase
/// of it may then find none.
pub const DISKLESS: &str = "diskless";

/// Property with the serial numbers or WWNs of disks that a node must have: a list, also as text.
pub const EXPECTED: &str = "expected_disks";

/// Most disks of a node that are remembered; a report with more is not of one server.
pub const MOST_DISKS: usize = 1024;

/// Whether the node is declared to have no disks. Anything but true is no.
pub fn is_diskless(node: &Node) -> bool {
    match node.properties.get(DISKLESS) {
        Some(Value::Bool(diskless)) => *diskless,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

/// The disks of an inventory. Only Anneal's agent says which of them are the node's own, so others prove nothing.
fn in_inventory(inventory: &Value) -> Vec<ReportedDisk> {
    let disks = inventory.get("disks").and_then(Value::as_array).into_iter().flatten();
    let seen = |disk: &Value| {
        let ours = disk.get("anneal").filter(|ours| ours.is_object())?;
        let text = |key: &str| disk.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let own = |key: &str| text(key).map(str::to_owned);
        let disk = KnownDisk { serial: own("serial"), wwn: own("wwn"), model: own("model") };
        let exempt = ours.get("exempt").is_some_and(Value::is_string) || ours["removable"] == true;
        Some(ReportedDisk { disk, exempt })
    };
    disks.filter_map(seen).take(MOST_DISKS).collect()
}

/// Remember the disks of an inspection in addition to those that are known: a disk that is not in it may have been pulled.
pub fn inspected(node: &mut Node, inventory: &Value) {
    let seen = in_inventory(inventory);
    let disks = &mut node.disks;
    disks.known.retain(|known| !seen.iter().any(|seen| seen.disk.is(known)));
    disks.known.extend(own(seen));
    disks.known.truncate(MOST_DISKS);
}

/// Remember the disks of an erase that succeeded, in which all that were known were reported. They replace the known ones.
pub fn erased(node: &mut Node, seen: Vec<ReportedDisk>) {
    node.disks.known = own(seen);
}

fn own(seen: Vec<ReportedDisk>) -> Vec<KnownDisk> {
    let own = seen.into_iter().filter(|seen| !seen.exempt && seen.disk.has_identity());
    own.map(|seen| seen.disk).take(MOST_DISKS).collect()
}

/// The disks that the node must have and that are not among `seen`, by name. Each disk that was seen counts once.
///
/// # Errors
/// `expected_disks` is not a list of names.
pub fn missing(node: &Node, seen: &[ReportedDisk]) -> Result<Vec<String>, String> {
    let mut left: Vec<&ReportedDisk> = seen.iter().collect();
    let mut missing = Vec::new();
    for known in &node.disks.known {
        match left.iter().position(|seen| seen.disk.is(known)) {
            Some(place) => drop(left.remove(place)),
            None => missing.push(known.name().to_owned()),
        }
    }
    for name in expected(node)? {
        if !seen.iter().any(|seen| seen.disk.is_called(&name)) && !missing.contains(&name) {
            missing.push(name);
        }
    }
    Ok(missing)
}

/// `properties.expected_disks`.
fn expected(node: &Node) -> Result<Vec<String>, String> {
    let wrong = || format!("properties.{EXPECTED} is not a list of serial numbers or WWNs");
    let list = match node.properties.get(EXPECTED) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| wrong())?,
        Some(other) => other.clone(),
    };
    serde_json::from_value(list).map_err(|_| wrong())
}

/// Accept that the known disk called `name` (serial number or WWN) has left the node: the event for the node's history.
///
/// # Errors
/// No known disk is called so, or the node's properties still expect it.
pub fn retire(node: &mut Node, name: &str, reason: &str, now: Timestamp) -> Result<Event, NotRetired> {
    if expected(node).is_ok_and(|expected| expected.iter().any(|expected| expected == name)) {
        return Err(NotRetired::Expected(name.to_owned()));
    }
    let place = node.disks.known.iter().position(|known| known.is_called(name));
    let place = place.ok_or_else(|| NotRetired::Unknown(name.to_owned()))?;
    let disk = node.disks.known.remove(place);
    let text = format!("disk {name} was retired: {reason}");
    node.disks.retired.push(RetiredDisk { disk, reason: reason.to_owned(), at: now });
    Ok(event(EventKind::Flag, Severity::Info, text, now))
}

/// Why a disk was not retired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRetired {
    /// No known disk has this name.
    #[error("The node has no known disk with the serial number or WWN {0}")]
    Unknown(String),
    /// The node's properties expect it.
    #[error("properties.expected_disks names disk {0}: remove it there")]
    Expected(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn a_node_is_diskless_only_if_it_is_said_so() {
        let mut node = Node::enrolled(Uuid::nil(), "fake-hardware", Timestamp(0));
        assert!(!is_diskless(&node));
        for (value, diskless) in [
            (json!(true), true),
            (json!("true"), true),
            (json!("True"), true),
            (json!(false), false),
            (json!("false"), false),
            (json!("yes"), false),
            (json!(1), false),
            (json!({}), false),
            (json!(null), false),
        ] {
            node.properties.insert(DISKLESS.to_owned(), value.clone());
            assert_eq!(is_diskless(&node), diskless, "{value}");
        }
    }

    fn disk(serial: &str, wwn: &str) -> KnownDisk {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        KnownDisk { serial: text(serial), wwn: text(wwn), model: None }
    }

    fn seen(serial: &str, wwn: &str) -> ReportedDisk {
        ReportedDisk { disk: disk(serial, wwn), exempt: false }
    }

    fn names(node: &Node) -> Vec<&str> {
        node.disks.known.iter().map(KnownDisk::name).collect()
    }

    fn node() -> Node {
        Node::enrolled(Uuid::nil(), "fake-hardware", Timestamp(0))
    }

    #[test]
    fn the_own_disks_of_an_inventory_are_known_and_stay_known() {
        let mut node = node();
        let inventory = json!({"disks": [
            {"name": "/dev/sda", "serial": "S1", "wwn": "0x1", "anneal": {"removable": false}},
            {"name": "/dev/sdb", "serial": "", "wwn": "0x2", "anneal": {}},
            {"name": "/dev/sdc", "serial": "S3", "anneal": {"removable": true}},
            {"name": "/dev/sdd", "serial": "S4", "anneal": {"exempt": "raid-volume"}},
            {"name": "/dev/sde", "anneal": {}},
            {"name": "/dev/sdf", "serial": "S6"},
        ]});
        inspected(&mut node, &inventory);
        assert_eq!(names(&node), ["S1", "0x2"]);
        inspected(&mut node, &json!({"disks": [{"serial": "S7", "anneal": {}}]}));
        assert_eq!(names(&node), ["S1", "0x2", "S7"], "what is not there any more may have been pulled");
        inspected(&mut node, &json!({"disks": [{"serial": "S7", "anneal": {"exempt": "removable"}}]}));
        assert_eq!(names(&node), ["S1", "0x2"], "and what it is, the last look says");
        for nothing in [json!(null), json!({"disks": 3}), json!({"disks": [1, "a", {"anneal": []}]})] {
            inspected(&mut node, &nothing);
            assert_eq!(names(&node), ["S1", "0x2"]);
        }
    }

    #[test]
    fn every_known_and_expected_disk_must_be_seen() {
        let mut node = node();
        node.disks.known = vec![disk("S1", "0x1"), disk("S2", ""), disk("", "0x3")];
        let all = [seen("S1", "0x1"), seen("S2", "0x2"), seen("S3", "0x3")];
        assert_eq!(missing(&node, &all), Ok(vec![]));
        assert_eq!(missing(&node, &all[..2]), Ok(vec!["0x3".to_owned()]));
        assert_eq!(missing(&node, &all[1..]), Ok(vec!["S1".to_owned()]));
        assert_eq!(missing(&node, &[]), Ok(vec!["S1".to_owned(), "S2".to_owned(), "0x3".to_owned()]));
        let other = [seen("S1", "0x9"), seen("S2", ""), seen("", "0x3")];
        assert_eq!(missing(&node, &other), Ok(vec!["S1".to_owned()]), "the same serial number, another disk");
        node.disks.known = vec![disk("0", ""), disk("0", "")];
        assert_eq!(missing(&node, &[seen("0", "")]), Ok(vec!["0".to_owned()]), "two of one name are two");
        node.disks.known.clear();
        node.properties.insert(EXPECTED.to_owned(), json!(["S1", "0x2"]));
        assert_eq!(missing(&node, &all), Ok(vec![]));
        assert_eq!(missing(&node, &all[..1]), Ok(vec!["0x2".to_owned()]));
        node.properties.insert(EXPECTED.to_owned(), json!("[\"S9\"]"));
        assert_eq!(missing(&node, &all), Ok(vec!["S9".to_owned()]));
        for wrong in [json!("S1"), json!({}), json!([1]), json!(true)] {
            node.properties.insert(EXPECTED.to_owned(), wrong);
            assert!(missing(&node, &all).unwrap_err().contains(EXPECTED));
        }
    }

    #[test]
    fn an_exempt_disk_is_no_more_known_after_an_erase() {
        let mut node = node();
        node.disks.known = vec![disk("S1", ""), disk("S2", "")];
        let exempt = ReportedDisk { exempt: true, ..seen("S2", "") };
        erased(&mut node, vec![seen("S1", ""), exempt, seen("S3", "0x3"), seen("", "")]);
        assert_eq!(names(&node), ["S1", "S3"]);
    }

    #[test]
    fn a_retired_disk_is_known_no_more_and_kept_for_the_certificate() {
        let mut node = node();
        node.disks.known = vec![disk("S1", "0x1"), disk("S2", "")];
        let now = Timestamp(5);
        assert_eq!(retire(&mut node, "S9", "gone", now), Err(NotRetired::Unknown("S9".to_owned())));
        node.properties.insert(EXPECTED.to_owned(), json!(["S1"]));
        assert_eq!(retire(&mut node, "S1", "gone", now), Err(NotRetired::Expected("S1".to_owned())));
        node.properties.clear();
        let event = retire(&mut node, "0x1", "returned to the vendor", now).unwrap();
        assert_eq!(event.text, "disk 0x1 was retired: returned to the vendor");
        assert_eq!(names(&node), ["S2"]);
        let retired =
            RetiredDisk { disk: disk("S1", "0x1"), reason: "returned to the vendor".to_owned(), at: now };
        assert_eq!(node.disks.retired, [retired]);
    }
}
