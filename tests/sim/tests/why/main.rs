//! Issue 20, "Why?": a simulated node is driven into every provision state and into every failure of the fault list, the API
//! is asked why, the command that it advises is given, and the node moves on; or the answer says that no command is needed.

mod faults;
mod scene;
mod states;

use model::why::Awaited;
use model::{Cursor, ProvisionState};
use std::collections::BTreeSet;

/// What the scenes have seen together.
#[derive(Debug, Default)]
pub struct Seen {
    /// States in which the API was asked.
    pub states: BTreeSet<&'static str>,
    /// Cursors of the rows that it was asked about.
    pub cursors: BTreeSet<&'static str>,
    /// What the answers say is awaited.
    pub awaited: BTreeSet<String>,
}

impl Seen {
    /// Add what another scene has seen.
    pub fn add(&mut self, other: Self) {
        self.states.extend(other.states);
        self.cursors.extend(other.cursors);
        self.awaited.extend(other.awaited);
    }
}

/// The name of a cursor. A new one does not compile here before a scene of this test reaches it.
pub fn name(cursor: &Cursor) -> &'static str {
    match cursor {
        Cursor::Start => "start",
        Cursor::PowerOff => "power off",
        Cursor::ReadBootDevice => "read boot device",
        Cursor::SetBootDevice => "set boot device",
        Cursor::PowerOn => "power on",
        Cursor::AwaitAgent => "await agent",
        Cursor::RestoreBootDevice => "restore boot device",
        Cursor::LearnSteps => "learn steps",
        Cursor::NextStep => "next step",
        Cursor::Issued { accepted: false, .. } => "issued",
        Cursor::Issued { accepted: true, .. } => "accepted",
        Cursor::OutOfBand { polling: false, .. } => "out of band",
        Cursor::OutOfBand { polling: true, .. } => "polling",
        Cursor::Reboot => "reboot",
        Cursor::Hold => "hold",
        Cursor::Pause { until: Some(_), .. } => "pause",
        Cursor::Pause { until: None, .. } => "pause for a heartbeat",
        Cursor::AwaitHello { .. } => "await hello",
        Cursor::AskInventory => "ask inventory",
        Cursor::AwaitInventory => "await inventory",
        Cursor::TearDown => "tear down",
        Cursor::Restart => "restart",
        Cursor::Done => "done",
    }
}

/// Not reached: BMCs of the simulation have no persistent boot device, no step here reboots without a ramdisk, and simulated
/// instances say no hello.
const CURSORS_ELSEWHERE: [&str; 3] = ["restore boot device", "reboot", "await hello"];

/// Every name of [`name`].
const CURSORS: [&str; 23] = [
    "start",
    "power off",
    "read boot device",
    "set boot device",
    "power on",
    "await agent",
    "restore boot device",
    "learn steps",
    "next step",
    "issued",
    "accepted",
    "out of band",
    "polling",
    "reboot",
    "hold",
    "pause",
    "pause for a heartbeat",
    "await hello",
    "ask inventory",
    "await inventory",
    "tear down",
    "restart",
    "done",
];

#[test]
fn every_state_and_every_fault_has_an_answer_and_the_advised_command_moves_the_node_on() {
    let mut seen = Seen::default();
    seen.add(states::all());
    seen.add(faults::all());
    let missing: Vec<_> = ProvisionState::ALL
        .into_iter()
        .map(ProvisionState::as_str)
        .filter(|state| !seen.states.contains(state))
        .collect();
    assert!(missing.is_empty(), "no scene reaches the states {missing:?}");
    let missing: Vec<_> = CURSORS
        .into_iter()
        .filter(|cursor| !seen.cursors.contains(cursor) && !CURSORS_ELSEWHERE.contains(cursor))
        .collect();
    assert!(missing.is_empty(), "no scene reaches the cursors {missing:?}");
    // That no controller is alive cannot be asked of a controller that is the only one, and no instance says hello here.
    let missing: Vec<_> = Awaited::ALL
        .into_iter()
        .map(Awaited::as_str)
        .filter(|what| !seen.awaited.contains(*what) && *what != "instance")
        .collect();
    assert!(missing.is_empty(), "no scene waits for {missing:?}");
}
