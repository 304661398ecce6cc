//! An ordinary life, and its ends.

use super::{Examination, ScenarioResult};
use crate::session::Session;
use crate::{Rule, Violation};
use hwm_sdk::protocol::{
    ClaimKind, Code, Detected, Empty, InventoryCall, Method, Shutdown, Suppressed, bad_manager_name,
    bad_version, is_reserved_manager,
};
use hwm_sdk::{StepKind, Support};

/// From `hello` to `shutdown`, with everything that changes nothing.
pub(crate) fn ordinary(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    let deadlines = examination.plan.deadlines;
    let hello = examination.hello(session)?;
    examination.judge(Rule::HelloDeadline, None)?;
    let version = hello.protocol_version;
    let other = (version != 1).then(|| format!("it chose version {version} of [1]"));
    examination.judge(Rule::Hello, other)?;
    let taken = (!examination.plan.in_tree && is_reserved_manager(&hello.name))
        .then(|| format!("the name {:?} is Anneal's", hello.name));
    let bad = bad_manager_name(&hello.name).or_else(|| bad_version(&hello.version)).or(taken);
    examination.judge(Rule::ManagerName, bad)?;

    let detected = examination.detect(session)?;
    examination.judge(Rule::Detect, None)?;
    examination.judge(Rule::DetectDeadline, None)?;
    examination.judge(Rule::Claims, bad_claim(&detected))?;
    examination.judge(Rule::Quirks, bad_quirk(&detected))?;

    if detected.support != Support::None && examination.init(session)? {
        examination.judge(Rule::Init, None)?;
        examination.judge(Rule::InitDeadline, None)?;
        let (late, rule) = (Rule::InventoryDeadline, Rule::Inventory);
        match session.call::<InventoryCall>(&Empty {}, deadlines.inventory, late, rule)? {
            Err(error) if error.is(Code::Failed) => {}
            answer => {
                let refused = answer.err().map(|error| format!("inventory was refused: {error}"));
                examination.judge(rule, refused)?;
            }
        }
        examination.judge(late, None)?;
        for kind in StepKind::ALL {
            let offers = super::steps::listed(session, examination, kind)?;
            examination.offers.insert(kind, offers);
        }
        examination.ready = true;
    }
    shut_down(session, examination)
}

fn shut_down(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    let within = examination.plan.deadlines.grace;
    let broken = |seen: String| Violation::new(Rule::Shutdown, seen);
    let id = session.ask::<Shutdown>(&Empty {})?;
    let answer = session
        .blaming(Rule::Shutdown, |session| session.wait(id, within, Rule::Shutdown, Shutdown::NAME))?;
    answer.map_err(|error| broken(format!("shutdown was refused: {error}")))?;
    session.hear_end(within)?;
    let seen = match session.exit(within) {
        None => Some(format!("it runs {within:?} after shutdown")),
        Some(status) if !status.success() => Some(format!("it ended with {status} after shutdown")),
        Some(_) => None,
    };
    examination.judge(Rule::Shutdown, seen)
}

/// An agent that is gone.
pub(crate) fn closed_socket(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.hello(session)?;
    session.close();
    gone(session, examination)
}

/// The socket is closed: so the program ends.
pub(super) fn gone(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    let within = examination.plan.deadlines.grace;
    let runs = session.exit(within).is_none();
    examination
        .judge(Rule::ClosedSocket, runs.then(|| format!("it runs {within:?} after its socket was closed")))
}

fn bad_claim(detected: &Detected) -> Option<String> {
    detected.claims.iter().find_map(|claim| {
        if claim.id.is_none() && claim.properties.is_empty() {
            return Some(format!("a claim of kind {:?} names nothing", claim.kind));
        }
        if claim.id.is_some() && claim.kind == ClaimKind::Dmi {
            return Some("a claim of kind dmi has an id".to_owned());
        }
        let unknown = claim.properties.keys().find(|name| !claim.kind.properties().contains(&name.as_str()));
        unknown.map(|name| format!("a claim of kind {:?} has no property {name:?}", claim.kind))
    })
}

fn bad_quirk(detected: &Detected) -> Option<String> {
    detected.quirks.iter().find_map(|quirk| {
        let known = ClaimKind::Dmi.properties();
        let unknown = quirk.machine.keys().find(|name| !known.contains(&name.as_str()));
        if quirk.suppress == Suppressed::Unknown {
            Some("a quirk suppresses what this version does not know".to_owned())
        } else if quirk.machine.is_empty() {
            Some("a quirk names no machine".to_owned())
        } else if quirk.reason.trim().is_empty() {
            Some("a quirk has no reason".to_owned())
        } else {
            unknown.map(|name| format!("a machine has no property {name:?}"))
        }
    })
}
