//! INSPECTING and INSPECTWAIT: the inventory of the BMC, or the one that the agent sends.

use super::run::View;
use super::{at_work, boot, fail, is_due, listening, overdue, sleep_in, sleep_on, unexpected};
use crate::decision::{Change, Decision, Deed, Outcome};
use model::inventory::properties;
use model::run::Cursor;
use model::{Inventory, Timestamp};
use serde_json::Value;

pub(super) fn decide(view: &View) -> Decision {
    let snapshot = view.snapshot;
    if view.run.cursor == Cursor::AskInventory {
        return if is_due(snapshot) { Decision::Act(Deed::InspectBmc) } else { sleep_on(&snapshot.node) };
    }
    if let Some(inventory) = snapshot.inventory.as_ref().filter(|told| told.at >= view.run.started_at) {
        return Decision::Record(Box::new(told(view, inventory)));
    }
    let limit = view.budget();
    let wait = listening(snapshot, view.settings, "the ramdisk to send the inventory", limit);
    if overdue(&wait, snapshot.now) {
        let text = format!(
            "Timeout reached while inspecting the node: no inventory within {} s of power-on. Please check if \
             the ramdisk responsible for the inspecting is running on the node.",
            limit.as_secs()
        );
        return Decision::Record(Box::new(fail::failed(view, &text)));
    }
    sleep_in(wait)
}

pub(super) fn absorb(view: &View, outcome: Outcome) -> Change {
    match outcome {
        Outcome::Inventory(inventory) => {
            let mut change = told(view, &inventory);
            change.inventory = Some(inventory);
            change
        }
        Outcome::Failed(trouble) => view.retry_or_fail(trouble, "Failed to inspect the node"),
        other => fail::failed(view, &unexpected("inspecting the BMC", &other).text),
    }
}

/// Update the hardware-derived properties (specs/state-machine.txt, INSPECTING); what the inventory does not
/// tell stays as it is.
fn told(view: &View, inventory: &Inventory) -> Change {
    let now: Timestamp = view.snapshot.now;
    // What a ramdisk says when its collectors failed (ironic-python-agent: `error`).
    if let Some(error) = inventory.plugin_data.get("error").and_then(Value::as_str).filter(|e| !e.is_empty())
    {
        return fail::failed(view, &format!("The ramdisk could not inspect the node: {error}"));
    }
    let mut change = boot::booted(view);
    change.node.properties.extend(properties(&inventory.inventory));
    change.node.inspection_finished_at = Some(now);
    at_work(&mut change, &format!("the inventory came from {}", inventory.source), now);
    change
}
