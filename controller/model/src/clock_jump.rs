//! What is stored about a node when the machine's clock is set. Stored instants from which durations are measured move with
//! the clock, so that nothing becomes due, and no deadline passes, because the clock was set. Instants that say
//! when something happened (history, certificates, creation) stay.

use crate::agent::Contact;
use crate::fast_track::KeptRamdisk;
use crate::inventory::Inventory;
use crate::kind::RunKind;
use crate::node::Node;
use crate::run::Cursor;
use crate::time::Timestamp;

/// Move what a node waits for by this many microseconds. Returns whether there was anything.
pub fn shift_node(node: &mut Node, by: i64) -> bool {
    let mut any = shift(&mut node.next_wake_at, by);
    any |= shift(&mut node.reset_at, by);
    if let Some(wait) = &mut node.wait {
        wait.since = wait.since.shifted(by);
        shift(&mut wait.deadline, by);
        any = true;
    }
    if let Some(run) = node.run.as_mut().filter(|run| run.is_active()) {
        run.started_at = run.started_at.shifted(by);
        any = true;
    }
    let kept = node.run.as_mut().and_then(|run| run.ramdisk_kept.as_mut());
    if let Some(KeptRamdisk::Since(at) | KeptRamdisk::PoweringOff(at)) = kept {
        *at = at.shifted(by);
        any = true;
    }
    match node.run.as_mut().map(|run| &mut run.cursor) {
        Some(Cursor::Issued { at, .. } | Cursor::OutOfBand { at, .. }) => {
            *at = at.shifted(by);
            true
        }
        Some(Cursor::AwaitHello { since, .. }) => {
            *since = since.shifted(by);
            true
        }
        Some(Cursor::Pause { since, until }) => {
            *since = since.shifted(by);
            shift(until, by);
            true
        }
        _ => any,
    }
}

/// Whether the inventory of a node is compared with the beginning of its run, and so moves with it.
pub fn awaits_inventory(node: &Node) -> bool {
    node.run.as_ref().is_some_and(|run| run.is_active() && run.kind == RunKind::Inspect)
}

/// Move when an inventory was received.
pub fn shift_inventory(inventory: &mut Inventory, by: i64) {
    inventory.at = inventory.at.shifted(by);
}

/// Move what is known about an agent.
pub fn shift_contact(contact: &mut Contact, by: i64) {
    shift(&mut contact.token_at, by);
    shift(&mut contact.last_heartbeat_at, by);
    shift(&mut contact.progress_at, by);
    if let Some(rival) = &mut contact.rival {
        rival.at = rival.at.shifted(by);
    }
}

fn shift(at: &mut Option<Timestamp>, by: i64) -> bool {
    *at = at.map(|at| at.shifted(by));
    at.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::SecondAgent;
    use crate::node::Wait;
    use crate::run::Run;
    use uuid::Uuid;

    const BY: i64 = -1_000;

    fn node(cursor: Cursor) -> Node {
        let mut node = Node::enrolled(Uuid::nil(), "fake-hardware", Timestamp(5_000));
        node.run = Some(Run { cursor, ..Run::new(RunKind::AutomatedClean, Timestamp(5_000)) });
        node
    }

    /// The instants that differ, in the JSON of two values.
    fn moved(before: &impl serde::Serialize, after: &impl serde::Serialize) -> Vec<String> {
        fn walk(path: &str, a: &serde_json::Value, b: &serde_json::Value, found: &mut Vec<String>) {
            match (a, b) {
                (serde_json::Value::Object(a), serde_json::Value::Object(b)) => {
                    a.iter().for_each(|(key, value)| walk(&format!("{path}.{key}"), value, &b[key], found));
                }
                (a, b) if a != b => {
                    assert_eq!(b.as_i64(), a.as_i64().map(|at| at + BY), "{path}");
                    found.push(path.to_owned());
                }
                _ => {}
            }
        }
        let mut found = Vec::new();
        let (before, after) = (serde_json::to_value(before).unwrap(), serde_json::to_value(after).unwrap());
        walk("", &before, &after, &mut found);
        found
    }

    #[test]
    fn what_a_node_waits_for_moves_and_its_history_does_not() {
        let mut before = node(Cursor::AwaitAgent);
        before.next_wake_at = Some(Timestamp(6_000));
        before.wait =
            Some(Wait { reason: "r".into(), since: Timestamp(5_500), deadline: Some(Timestamp(7_000)) });
        before.provision_updated_at = Some(Timestamp(5_400));
        before.reset_at = Some(Timestamp(5_300));
        let mut after = before.clone();
        assert!(shift_node(&mut after, BY));
        let expected = [".next_wake_at", ".reset_at", ".run.started_at", ".wait.deadline", ".wait.since"];
        assert_eq!(moved(&before, &after), expected);

        let issued = Cursor::Issued {
            command_id: "c".into(),
            at: Timestamp(5_100),
            boot_id: None,
            process_id: None,
            accepted: true,
        };
        let out_of_band = Cursor::OutOfBand { command_id: "c".into(), at: Timestamp(5_100), polling: true };
        let hello = Cursor::AwaitHello { command_id: "c".into(), since: Timestamp(5_100) };
        let pause = Cursor::Pause { since: Timestamp(5_100), until: Some(Timestamp(9_000)) };
        for (cursor, expected) in [
            (issued, &[".run.cursor.at", ".run.started_at"][..]),
            (out_of_band, &[".run.cursor.at", ".run.started_at"]),
            (hello, &[".run.cursor.since", ".run.started_at"]),
            (pause, &[".run.cursor.since", ".run.cursor.until", ".run.started_at"]),
            (Cursor::PowerOn, &[".run.started_at"]),
            (Cursor::Done, &[]),
        ] {
            let before = node(cursor);
            let mut after = before.clone();
            assert_eq!(shift_node(&mut after, BY), !expected.is_empty());
            assert_eq!(moved(&before, &after), expected);
        }
    }

    #[test]
    fn the_time_for_which_a_ramdisk_is_kept_moves() {
        for (kept, name) in [
            (KeptRamdisk::Since(Timestamp(5_200)), "since"),
            (KeptRamdisk::PoweringOff(Timestamp(5_200)), "powering_off"),
        ] {
            let mut before = node(Cursor::Done);
            before.run.as_mut().unwrap().ramdisk_kept = Some(kept);
            let mut after = before.clone();
            assert!(shift_node(&mut after, BY));
            assert_eq!(moved(&before, &after), [format!(".run.ramdisk_kept.{name}")]);
        }
    }

    #[test]
    fn every_instant_of_an_agent_moves() {
        let at = |at| Some(Timestamp(at));
        let before = Contact {
            token_at: at(5_000),
            last_heartbeat_at: at(6_000),
            progress_at: at(5_500),
            rival: Some(SecondAgent {
                at: Timestamp(5_900),
                boot_id: None,
                repeated: false,
                address: None,
                fetched: false,
            }),
            ..Contact::default()
        };
        let mut after = before.clone();
        shift_contact(&mut after, BY);
        let expected = [".last_heartbeat_at", ".progress_at", ".rival.at", ".token_at"];
        assert_eq!(moved(&before, &after), expected);
        // A new instant of a contact belongs into `shift_contact`.
        let text = serde_json::to_string(&before).unwrap();
        assert_eq!(text.matches("at\":").count(), expected.len(), "{text}");
    }
}
