//! Machines of all kinds.

use super::{Examination, ScenarioResult};
use crate::Rule;
use crate::session::Session;
use agent_protocol::inventory::{Disk, Interface, Inventory};
use hwm_sdk::protocol::{Detect, DetectParams};

/// The same machine, twice.
pub(crate) fn same_machine(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.hello(session)?;
    let first = examination.detect(session)?;
    let second = examination.detect(session)?;
    let seen = (first != second).then(|| format!("{first:?}, and then {second:?}"));
    examination.judge(Rule::DetectRepeats, seen)
}

/// An empty machine, and one with more devices than any real machine.
pub(crate) fn any_machine(session: &mut Session, examination: &mut Examination) -> ScenarioResult {
    examination.hello(session)?;
    let rule = Rule::DetectAnyMachine;
    let within = examination.plan.deadlines.detect;
    for (name, inventory) in [("an empty machine", Inventory::default()), ("a large machine", large())] {
        let params = DetectParams { inventory };
        let answer = session.blaming(rule, |session| session.call::<Detect>(&params, within, rule, rule))?;
        let seen = answer.err().map(|error| format!("detect of {name} was refused: {error}"));
        examination.judge(rule, seen)?;
    }
    Ok(())
}

/// Its `detect` has more than a hundred kibibytes.
fn large() -> Inventory {
    let disk = |n: u64| Disk {
        name: format!("/dev/sd{n}"),
        model: Some("ÄÖÜ 漢字 \"quoted\" \\ model".into()),
        size: u64::MAX,
        serial: Some(format!("S{n:020}")),
        ..Disk::default()
    };
    let nic =
        |n: u64| Interface { name: format!("eth{n}"), mac_address: String::new(), ..Interface::default() };
    Inventory {
        disks: (0..300).map(disk).collect(),
        interfaces: (0..300).map(nic).collect(),
        ..Inventory::default()
    }
}
