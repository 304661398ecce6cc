//! Fast track, as in Ironic: the ramdisk of an automated cleaning keeps running while the node is AVAILABLE, and a deployment
//! begins in it without a reboot. Off by default.

pub use crate::kept_ramdisk::KeptRamdisk;
use crate::kind::RunKind;
use crate::node::Node;
use crate::provision::ProvisionState;
use serde_json::{Map, Value};

/// Key of `driver_info` that switches fast track on or off for one node; without it the configuration decides.
pub const FAST_TRACK: &str = "fast_track";

/// Whether fast track is on for a node with this `driver_info`: a Boolean, or a word that Ironic takes for one.
///
/// # Errors
/// One sentence about a value that is neither true nor false.
pub fn is_on(driver_info: &Map<String, Value>, configured: bool) -> Result<bool, String> {
    let refused = |value: &Value| format!("driver_info['{FAST_TRACK}'] is {value}, neither true nor false");
    match driver_info.get(FAST_TRACK) {
        None | Some(Value::Null) => Ok(configured),
        Some(Value::Bool(on)) => Ok(*on),
        Some(Value::String(word)) => match word.trim().to_ascii_lowercase().as_str() {
            "1" | "t" | "true" | "on" | "y" | "yes" => Ok(true),
            "0" | "f" | "false" | "off" | "n" | "no" => Ok(false),
            _ => Err(refused(&Value::String(word.clone()))),
        },
        Some(other) => Err(refused(other)),
    }
}

/// What the next run of this kind has of the ramdisk that the cleaning before it left running. Only a deployment of the
/// AVAILABLE node may begin in it, and only if no user has asked for another power state since.
pub fn inherited(node: &Node, next: RunKind) -> Option<KeptRamdisk> {
    let kept = node.run.as_ref().filter(|run| !run.is_active())?.ramdisk_kept?;
    let may_begin = next == RunKind::Deploy
        && node.provision_state == ProvisionState::Available
        && node.target_power_state.is_none()
        && matches!(kept, KeptRamdisk::Since(_));
    may_begin.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::PowerTarget;
    use crate::run::{Cursor, Run};
    use crate::time::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn a_node_may_decide_for_itself() {
        let on = |value: Value| is_on(&Map::from_iter([(FAST_TRACK.to_owned(), value)]), true);
        assert_eq!(is_on(&Map::new(), true), Ok(true));
        assert_eq!(is_on(&Map::new(), false), Ok(false));
        for (value, expected) in [
            (json!(true), true),
            (json!("True"), true),
            (json!(" on "), true),
            (json!(false), false),
            (json!("no"), false),
            (json!("0"), false),
            (Value::Null, true),
        ] {
            assert_eq!(on(value.clone()), Ok(expected), "{value}");
        }
        for value in [json!("maybe"), json!(""), json!(1), json!([true])] {
            let why = on(value.clone()).unwrap_err();
            assert!(why.contains(&value.to_string()) && why.contains(FAST_TRACK), "{why}");
        }
    }

    #[test]
    fn only_a_deployment_of_the_available_node_begins_in_the_kept_ramdisk() {
        let since = KeptRamdisk::Since(Timestamp(5));
        let kept = |kept: KeptRamdisk, cursor: Cursor, state: ProvisionState| {
            let mut node = Node::enrolled(Uuid::nil(), "fake-hardware", Timestamp(0));
            let run = Run::new(RunKind::AutomatedClean, Timestamp(0));
            node.run = Some(Run { ramdisk_kept: Some(kept), cursor, ..run });
            node.provision_state = state;
            node
        };
        let available = kept(since, Cursor::Done, ProvisionState::Available);
        for kind in RunKind::ALL {
            let expected = (kind == RunKind::Deploy).then_some(since);
            assert_eq!(inherited(&available, kind), expected, "{kind:?}");
        }
        let asked = Node { target_power_state: Some(PowerTarget::Reboot), ..available };
        let off = KeptRamdisk::PoweringOff(Timestamp(5));
        for node in [
            asked,
            kept(off, Cursor::Done, ProvisionState::Available),
            kept(since, Cursor::LearnSteps, ProvisionState::Available),
            kept(since, Cursor::Done, ProvisionState::DeployFail),
        ] {
            assert_eq!(inherited(&node, RunKind::Deploy), None, "{node:?}");
        }
    }
}
