//! The expected history of the walk: every transition and every momentary state, in order.

use anyhow::{Result, ensure};
use serde_json::Value;

/// From ENROLL to MANAGEABLE, one line a verb.
const EXPECTED: &[&str] = &[
    "enrolled with driver fake-hardware",
    "enroll -> verifying, VERIFIED, verifying -> manageable",
    // inspect
    "manageable -> inspecting, INSPECTED, inspecting -> manageable",
    "manageable -> inspecting, inspecting -> inspect failed",
    "inspect failed -> manageable",
    // clean: from a file, twice from standard input
    "manageable -> cleaning, cleaning -> clean wait, clean wait -> cleaning, CLEANED, cleaning -> manageable",
    "manageable -> cleaning, CLEANED, cleaning -> manageable",
    "manageable -> cleaning, CLEANED, cleaning -> manageable",
    // ... three that cannot be planned, one that fails, one that does not
    "manageable -> cleaning, cleaning -> clean failed, clean failed -> manageable",
    "manageable -> cleaning, cleaning -> clean failed, clean failed -> manageable",
    "manageable -> cleaning, cleaning -> clean failed, clean failed -> manageable",
    "manageable -> cleaning, cleaning -> clean failed",
    "clean failed -> cleaning, CLEANED, cleaning -> manageable",
    // ... hold, unhold, abort
    "manageable -> cleaning, cleaning -> clean hold",
    "clean hold -> clean wait, clean wait -> cleaning, CLEANED, cleaning -> manageable",
    "manageable -> cleaning, cleaning -> clean hold, clean hold -> clean failed, clean failed -> manageable",
    "manageable -> cleaning, cleaning -> clean wait, clean wait -> clean failed, clean failed -> manageable",
    // provide
    "manageable -> cleaning, CLEANED, cleaning -> available",
    // active, rebuild, deleted
    "available -> deploying, deploying -> wait call-back, wait call-back -> deploying, DEPLOYED, deploying -> active",
    "active -> deploying, DEPLOYED, deploying -> active",
    "active -> deleting, DELETED, deleting -> cleaning, CLEANED, cleaning -> available",
    "available -> deploying, deploying -> wait call-back, wait call-back -> deploying, DEPLOYED, deploying -> active",
    "active -> deleting, DELETED, deleting -> cleaning, CLEANED, cleaning -> available",
    "available -> deploying, deploying -> deploy failed",
    "deploy failed -> deleting, DELETED, deleting -> cleaning, CLEANED, cleaning -> available",
    "available -> deploying, deploying -> deploy hold",
    "deploy hold -> wait call-back, wait call-back -> deploying, deploying -> deploy failed",
    "deploy failed -> deploying, DEPLOYED, deploying -> active",
    // service
    "active -> servicing, servicing -> service hold, service hold -> service wait, service wait -> servicing",
    "servicing -> service wait, service wait -> servicing, SERVICED, servicing -> active",
    "active -> servicing, servicing -> service failed, service failed -> servicing, SERVICED, servicing -> active",
    "active -> servicing, servicing -> service hold, service hold -> service failed, service failed -> active",
    // rescue, unrescue
    "active -> rescuing, RESCUED, rescuing -> rescue, rescue -> unrescuing, UNRESCUED, unrescuing -> active",
    // deleted while retired, adopt, rescue, deleted from RESCUE
    "active -> deleting, DELETED, deleting -> cleaning, CLEANED, cleaning -> manageable",
    "manageable -> adopting, ADOPTED, adopting -> active",
    "active -> rescuing, RESCUED, rescuing -> rescue",
    "rescue -> deleting, DELETED, deleting -> cleaning, CLEANED, cleaning -> available",
    "available -> manageable",
    "manageable -> adopting, ADOPTED, adopting -> active",
    "active -> deleting, DELETED, deleting -> cleaning, CLEANED, cleaning -> available",
    "available -> manageable",
];

/// The events are those, with a cause for each transition.
pub fn ensure_expected(events: &[Value]) -> Result<()> {
    let mut seen = Vec::new();
    for event in events {
        let text = event["event"].as_str().unwrap_or_default();
        match event["event_type"].as_str() {
            Some("transition") => {
                let (way, cause) = text.split_once(": ").unwrap_or((text, ""));
                ensure!(!way.contains(" -> ") || !cause.is_empty(), "{text:?} has no cause");
                seen.push(way.to_owned());
            }
            Some("momentary") => seen.push(text.to_owned()),
            _ => {}
        }
    }
    let seen = seen.join(", ");
    let expected = EXPECTED.join(", ");
    ensure!(seen == expected, "the history is\n{seen}\nand not\n{expected}");
    Ok(())
}
