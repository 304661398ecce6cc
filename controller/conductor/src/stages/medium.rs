//! The boot medium of a node that boots by virtual media or UEFI HTTP boot: inserted for one boot, ejected when its agent was heard, and out again
//! whatever happens in between. That it may be in is stored before it is inserted. By HTTP boot, inserted means that the BMC has its
//! URL.

use super::fail::retry_or_fail;
use super::view::View;
use super::wait::{is_due, sleep_on, unexpected, waiting};
use crate::decision::{Action, Change, Decision, Outcome, Snapshot};
use crate::settings::Settings;
use model::boot_medium::{MediumKind, way};
use model::boot_proof;
use model::history::{EventKind, Severity};
use model::request::event;
use model::{Node, Wait};
use std::time::Duration;

/// How long after power-on a BMC that has read nothing of the medium is named. Looks at the power state come every 30 s.
const UNREAD: Duration = Duration::from_secs(30);
/// Pause between two tries to eject the medium of a node at rest.
const PAUSE: Duration = Duration::from_secs(60);
const AT_REST: &str = "the BMC to eject the boot medium";

/// Whether the run boots its ramdisk from a medium. What the user's own ramdisk boots from is the network.
pub(super) fn is_used(view: &View) -> bool {
    way_of(view).is_some()
}

fn way_of(view: &View) -> Option<MediumKind> {
    way(&view.snapshot.node).filter(|_| !view.run.starts_instance())
}

/// From where the run boots its ramdisk, for the history.
pub(super) fn source(view: &View) -> &'static str {
    match way_of(view) {
        None => "the network",
        Some(MediumKind::VirtualDrive) => "virtual media",
        Some(MediumKind::HttpBoot) => "a URL of the controller",
    }
}

/// Insert it, once it is stored that it may be in.
pub(super) fn insert(view: &View) -> Decision {
    if view.snapshot.node.medium_inserted {
        return Decision::Act(Action::InsertMedium);
    }
    let mut change = view.with_run(|_| {});
    change.node.medium_inserted = true;
    Decision::Record(Box::new(change))
}

/// Eject it before anything else is done, if it may be in.
pub(super) fn eject_first(view: &View) -> Option<Decision> {
    let node = &view.snapshot.node;
    if !node.medium_inserted {
        return None;
    }
    Some(if is_due(view.snapshot) { Decision::Act(Action::EjectMedium) } else { sleep_on(node) })
}

/// The outcome of ejecting it in a run, whose cursor stays.
pub(super) fn ejected(view: &View, outcome: Outcome) -> Change {
    match outcome {
        Outcome::Done => {
            let mut change = view.with_run(|run| run.attempts = 0);
            out(&mut change, view.snapshot);
            // It may name a BMC that had not read the medium yet.
            change.node.last_error = None;
            change
        }
        Outcome::Failed(error) => retry_or_fail(view, error, "Failed to eject the boot medium"),
        other => retry_or_fail(
            view,
            unexpected("ejecting the boot medium", &other),
            "Failed to eject the boot medium",
        ),
    }
}

/// Eject the medium of a node at rest: that of a run that failed or was aborted.
pub(super) fn at_rest(snapshot: &Snapshot) -> Option<Decision> {
    if !snapshot.node.medium_inserted {
        return None;
    }
    Some(if is_due(snapshot) { Decision::Act(Action::EjectMedium) } else { sleep_on(&snapshot.node) })
}

/// The outcome of that. It is tried until it succeeds; the history names the first failure.
pub(super) fn ejected_at_rest(snapshot: &Snapshot, outcome: Outcome, settings: &Settings) -> Change {
    let now = snapshot.now;
    let mut change = Change::of(Node { wait: None, next_wake_at: Some(now), ..snapshot.node.clone() });
    match outcome {
        Outcome::Done => out(&mut change, snapshot),
        outcome => {
            let why = match outcome {
                Outcome::Failed(error) => error.text,
                other => unexpected("ejecting the boot medium", &other).text,
            };
            let is_first = snapshot.node.wait.as_ref().is_none_or(|wait: &Wait| wait.reason != AT_REST);
            if is_first {
                let text = format!("failed to eject the boot medium, which is tried again: {why}");
                change.events.push(event(EventKind::Agent, Severity::Error, text, now));
            }
            change.node.wait = Some(waiting(&snapshot.node, AT_REST, None, now));
            change.node.next_wake_at = Some(now.after(PAUSE.max(settings.retry_pause())));
        }
    }
    change
}

fn out(change: &mut Change, snapshot: &Snapshot) {
    change.node.medium_inserted = false;
    let text = "the boot medium is ejected".to_owned();
    change.events.push(event(EventKind::Agent, Severity::Info, text, snapshot.now));
}

/// Names a BMC that has not read the medium of the boot that is waited for since `wait` began. The node goes on waiting: some
/// firmware takes minutes before it looks at its drives, and longer than [`UNREAD`] before it brings up its network.
pub(super) fn unread(view: &View, wait: &Wait) -> Option<Change> {
    let (node, now) = (&view.snapshot.node, view.snapshot.now);
    let boot = view.snapshot.contact.boot.as_ref()?;
    let is_unread = way_of(view) == Some(MediumKind::VirtualDrive)
        && node.medium_inserted
        && boot.medium_read_by.is_none();
    if !is_unread || now.since(wait.since) < UNREAD || node.last_error.is_some() {
        return None;
    }
    let text = unread_text(now.since(wait.since));
    let mut change = view.with_run(|_| {});
    change.node.wait = Some(wait.clone());
    change.node.last_error = Some(text.clone());
    change.events.push(event(EventKind::Agent, Severity::Error, text, now));
    Some(change)
}

/// What the time limit of a boot adds, by what is known of its medium.
pub(super) fn without_agent(view: &View) -> Option<String> {
    never_read(view).or_else(|| was_read(view))
}

/// The BMC, or the firmware, has read nothing at all.
fn never_read(view: &View) -> Option<String> {
    let boot = view.snapshot.contact.boot.as_ref()?;
    let what = match way_of(view)? {
        MediumKind::VirtualDrive if boot.medium_read_by.is_none() => {
            "Its BMC has read nothing of the boot medium: it"
        }
        MediumKind::HttpBoot if boot.fetched_from.is_none() => {
            "Its firmware has not fetched the boot medium: it needs an address by DHCP, and"
        }
        _ => return None,
    };
    Some(format!("{what} has to reach boot HTTP (boot.address, boot.http_port)."))
}

/// The medium was read, and no agent has got a token.
fn was_read(view: &View) -> Option<String> {
    let (node, contact) = (&view.snapshot.node, &view.snapshot.contact);
    let boot = contact.boot.as_ref().filter(|_| contact.token.is_none())?;
    let (who, read, at) = match way_of(view)? {
        MediumKind::VirtualDrive => ("Its BMC", "read", boot.medium_read_by?),
        MediumKind::HttpBoot => ("Its firmware", "fetched", boot.fetched_from?),
    };
    let required = boot_proof::is_required(&node.driver_info, view.settings.require_tpm).unwrap_or(true);
    let unproved = if required && contact.proof.is_none() {
        " The node's TPM has to prove the boot and has not: a proof that was refused is in the history, too."
    } else {
        ""
    };
    Some(format!(
        "{who} at {at} has {read} the boot medium, and no agent was accepted since. With Secure Boot a firmware refuses a program \
         that is changed or that it does not know, and says so on the console. An agent that was refused is named in the node's \
         history.{unproved}"
    ))
}

fn unread_text(for_so_long: Duration) -> String {
    format!(
        "the BMC has read nothing of the boot medium in the {} s since power-on: it has to reach boot HTTP (boot.address, \
         boot.http_port) from the address at which it is managed",
        for_so_long.as_secs()
    )
}
